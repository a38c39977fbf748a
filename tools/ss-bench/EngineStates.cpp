//===- EngineStates.cpp - States of an engine that come back --------------===//

#include "EngineStates.h"

#include <algorithm>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

/// Rows are made for as many requests as fit, at least one, and repeated.
constexpr int64_t kPatternFloats = int64_t(1) << 23;

/// Where requests are: far from the first token.
constexpr int64_t kPeriodsBehind = 128;

} // namespace

int64_t ss_bench::largestRank(const LayerLayout &layer) {
  return std::min(layer.breakEvenRank, layer.denseRows);
}

EngineStates::EngineStates(CudaSession &session, Engine &engine,
                           const Manifest &manifest, int32_t batch,
                           const RankProfile &profile, RankOrder order,
                           const std::vector<SteadyState *> &data)
    : session(session), engine(engine), manifest(manifest), batch(batch),
      data(data), ranks(manifest.layers.size()), counts(manifest.layers.size()),
      savedCounts(manifest.layers.size()) {
  std::mt19937_64 random(2);
  for (size_t l = 0; l < manifest.layers.size(); ++l) {
    const LayerPlaces &places = engine.places().layers[l];
    if (manifest.layers[l].denseForm)
      continue;
    const int32_t most =
        std::min<int32_t>(places.maxRank, int32_t(largestRank(places.sizes)));
    for (int64_t state = 0; state < places.sizes.states; ++state)
      ranks[l].push_back(profile.draw(random, most));
    sortRanks(ranks[l], order);
    keepRows(l);
    keepTables(l);
  }
  const std::vector<int64_t> positions(static_cast<size_t>(batch));
  savedPositions = saved(positions.data(), positions.size() * sizeof(int64_t));
  tableCopies.push_back({place(engine.places().position), savedPositions,
                         positions.size() * sizeof(int64_t)});
}

EngineStates::~EngineStates() {
  for (void *memory : owned)
    session.free(memory);
}

void *EngineStates::place(int64_t offset) const {
  return reinterpret_cast<void *>(engine.begin() + CUdeviceptr(offset));
}

void *EngineStates::saved(const void *data, size_t bytes) {
  void *memory = session.allocate(bytes);
  owned.push_back(memory);
  session.upload(memory, data, bytes);
  return memory;
}

void EngineStates::keepTables(size_t l) {
  const LayerPlaces &places = engine.places().layers[l];
  const int64_t capacity = places.capacity;
  std::vector<float> weights(size_t(places.sizes.states * capacity));
  for (int64_t state = 0; state < places.sizes.states; ++state)
    data[l]->weights(ranks[l][size_t(state)],
                     &weights[size_t(state * capacity)]);
  auto keep = [&](int64_t offset, const void *values, size_t bytes) {
    void *memory = saved(values, bytes);
    tableCopies.push_back({place(offset), memory, bytes});
    return memory;
  };
  keep(places.weights, weights.data(), weights.size() * sizeof(float));
  keep(places.rank, ranks[l].data(), ranks[l].size() * sizeof(int32_t));
  counts[l].resize(size_t(batch));
  savedCounts[l] =
      keep(places.count, counts[l].data(), counts[l].size() * sizeof(int32_t));
}

void EngineStates::keepRows(size_t l) {
  const LayerManifest &layer = manifest.layers[l];
  const LayerPlaces &places = engine.places().layers[l];
  const int64_t slotFloats =
      layer.heads * places.capacity * places.sizes.rowFloats;
  const int64_t element = elementBytes(layer.storage);
  Pattern &pattern = patterns[{data[l], places.capacity}];
  if (!pattern.rows) {
    const auto slots = int32_t(std::clamp<int64_t>(kPatternFloats / slotFloats,
                                                   1, batch));
    const std::vector<float> rows = data[l]->rows(slots, places.capacity);
    pattern.bytes = rows.size() * size_t(element);
    std::vector<std::byte> stored(pattern.bytes);
    storeElements(layer.storage, stored.data(), rows.data(),
                  int64_t(rows.size()));
    pattern.rows = saved(stored.data(), pattern.bytes);
  }
  rowCopies.push_back({{place(places.rows), pattern.rows, pattern.bytes},
                       size_t(batch * slotFloats * element)});
}

void EngineStates::setStaggered(bool staggered, int32_t period) {
  std::vector<int64_t> positions;
  for (int32_t slot = 0; slot < batch; ++slot)
    positions.push_back(kPeriodsBehind * period + (staggered ? slot % period : 0));
  session.upload(savedPositions, positions.data(),
                 positions.size() * sizeof(int64_t));
  for (size_t l = 0; l < counts.size(); ++l) {
    if (counts[l].empty())
      continue;
    // What is in the buffer since the last compaction, after the token whose
    // successor is at the layer's phase.
    const LayerManifest &layer = manifest.layers[l];
    for (size_t slot = 0; slot < counts[l].size(); ++slot)
      counts[l][slot] = int32_t((positions[slot] + layer.buffer - layer.phase) %
                                layer.buffer);
    session.upload(savedCounts[l], counts[l].data(),
                   counts[l].size() * sizeof(int32_t));
  }
}

void EngineStates::restore() {
  for (const auto &[copy, bytes] : rowCopies) {
    session.copy(copy.to, copy.from, std::min(copy.bytes, bytes));
    session.repeat(copy.to, std::min(copy.bytes, bytes), bytes);
  }
  for (const Copy &copy : tableCopies)
    session.copy(copy.to, copy.from, copy.bytes);
}

std::vector<int32_t> EngineStates::ranksNow(size_t layer) {
  std::vector<int32_t> now(ranks[layer].size());
  session.download(now.data(), place(engine.places().layers[layer].rank),
                   now.size() * sizeof(int32_t));
  return now;
}

int32_t EngineStates::countOf(size_t layer, int32_t slot) const {
  return counts[layer].empty() ? 0 : counts[layer][size_t(slot)];
}
