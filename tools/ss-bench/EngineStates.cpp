//===- EngineStates.cpp - States of an engine that come back --------------===//

#include "EngineStates.h"

#include <algorithm>
#include <numeric>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using namespace ss_bench;

namespace {

/// Rows are made for as many requests as fit, at least one, and repeated.
constexpr int64_t kPatternFloats = int64_t(1) << 23;

} // namespace

EngineStates::EngineStates(CudaSession &session, Engine &engine,
                           const Manifest &manifest, int32_t batch,
                           const RankProfile &profile, RankOrder order,
                           const std::vector<SteadyState *> &data)
    : session(session), engine(engine), manifest(manifest), batch(batch),
      data(data), ranks(manifest.layers.size()), counts(manifest.layers.size()),
      positions(size_t(batch)), savedCounts(manifest.layers.size()) {
  std::mt19937_64 random(2);
  std::vector<Piece> all;
  for (size_t l = 0; l < manifest.layers.size(); ++l) {
    if (manifest.layers[l].hasBuffer())
      counts[l].resize(size_t(batch));
    if (manifest.layers[l].denseForm)
      continue;
    drawRanks(l, profile, order, random);
    addPieces(l, all);
    session.upload(place(engine.places().layers[l].rank), ranks[l].data(),
                   ranks[l].size() * sizeof(int32_t));
  }
  pieces = static_cast<const Piece *>(
      saved(all.data(), all.size() * sizeof(Piece)));
  pieceCount = int64_t(all.size());
  keepTables();
}

EngineStates::~EngineStates() {
  for (void *memory : owned)
    session.free(memory);
}

void *EngineStates::place(int64_t offset) const {
  return reinterpret_cast<void *>(engine.begin() + CUdeviceptr(offset));
}

void *EngineStates::saved(const void *values, size_t bytes) {
  void *memory = session.allocate(bytes);
  owned.push_back(memory);
  session.upload(memory, values, bytes);
  return memory;
}

/// Where states may be dense, those are that are drawn so, and those that would
/// go dense with their next compaction; elsewhere they have factors of the same
/// bytes.
void EngineStates::drawRanks(size_t l, const RankProfile &profile,
                             RankOrder order, std::mt19937_64 &random) {
  const LayerPlaces &places = engine.places().layers[l];
  const auto breakEven = int32_t(places.sizes.breakEvenRank);
  const bool mayBeDense = places.sizes.denseFallback;
  const int32_t most = std::min(places.maxRank, breakEven);
  for (int64_t state = 0; state < places.sizes.states; ++state) {
    const int32_t rank = profile.draw(random, most, manifest.layers[l].type);
    const bool large = rank < 0 || rank >= breakEven;
    ranks[l].push_back(!large ? rank : mayBeDense ? -1 : most);
  }
  sortRanks(ranks[l], order);
}

const EngineStates::Pattern &EngineStates::patternOf(size_t l,
                                                     int64_t capacity) {
  const LayerPlaces &places = engine.places().layers[l];
  const Storage storage = places.sizes.storage;
  Pattern &pattern = patterns[{data[l], capacity, storage}];
  if (pattern.rows)
    return pattern;
  pattern.capacity = capacity;
  pattern.slots = int32_t(std::clamp<int64_t>(
      kPatternFloats /
          (manifest.layers[l].heads * capacity * places.sizes.rowFloats),
      1, batch));
  const std::vector<float> rows = data[l]->rows(pattern.slots, capacity);
  std::vector<std::byte> stored(rows.size() * size_t(elementBytes(storage)));
  storeElements(storage, stored.data(), rows.data(), int64_t(rows.size()));
  pattern.rows = static_cast<std::byte *>(saved(stored.data(), stored.size()));
  std::vector<float> weights(size_t((capacity + 1) * capacity));
  for (int64_t rank = 1; rank <= capacity; ++rank)
    data[l]->weights(int32_t(rank), &weights[size_t(rank * capacity)]);
  pattern.weights = static_cast<float *>(
      saved(weights.data(), weights.size() * sizeof(float)));
  return pattern;
}

/// The first row of every state. In a pool it has room for all that its next
/// compaction may leave, as a state has that has been there for a while.
std::vector<int64_t> EngineStates::basesOf(size_t l) {
  const LayerManifest &layer = manifest.layers[l];
  const LayerPlaces &places = engine.places().layers[l];
  std::vector<int64_t> bases;
  if (!engine.places().pooled) {
    for (int64_t state = 0; state < places.sizes.states; ++state)
      bases.push_back(state * places.capacity);
    return bases;
  }
  std::vector<int32_t> states(ranks[l].size()), rows;
  std::iota(states.begin(), states.end(), 0);
  for (int32_t rank : ranks[l])
    rows.push_back(rank < 0 ? int32_t(places.sizes.denseRows)
                            : std::min(boundOf(layer),
                                       rank + layer.buffer + layer.draft +
                                           kRoomRows));
  return engine.giveBlocks(int32_t(l), states, rows, session.stream());
}

/// A state's rows and weights, or what stands for its matrix.
void EngineStates::addPieces(size_t l, std::vector<Piece> &all) {
  const LayerManifest &layer = manifest.layers[l];
  const LayerPlaces &places = engine.places().layers[l];
  const int64_t rowBytes = places.sizes.rowBytes();
  const Pattern &pattern = patternOf(
      l, std::max(places.capacity, places.sizes.denseRows));
  const std::vector<int64_t> bases = basesOf(l);
  auto *rows = static_cast<std::byte *>(place(places.rows));
  auto *weights = static_cast<float *>(place(places.weights));
  for (size_t state = 0; state < bases.size(); ++state) {
    const int32_t rank = ranks[l][state];
    const auto head = int64_t(state) % layer.heads;
    const auto slot = int64_t(state) / layer.heads % pattern.slots;
    const int64_t bytes =
        rank < 0 ? places.sizes.denseFloats * elementBytes(places.sizes.storage)
                 : rank * rowBytes;
    all.push_back({pattern.rows + (slot * layer.heads + head) *
                                      pattern.capacity * rowBytes,
                   rows + bases[state] * rowBytes, bytes, 0});
    if (rank > 0)
      all.push_back({pattern.weights + rank * pattern.capacity,
                     weights + bases[state],
                     int64_t(rank) * int64_t(sizeof(float)), 0});
  }
}

/// Takes the tables as they are now for those to come back, counts and
/// positions apart.
void EngineStates::keepTables() {
  for (const RowPools::Span &span : engine.keepTables()) {
    void *memory = session.allocate(span.bytes);
    owned.push_back(memory);
    tables.push_back(
        {reinterpret_cast<void *>(span.begin), memory, span.bytes});
    session.copy(memory, tables.back().to, span.bytes);
  }
  session.wait();
  // Set by setStaggered(), after the tables that hold older ones.
  auto add = [&](int64_t offset, const void *values, size_t bytes) {
    void *memory = saved(values, bytes);
    tables.push_back({place(offset), memory, bytes});
    return memory;
  };
  for (size_t l = 0; l < counts.size(); ++l)
    if (!counts[l].empty())
      savedCounts[l] = add(engine.places().layers[l].count, counts[l].data(),
                           counts[l].size() * sizeof(int32_t));
  savedPositions = add(engine.places().position, positions.data(),
                       positions.size() * sizeof(int64_t));
}

void EngineStates::setStaggered(bool staggered, bool decoding,
                                int32_t period) {
  for (int32_t slot = 0; slot < batch; ++slot)
    positions[size_t(slot)] = startingPosition(slot, staggered, period);
  session.upload(savedPositions, positions.data(),
                 positions.size() * sizeof(int64_t));
  for (size_t l = 0; l < counts.size(); ++l) {
    if (counts[l].empty())
      continue;
    for (size_t slot = 0; slot < counts[l].size(); ++slot)
      counts[l][slot] = decoding
                            ? decodingCount(manifest.layers[l], positions[slot])
                            : startingCount(manifest.layers[l], positions[slot]);
    session.upload(savedCounts[l], counts[l].data(),
                   counts[l].size() * sizeof(int32_t));
  }
}

void EngineStates::restore() {
  for (const Copy &copy : tables)
    session.copy(copy.to, copy.from, copy.bytes);
  if (pieceCount > 0)
    engine.copyPieces(pieces, pieceCount, session.stream());
  engine.tablesCameBack(session.stream());
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
