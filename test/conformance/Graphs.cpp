//===- Graphs.cpp - The models of the conformance suite -------------------===//

#include "Graphs.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace sinkstate::conformance {

using reference::GateKind;
using reference::gdnLayer;
using reference::kdaLayer;
using reference::LayerSpec;
using reference::mamba2Layer;
using reference::NormKind;

namespace {

LayerSpec withPolicy(LayerSpec layer, const char *kind, double value) {
  layer.policyKind = kind;
  layer.policyValue = value;
  if (layer.policyKind == "fixed")
    layer.active = layer.buffer = int32_t(value);
  return layer;
}

LayerSpec withSizes(LayerSpec layer, int32_t active, int32_t buffer,
                    int32_t draft = 0) {
  layer.active = active;
  layer.buffer = buffer;
  layer.draft = draft;
  return layer;
}

LayerSpec withInit(LayerSpec layer, double eps) {
  layer.initKernel = true;
  return withPolicy(std::move(layer), "relative", eps);
}

LayerSpec bounded(LayerSpec layer) {
  layer.gate = GateKind::BoundedChannel;
  layer.gateBound = -5;
  return layer;
}

LayerSpec denseForm(LayerSpec layer) {
  layer.denseForm = true;
  return layer;
}

LayerSpec deferredForm(LayerSpec layer, int32_t buffer = 8) {
  layer.denseForm = layer.deferred = true;
  layer.buffer = buffer;
  return layer;
}

LayerSpec negativeEigenvalues(LayerSpec layer) {
  layer.betaScale = 2;
  layer.norm = NormKind::Max;
  layer.normEpsilon = 1e-12;
  return layer;
}

/// Bytes of a full buffer and `rank` components.
double budgetOf(const LayerSpec &layer, int32_t rank) {
  const double row = 4.0 * (layer.dv + layer.dk);
  return layer.buffer * row + rank * (row + 4);
}

LayerSpec withNorm(LayerSpec layer, NormKind kind, double epsilon) {
  layer.norm = kind;
  layer.normEpsilon = epsilon;
  return layer;
}

/// The last quarter compacts before its tokens, as ss-schedule-compaction has it
/// with compact-before.
void setBefore(std::vector<LayerSpec> &layers) {
  const auto factored =
      std::count_if(layers.begin(), layers.end(),
                    [](const LayerSpec &layer) { return !layer.denseForm; });
  auto left = (factored + 2) / 4;
  for (auto layer = layers.rbegin(); left > 0; ++layer)
    if (!layer->denseForm)
      layer->before = left-- > 0;
}

/// Names the layers and leaves out every third index, where a hybrid model
/// has its attention layers.
Graph makeGraph(std::string name, std::vector<LayerSpec> layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].index = int32_t(i + i / 2);
    layers[i].phase = int32_t(3 * i) % layers[i].buffer;
  }
  setBefore(layers);
  return {std::move(name), std::move(layers)};
}

Graph withCore(Graph graph, const char *core) {
  graph.name += std::string("_") + core;
  for (LayerSpec &layer : graph.layers)
    layer.core = core, layer.coreByDefault = false;
  return graph;
}

/// Rows of 16 and 8 bits, by layer type; those of 16 as dense layers too.
void addNarrow(std::vector<Graph> &graphs) {
  const LayerSpec gdn = gdnLayer(4, 2, 64, 128);
  const LayerSpec mamba2 = mamba2Layer(4, 2, 80, 128);
  const LayerSpec kda = kdaLayer(2, 2, 64, 128);
  const LayerSpec oddKda = bounded(kdaLayer(4, 2, 60, 100));
  const size_t before = graphs.size();
  for (const char *storage : {"f16", "bf16", "fp8"}) {
    const std::string suffix = std::string("_") + storage;
    graphs.push_back(makeGraph("gdn" + suffix, {gdn}));
    graphs.push_back(makeGraph("mamba2" + suffix, {mamba2}));
    graphs.push_back(makeGraph("kda" + suffix, {kda}));
    graphs.push_back(makeGraph("hybrid" + suffix,
                               {withSizes(gdnLayer(2, 1, 24, 40), 4, 4), oddKda,
                                mamba2Layer(2, 1, 33, 24)}));
    if (suffix != "_fp8") { // matrices are not stored in 8 bits
      graphs.push_back(makeGraph(
          "init" + suffix, {withInit(gdnLayer(2, 1, 64, 96), 3e-3)}));
      graphs.push_back(makeGraph("dense" + suffix, {denseForm(gdn), denseForm(mamba2),
                                                    denseForm(oddKda)}));
      graphs.push_back(makeGraph("deferred" + suffix,
                                 {deferredForm(gdn), deferredForm(mamba2),
                                  deferredForm(oddKda)}));
    }
    for (size_t i = before; i < graphs.size(); ++i)
      if (graphs[i].name.ends_with(suffix))
        for (LayerSpec &layer : graphs[i].layers) {
          layer.storage = storage;
          layer.core = graphs[i].name == "hybrid_bf16" ? "svd" : "qr";
        }
  }
}

/// Rows and dense states that are rounded stochastically.
void addStochastic(std::vector<Graph> &graphs) {
  const LayerSpec mamba2 = mamba2Layer(4, 2, 80, 128);
  const LayerSpec kda = kdaLayer(2, 2, 64, 128);
  auto rounded = [](LayerSpec layer, const char *storage) {
    layer.storage = storage;
    layer.rounding = "stochastic";
    layer.core = "qr";
    return layer;
  };
  graphs.push_back(makeGraph("kda_fp8_random", {rounded(kda, "fp8")}));
  graphs.push_back(makeGraph("mamba2_f16_random", {rounded(mamba2, "f16")}));
  graphs.push_back(makeGraph(
      "hybrid_random",
      {rounded(withSizes(gdnLayer(2, 1, 24, 40), 4, 4), "bf16"),
       rounded(bounded(kdaLayer(4, 2, 60, 100)), "bf16"),
       rounded(mamba2Layer(2, 1, 33, 24), "fp8"),
       rounded(denseForm(gdnLayer(2, 2, 33, 24)), "f16")}));
  // All heads, and half of them.
  for (const int32_t parts : {1, 2})
    graphs.push_back(makeGraph(
        parts == 1 ? "random_whole" : "random_half",
        {rounded(gdnLayer(4 / parts, 2 / parts, 24, 40), "f16"),
         rounded(kdaLayer(2 / parts, 2 / parts, 32, 24), "fp8"),
         rounded(mamba2Layer(4 / parts, 1, 33, 24), "bf16"),
         rounded(denseForm(gdnLayer(2 / parts, 2 / parts, 33, 24)), "f16")}));
}

/// Draft tokens with a sink, rows of 8 bits and random bits.
Graph draftForms() {
  LayerSpec sink = withPolicy(gdnLayer(2, 1, 24, 40), "fixed", 8);
  sink.sinkForm = true;
  LayerSpec random = kdaLayer(2, 2, 24, 40);
  random.storage = "fp8";
  random.rounding = "stochastic";
  LayerSpec nearest = mamba2Layer(2, 1, 33, 24);
  nearest.storage = "fp8";
  std::vector<LayerSpec> layers = {sink, random, nearest};
  for (LayerSpec &layer : layers) {
    layer.core = "qr";
    layer.draft = 3;
  }
  return makeGraph("draft_forms", std::move(layers));
}

/// Fixed ranks with a sink: those that truncate have a twin without.
void addSinks(std::vector<Graph> &graphs) {
  auto sink = [](LayerSpec layer, int32_t rank) {
    layer = withPolicy(layer, "fixed", rank);
    layer.sinkForm = layer.coreByDefault = true;
    return layer;
  };
  for (Graph graph :
       {makeGraph("gdn_sink", {sink(gdnLayer(4, 2, 64, 128), 16)}),
        makeGraph("mamba2_sink", {sink(mamba2Layer(4, 1, 32, 48), 8)}),
        makeGraph("kda_sink", {sink(kdaLayer(2, 2, 64, 128), 8)})}) {
    graphs.push_back(graph);
    graphs.push_back(withCore(graph, "qr"));
  }
  // All of the content fits.
  graphs.push_back(makeGraph("full_sink", {sink(gdnLayer(2, 1, 12, 20), 12),
                                           sink(mamba2Layer(4, 1, 9, 12), 9),
                                           sink(kdaLayer(2, 2, 10, 16), 10)}));
  // Rows of 16 and 8 bits, by layer type.
  auto narrow = [&](LayerSpec layer, const char *storage) {
    layer = sink(layer, 8);
    layer.storage = storage;
    layer.core = "qr", layer.coreByDefault = false;
    return layer;
  };
  graphs.push_back(makeGraph("narrow_sink",
                             {narrow(gdnLayer(2, 1, 32, 48), "f16"),
                              narrow(kdaLayer(2, 2, 24, 40), "bf16"),
                              narrow(mamba2Layer(2, 1, 40, 24), "fp8"),
                              narrow(kdaLayer(2, 1, 40, 32), "fp8")}));
  // Chosen per layer, beside the other forms.
  LayerSpec qr = sink(kdaLayer(2, 1, 24, 40), 8);
  qr.core = "qr", qr.coreByDefault = false;
  graphs.push_back(makeGraph(
      "mixed_sink", {withPolicy(gdnLayer(2, 1, 32, 24), "relative", 0),
                     sink(mamba2Layer(2, 1, 24, 40), 4), qr,
                     denseForm(gdnLayer(2, 2, 16, 16))}));
}

/// Exact (relative, 0), by type and size.
std::vector<Graph> exactGraphs() {
  const LayerSpec kda = kdaLayer(2, 2, 64, 128);
  return {
      makeGraph("gdn_64x128", {gdnLayer(4, 2, 64, 128)}),
      makeGraph("gdn_128x128", {gdnLayer(2, 1, 128, 128)}),
      makeGraph("gdn_100x60", {gdnLayer(3, 1, 100, 60)}),
      makeGraph("gdn_negative", {negativeEigenvalues(gdnLayer(2, 2, 48, 32))}),
      makeGraph("mamba2_80x128", {mamba2Layer(8, 2, 80, 128)}),
      makeGraph("mamba2_60x100", {mamba2Layer(3, 3, 60, 100)}),
      makeGraph("kda_64x128", {kda}),
      makeGraph("kda_bounded_64x128", {bounded(kda)}),
      makeGraph("kda_bounded_60x100", {bounded(kdaLayer(4, 2, 60, 100))}),
      // Exact, by the sizes of the active set and the buffer.
      makeGraph("gdn_a4_b4", {withSizes(gdnLayer(2, 2, 40, 24), 4, 4)}),
      makeGraph("mamba2_a16_b16", {withSizes(mamba2Layer(4, 1, 32, 48), 16, 16)}),
      makeGraph("kda_a4_b12", {withSizes(kdaLayer(2, 1, 24, 40), 4, 12)}),
      makeGraph("gdn_a1_b2", {withSizes(gdnLayer(2, 1, 24, 40), 1, 2)}),
      makeGraph("gdn_draft", {withSizes(gdnLayer(2, 1, 24, 40), 8, 8, 3)}),
  };
}

std::vector<Graph> policyGraphs() {
  const LayerSpec gdn = gdnLayer(4, 2, 64, 128);
  const LayerSpec mamba2 = mamba2Layer(8, 2, 80, 128);
  const LayerSpec kda = kdaLayer(2, 2, 64, 128);
  const LayerSpec smallMamba2 = mamba2Layer(4, 1, 32, 48);
  return {
      makeGraph("gdn_relative", {withPolicy(gdn, "relative", 3e-2)}),
      makeGraph("mamba2_relative", {withPolicy(mamba2, "relative", 1e-1)}),
      makeGraph("kda_relative", {withPolicy(kda, "relative", 3e-2)}),
      makeGraph("gdn_fixed", {withPolicy(gdn, "fixed", 16)}),
      makeGraph("mamba2_fixed", {withPolicy(smallMamba2, "fixed", 8)}),
      makeGraph("kda_fixed", {withPolicy(kda, "fixed", 8)}),
      makeGraph("gdn_energy", {withPolicy(gdn, "energy", 0.99)}),
      makeGraph("mamba2_energy", {withPolicy(smallMamba2, "energy", 0.999)}),
      makeGraph("kda_energy", {withPolicy(bounded(kda), "energy", 0.99)}),
      makeGraph("gdn_budget", {withPolicy(gdn, "budget", budgetOf(gdn, 20))}),
      makeGraph("mamba2_budget",
                {withPolicy(smallMamba2, "budget", budgetOf(smallMamba2, 12))}),
      // The sizes of the paper's example.
      makeGraph("worked_example",
                {withSizes(withPolicy(gdnLayer(1, 1, 4, 4), "relative", 0.1),
                           1, 2)}),
  };
}

/// Several layers of every kind; the exact one and one that truncates; other forms.
std::vector<Graph> mixedGraphs() {
  const LayerSpec gdn = gdnLayer(4, 2, 64, 128);
  const LayerSpec mamba2 = mamba2Layer(8, 2, 80, 128);
  const LayerSpec kda = kdaLayer(2, 2, 64, 128);
  return {
      makeGraph("hybrid", {mamba2Layer(4, 1, 24, 40), gdnLayer(4, 2, 40, 24),
                           bounded(kdaLayer(2, 2, 24, 32)),
                           withSizes(gdnLayer(2, 2, 32, 32), 4, 4)}),
      makeGraph("hybrid_relative",
                {withPolicy(mamba2Layer(4, 1, 24, 40), "relative", 3e-2),
                 withPolicy(gdnLayer(4, 2, 40, 24), "relative", 3e-2),
                 withPolicy(kdaLayer(2, 2, 24, 32), "relative", 3e-2),
                 denseForm(gdnLayer(2, 2, 32, 32)),
                 withPolicy(mamba2Layer(2, 2, 32, 32), "fixed", 8)}),
      makeGraph("dense", {denseForm(mamba2), denseForm(gdn), denseForm(kda),
                          denseForm(bounded(kdaLayer(2, 1, 60, 100)))}),
      // Keys of several heads, odd sizes, buffers of 1 to 16; beside factored.
      makeGraph("deferred",
                {deferredForm(mamba2), deferredForm(gdn), deferredForm(kda, 16),
                 deferredForm(bounded(kdaLayer(2, 1, 60, 100)), 5),
                 deferredForm(mamba2Layer(3, 1, 33, 24), 1),
                 deferredForm(gdnLayer(4, 2, 40, 24), 3),
                 gdnLayer(2, 1, 24, 40)}),
  };
}

/// Every form of a layer with both norms, their epsilons as models have them and
/// below the root of the smallest float32 numbers.
std::vector<Graph> normGraphs() {
  return {
      makeGraph("norms",
                {withNorm(gdnLayer(2, 1, 24, 40), NormKind::Max, 1e-12),
                 withNorm(kdaLayer(2, 2, 24, 40), NormKind::Add, 1e-6),
                 denseForm(gdnLayer(2, 1, 33, 24)),
                 deferredForm(withNorm(kdaLayer(2, 1, 40, 32), NormKind::Max, 1e-12))}),
      makeGraph("small_norms",
                {withNorm(gdnLayer(2, 1, 24, 40), NormKind::Max, 1e-36),
                 withNorm(kdaLayer(2, 2, 24, 40), NormKind::Add, 1e-42),
                 denseForm(withNorm(gdnLayer(2, 1, 33, 24), NormKind::Add, 1e-38)),
                 deferredForm(withNorm(kdaLayer(2, 1, 40, 32), NormKind::Max, 1e-30))}),
  };
}

/// With init kernels: sizes below, at and above their number of components,
/// and one of several layers with drafts.
std::vector<Graph> initGraphs() {
  return {
      makeGraph("init_80x128", {withInit(mamba2Layer(4, 2, 80, 128), 3e-3)}),
      makeGraph("init_hybrid",
                {withInit(gdnLayer(2, 1, 24, 40), 1e-3),
                 withInit(withSizes(kdaLayer(2, 2, 64, 48), 8, 8, 3), 1e-2),
                 withInit(mamba2Layer(2, 1, 16, 12), 3e-3)}),
  };
}

std::vector<Graph> makeGraphs() {
  std::vector<Graph> graphs;
  for (const std::vector<Graph> &some :
       {exactGraphs(), policyGraphs(), mixedGraphs(), normGraphs(),
        initGraphs()})
    graphs.insert(graphs.end(), some.begin(), some.end());
  // Every graph that compacts, by the other decomposition too.
  for (size_t i = 0, count = graphs.size(); i < count; ++i)
    if (graphs[i].name != "dense" && graphs[i].name != "deferred" &&
        graphs[i].name != "worked_example" &&
        !graphs[i].name.ends_with("norms") &&
        !graphs[i].name.starts_with("init_"))
      graphs.push_back(withCore(graphs[i], "qr"));
  addNarrow(graphs);
  addStochastic(graphs);
  addSinks(graphs);
  graphs.push_back(draftForms());
  return graphs;
}

/// A number as MLIR reads it: with a point.
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17e", x);
  return text;
}

std::string gateText(const LayerSpec &layer) {
  switch (layer.gate) {
  case GateKind::Softplus:
    return "<softplus>";
  case GateKind::SoftplusChannel:
    return "<softplus_channel>";
  case GateKind::BoundedChannel:
    return "<bounded_channel, " + number(layer.gateBound) + ">";
  }
  throw std::logic_error("a gate that graphs cannot spell");
}

std::string normText(const LayerSpec &layer) {
  switch (layer.norm) {
  case NormKind::None:
    return "<none>";
  case NormKind::Add:
    return "<add, " + number(layer.normEpsilon) + ">";
  case NormKind::Max:
    return "<max, " + number(layer.normEpsilon) + ">";
  }
  throw std::logic_error("a normalisation that graphs cannot spell");
}

std::string policyText(const LayerSpec &layer) {
  const bool whole =
      layer.policyKind == "fixed" || layer.policyKind == "budget";
  return "<" + layer.policyKind + ", " +
         (whole ? std::to_string(int64_t(layer.policyValue))
                : number(layer.policyValue)) +
         ">";
}

std::string layerText(const LayerSpec &layer) {
  auto size = [](const char *what, int64_t value) {
    return std::string(" ") + what + " " + std::to_string(value);
  };
  std::string text = "  ss.layer @" + layer.name + " type " + layer.type +
                     size("index", layer.index) + size("heads", layer.heads) +
                     size("key_heads", layer.keyHeads) + size("dv", layer.dv) +
                     size("dk", layer.dk) + "\n      gate #ss.gate" +
                     gateText(layer) + " norm #ss.norm" + normText(layer) +
                     " query_scale " + number(layer.queryScale) +
                     "\n      policy #ss.policy" + policyText(layer) +
                     size("active", layer.active) +
                     size("buffer", layer.buffer) +
                     (layer.coreByDefault ? "" : " core " + layer.core) +
                     " storage " + layer.storage +
                     (layer.rounding == "nearest" ? ""
                                                  : " rounding " + layer.rounding) +
                     " form " +
                     (layer.deferred    ? "deferred"
                      : layer.denseForm ? "dense"
                      : layer.sinkForm  ? "sink"
                                        : "factored");
  std::string attributes;
  if (layer.betaScale != 1)
    attributes = "beta_scale = " + number(layer.betaScale) + " : f64";
  if (layer.draft != 0)
    attributes += (attributes.empty() ? "draft = " : ", draft = ") +
                  std::to_string(layer.draft);
  if (!attributes.empty())
    text += "\n      {" + attributes + "}";
  return text + "\n";
}

} // namespace

const std::vector<Graph> &allGraphs() {
  static const std::vector<Graph> graphs = makeGraphs();
  return graphs;
}

const Graph &graphNamed(const std::string &name) {
  for (const Graph &graph : allGraphs())
    if (graph.name == name)
      return graph;
  throw std::runtime_error("the conformance suite has no graph '" + name +
                           "', expected a name of Graphs.cpp");
}

std::vector<std::string> withBothCores(const std::vector<std::string> &names) {
  std::vector<std::string> both = names;
  for (const std::string &name : names)
    both.push_back(name + "_qr");
  return both;
}

std::string graphText(const Graph &graph) {
  std::string text = "ss.model @" + graph.name + " {\n";
  for (const LayerSpec &layer : graph.layers)
    text += layerText(layer);
  return text + "}\n";
}

} // namespace sinkstate::conformance
