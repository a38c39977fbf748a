//===- BenchEngine.cpp - What engines of all devices share ----------------===//

#include "BenchEngine.h"

#include <algorithm>

using namespace ss_bench;

namespace {

constexpr int64_t kPeriodsBehind = 128;

} // namespace

Shapes::Shapes(const Manifest &manifest) {
  for (const LayerManifest &layer : manifest.layers) {
    auto shape = std::find_if(all.begin(), all.end(), [&](const Shape &s) {
      return s.data->serves(layer);
    });
    if (shape == all.end()) {
      Shape made;
      made.data = std::make_unique<SteadyState>(layer);
      made.aLog = made.data->aLog();
      made.dtBias = made.data->dtBias();
      all.push_back(std::move(made));
      shape = std::prev(all.end());
    }
    ofLayer.push_back(size_t(shape - all.begin()));
  }
}

void Shapes::makeInputs(DataKind kind, int32_t period, int32_t distinct) {
  for (Shape &shape : all)
    shape.inputs = shape.data->inputs(kind, period, distinct);
}

void ss_bench::setMeanValues(StateEngine &engine, const Manifest &manifest,
                             const Shapes &shapes) {
  for (size_t l = 0; l < manifest.layers.size(); ++l)
    if (manifest.layers[l].sinkForm)
      engine.setSink(int32_t(l), shapes.of(l).data->meanValues());
}

TokenSizes::TokenSizes(const LayerManifest &layer)
    : keys(int64_t(layer.keyHeads) * layer.dk),
      values(int64_t(layer.heads) * layer.dv),
      gates(int64_t(layer.heads) * (layer.channelDecay ? layer.dk : 1)),
      betas(layer.heads) {}

void BenchEngine::warmUp(int32_t period) {
  (void)runSteps(0, period);
  (void)runSteps(0, period);
}

std::vector<double> BenchEngine::serve(int32_t count, int32_t period) {
  std::vector<double> times;
  for (int32_t step = 0; step < count; ++step)
    times.push_back(runSteps(step % period, 1)[0]);
  return times;
}

int32_t ss_bench::periodOf(const Manifest &manifest) {
  int32_t period = 1;
  for (const LayerManifest &layer : manifest.layers)
    period = std::max(period, layer.buffer);
  return period;
}

int64_t ss_bench::startingPosition(int32_t slot, bool staggered,
                                   int32_t period) {
  return kPeriodsBehind * period + (staggered ? slot % period : 0);
}

int32_t ss_bench::startingCount(const LayerManifest &layer, int64_t position) {
  if (layer.deferred) // written into the matrix with the next token when full
    return 1 + int32_t(position % layer.buffer);
  // What is in the buffer since the last compaction, after the token whose
  // successor is at the layer's phase, or before that successor.
  const auto pairs =
      int32_t((position + layer.buffer - layer.phase) % layer.buffer);
  return pairs == 0 && layer.compactsBefore ? layer.buffer : pairs;
}

int32_t ss_bench::decodingCount(const LayerManifest &layer, int64_t position) {
  const int32_t pairs = startingCount(layer, position);
  return layer.compactsBefore ? pairs % layer.buffer : pairs;
}
