//===- DecodeBench.cpp - Time of decode steps on a GPU --------------------===//

#include "DecodeBench.h"

#include "Floors.h"

#include "capi/Failure.h"
#include "engine/StateEngine.h"

#include <algorithm>
#include <numeric>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

/// Requests whose inputs differ from each other; further ones repeat them.
constexpr int32_t kDistinctRequests = 16;

/// The smallest of the values that are not below this share of them.
double percentile(std::vector<double> values, double share) {
  const size_t at = std::min(values.size() - 1,
                             size_t(share * double(values.size())));
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(at),
                   values.end());
  return values[at];
}

double sumOf(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Rows for the largest rank that is drawn, and two buffers more.
int32_t rowCapacity(const Manifest &manifest, int32_t slots) {
  int64_t rows = 1;
  for (const LayerManifest &layer : manifest.layers)
    rows = std::max(rows, largestRank(LayerLayout(layer, slots, false)) +
                              2 * layer.buffer + layer.active);
  return int32_t(rows);
}

ss_engine_options engineOptions(const BenchOptions &bench,
                                const Manifest &manifest, int32_t batch) {
  ss_engine_options options = {};
  options.struct_size = sizeof options;
  options.slots = batch;
  options.device = SS_DEVICE_CUDA;
  options.device_ordinal = bench.device;
  options.dense_fallback = options.consolidate_every = -1;
  options.row_capacity = rowCapacity(manifest, batch);
  return resolveOptions(options);
}

} // namespace

DecodeBench::DecodeBench(CudaSession &session, const BenchOptions &bench,
                         const std::string &folder, const RankProfile &profile,
                         int32_t batch)
    : session(session), options(bench), batch(batch),
      package(Package::open(folder)),
      engine(std::make_unique<Engine>(
          package, engineOptions(bench, package->manifest(), batch),
          session.sharedDriver())) {
  std::vector<int32_t> list;
  for (int32_t row = 0; row < batch; ++row)
    list.push_back(engine->allocateSlot(session.stream()));
  slots = static_cast<int32_t *>(session.allocate(list.size() * sizeof(int32_t)));
  session.upload(slots, list.data(), list.size() * sizeof(int32_t));
  for (const LayerManifest &layer : layers())
    if (!layer.denseForm)
      period = std::max(period, layer.buffer);
  makeShapes();
  std::vector<SteadyState *> data;
  for (size_t shape : shapeOf)
    data.push_back(shapes[shape].data.get());
  states = std::make_unique<EngineStates>(session, *engine, package->manifest(),
                                          batch, profile, bench.order, data);
}

DecodeBench::~DecodeBench() {
  freeGraphs();
  freeInputs();
  for (const Shape &shape : shapes) {
    session.free(shape.aLog);
    session.free(shape.dtBias);
  }
  for (float *output : outputs)
    session.free(output);
  session.free(slots);
}

const std::vector<LayerManifest> &DecodeBench::layers() const {
  return package->manifest().layers;
}

void DecodeBench::makeShapes() {
  auto onDevice = [&](const std::vector<float> &values) {
    void *memory = session.allocate(values.size() * sizeof(float));
    session.upload(memory, values.data(), values.size() * sizeof(float));
    return static_cast<float *>(memory);
  };
  for (const LayerManifest &layer : layers()) {
    auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const Shape &s) {
      return s.data->serves(layer);
    });
    if (shape == shapes.end()) {
      Shape made;
      made.data = std::make_unique<SteadyState>(layer);
      made.hostALog = made.data->aLog();
      made.hostDtBias = made.data->dtBias();
      made.aLog = onDevice(made.hostALog);
      made.dtBias = onDevice(made.hostDtBias);
      shapes.push_back(std::move(made));
      shape = std::prev(shapes.end());
    }
    shapeOf.push_back(size_t(shape - shapes.begin()));
    const int64_t floats = int64_t(batch) * layer.heads * layer.dv;
    outputs.push_back(
        static_cast<float *>(session.allocate(size_t(floats) * sizeof(float))));
  }
}

/// [sets, distinct, ...] on the host as [sets, batch, ...] on the device.
float *DecodeBench::batchOf(const std::vector<float> &values, int32_t distinct) {
  const size_t from = values.size() / size_t(period);
  const size_t to = from / size_t(distinct) * size_t(batch);
  auto *memory = static_cast<float *>(
      session.allocate(to * size_t(period) * sizeof(float)));
  for (size_t set = 0; set < size_t(period); ++set) {
    session.upload(memory + set * to, &values[set * from], from * sizeof(float));
    session.repeat(memory + set * to, from * sizeof(float), to * sizeof(float));
  }
  return memory;
}

void DecodeBench::makeInputs(DataKind kind) {
  freeInputs();
  const int32_t distinct = std::min(batch, kDistinctRequests);
  for (Shape &shape : shapes) {
    shape.host = shape.data->inputs(kind, period, distinct);
    shape.q = batchOf(shape.host.q, distinct);
    shape.k = batchOf(shape.host.k, distinct);
    shape.v = batchOf(shape.host.v, distinct);
    shape.gate = batchOf(shape.host.gate, distinct);
    shape.beta = batchOf(shape.host.beta, distinct);
  }
}

void DecodeBench::freeInputs() {
  for (Shape &shape : shapes)
    for (float **array :
         {&shape.q, &shape.k, &shape.v, &shape.gate, &shape.beta}) {
      session.free(*array);
      *array = nullptr;
    }
}

ss_decode_args DecodeBench::argsOf(size_t l, int32_t set) const {
  const LayerManifest &layer = layers()[l];
  const Shape &shape = shapes[shapeOf[l]];
  const int64_t token = int64_t(set) * batch;
  const int64_t keys = int64_t(layer.keyHeads) * layer.dk;
  const int64_t gates = int64_t(layer.heads) * (layer.channelDecay ? layer.dk : 1);
  ss_decode_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.slots = slots;
  args.q = {shape.q + token * keys, 0};
  args.k = {shape.k + token * keys, 0};
  args.v = {shape.v + token * layer.heads * layer.dv, 0};
  args.gate = {shape.gate + token * gates, 0};
  args.beta = {shape.beta + token * layer.heads, 0};
  args.a_log = shape.aLog;
  args.dt_bias = shape.dtBias;
  args.y = outputs[l];
  args.stream = session.stream();
  return args;
}

void DecodeBench::enqueueStep(int32_t set) {
  const std::span<const int32_t> list(slots, size_t(batch));
  engine->beginStep(list, session.stream());
  for (size_t l = 0; l < layers().size(); ++l)
    engine->decodeLayer(int32_t(l), argsOf(l, set));
  engine->endStep(list, session.stream());
}

void DecodeBench::enqueueDecode(int32_t set) {
  for (size_t l = 0; l < layers().size(); ++l)
    engine->launchDecode(int32_t(l), argsOf(l, set));
}

void DecodeBench::makeGraphs() {
  freeGraphs();
  for (int32_t set = 0; set < period; ++set) {
    steps.push_back(session.capture([&] { enqueueStep(set); }));
    decodes.push_back(session.capture([&] { enqueueDecode(set); }));
  }
}

void DecodeBench::freeGraphs() {
  for (auto *graphs : {&steps, &decodes}) {
    for (CudaSession::Graph graph : *graphs)
      session.destroy(graph);
    graphs->clear();
  }
}

void DecodeBench::timePeriods(Measured &result) {
  std::vector<double> whole, single;
  while (result.timedSteps < options.steps) {
    states->restore();
    const std::vector<double> times = session.replay(steps);
    whole.push_back(sumOf(times) / double(times.size()));
    single.insert(single.end(), times.begin(), times.end());
    result.timedSteps += int64_t(times.size());
  }
  result.step = percentile(whole, 0.5) * 1000 / double(layers().size());
  result.stepMedian = percentile(single, 0.5) * 1000;
  result.stepP99 = percentile(single, 0.99) * 1000;
}

/// Buffers stay as full as they are when a period begins: all lengths alike
/// where positions are staggered.
void DecodeBench::timeDecode(Measured &result) {
  states->restore();
  (void)session.replay(decodes);
  std::vector<double> whole;
  const int periods = std::clamp(options.steps / period / 2, 3, 50);
  for (int i = 0; i < periods; ++i)
    whole.push_back(sumOf(session.replay(decodes)) / double(period));
  result.decodeOnly = percentile(whole, 0.5) * 1000 / double(layers().size());
}

void DecodeBench::countRows(Measured &result, int64_t compactionsBefore) {
  double count = 0, before = 0, after = 0, block = 0, kept = 0;
  for (size_t l = 0; l < layers().size(); ++l) {
    const std::vector<int32_t> &ranks = states->ranksOf(l);
    const std::vector<int32_t> now =
        ranks.empty() ? ranks : states->ranksNow(l);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const int32_t active = std::min(ranks[i], layers()[l].active);
      before += ranks[i], after += now[i];
      block += active + layers()[l].buffer;
      kept += active + now[i] - ranks[i];
    }
    count += double(ranks.size());
  }
  if (count == 0)
    return;
  ss_statistics statistics = {};
  engine->statistics(statistics);
  result.meanRank = before / count;
  result.meanRankAfter = after / count;
  result.blockRows = block / count;
  result.keptRows = kept / count;
  result.compactionsPerState =
      double(statistics.compactions - compactionsBefore) / count;
}

void DecodeBench::addSizes(Measured &result) {
  for (size_t l = 0; l < layers().size(); ++l) {
    const LayerManifest &layer = layers()[l];
    const std::vector<int32_t> &ranks = states->ranksOf(l);
    const Floor floor = floorOf(layer, batch, ranks);
    const double share = 1 / double(layers().size());
    result.decodeBytes += floor.decodeBytes * share;
    result.compactBytes += floor.compactBytes * share;
    result.decodeFlops += floor.flops * share;
    result.stateBytes += stateBytes(layer, batch, ranks);
    result.denseBytes += 4.0 * batch * layer.heads * layer.dv * layer.dk;
  }
  ss_statistics statistics = {};
  engine->statistics(statistics);
  result.allocatedBytes = double(statistics.allocated_bytes);
}

Measured DecodeBench::run(DataKind kind, bool staggered) {
  Measured result;
  result.batch = batch;
  result.data = nameOf(kind);
  result.staggered = staggered;
  makeInputs(kind);
  makeGraphs();
  states->setStaggered(staggered, period);
  // Two periods bring every buffer into its rhythm.
  states->restore();
  (void)session.replay(steps);
  (void)session.replay(steps);
  states->restore();
  ss_statistics statistics = {};
  engine->statistics(statistics);
  (void)session.replay(steps);
  countRows(result, statistics.compactions);
  timePeriods(result);
  // Decode alone has no rhythm: buffers of every length, as over a period.
  states->setStaggered(true, period);
  timeDecode(result);
  states->setStaggered(staggered, period);
  addSizes(result);
  check(result);
  return result;
}
