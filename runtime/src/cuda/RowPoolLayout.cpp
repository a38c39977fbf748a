//===- RowPoolLayout.cpp - Sizes of the row pools on a GPU ----------------===//

#include "cuda/RowPoolLayout.h"

#include "capi/Failure.h"
#include "cuda/device/rows.cuh"

#include <algorithm>
#include <map>
#include <numeric>

namespace sinkstate::runtime::cuda {
namespace {

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A chunk holds several of the largest blocks, and not so many rows that the
/// classes of a small engine leave much of theirs unused.
constexpr int32_t kLeastChunkRows = 64;
constexpr int32_t kLargestBlocks = 4;

/// Steps of capacities: an eighth of their size, at least two rows.
int32_t nextCapacity(int32_t rows) {
  int32_t step = 2;
  while (step * 16 <= rows)
    step *= 2;
  return rows + step;
}

/// Positions that are looked at for the worst step.
constexpr int64_t kMostPositions = 1 << 12;

} // namespace

int32_t boundOf(const LayerManifest &layer) { return int32_t(layer.rank); }

RowPoolSizes::RowPoolSizes(int64_t rowBytes, int32_t mostRows,
                           const std::vector<int32_t> &exactRows)
    : rowBytes(rowBytes), mostRows(mostRows) {
  chunkRows = std::max(kLeastChunkRows, kLargestBlocks * mostRows);
  std::vector<int32_t> wanted = exactRows;
  const int32_t least = std::max(2, chunkRows / ss::kMostBlocks);
  for (int32_t rows = least; rows < mostRows; rows = nextCapacity(rows))
    wanted.push_back(rows);
  wanted.push_back(mostRows);
  std::sort(wanted.begin(), wanted.end());
  for (int32_t rows : wanted) {
    // What a chunk has left over is its blocks'.
    const int32_t count =
        std::min(ss::kMostBlocks, chunkRows / std::max(rows, least));
    if (!blocks.empty() && blocks.back() == count)
      continue;
    blocks.push_back(count);
    capacity.push_back(chunkRows / count);
  }
  if (capacity.size() > size_t(ss::kMostClasses))
    fail(SS_INTERNAL, capacity.size(), " capacity classes for ", mostRows,
         " rows, expected at most ", ss::kMostClasses, ": report it");
  int32_t sizeClass = 0;
  for (int32_t rows = 0; rows <= mostRows; ++rows) {
    while (capacity[size_t(sizeClass)] < rows)
      ++sizeClass;
    classOf.push_back(sizeClass);
  }
}

int64_t RowPoolSizes::rowRange(int64_t chunks) const {
  return (ss::kScrapRows + chunks * chunkRows) * rowBytes;
}

int64_t RowPoolSizes::weightRange(int64_t chunks) const {
  return (ss::kScrapRows + chunks * chunkRows) * int64_t(sizeof(float));
}

int64_t RowPoolSizes::chunksWithin(int64_t rangeOfRows,
                                   int64_t rangeOfWeights) const {
  const int64_t rows = std::min(rangeOfRows / rowBytes,
                                rangeOfWeights / int64_t(sizeof(float)));
  return std::max<int64_t>(0, rows - ss::kScrapRows) / chunkRows;
}

int64_t RowPoolSizes::mappedBytes(int64_t chunks, int64_t unit) const {
  return (divideUp(rowRange(chunks), unit) +
          divideUp(weightRange(chunks), unit)) *
         unit;
}

int64_t RowPoolSizes::tableBytes() const {
  const int64_t chunks = chunkCount;
  return int64_t(sizeof(ss::RowPool)) +
         int64_t(classOf.size() * sizeof(int32_t)) +
         chunks * int64_t(sizeof(int32_t) * (2 + ss::kMaskWords)) +
         mostRequests() * int64_t(sizeof(ss::RowRequest) + sizeof(int32_t));
}

RowPoolLayout::RowPoolLayout(const Manifest &manifest,
                             const std::vector<LayerLayout> &sizes,
                             int32_t slots)
    : poolOf(manifest.layers.size(), -1) {
  addLayers(manifest, sizes);
  std::vector<int64_t> worstRows(pools.size()), expectedRows(pools.size());
  for (size_t l = 0; l < sizes.size(); ++l) {
    if (poolOf[l] < 0)
      continue;
    const auto pool = size_t(poolOf[l]);
    RowPoolSizes &p = pools[pool];
    const int64_t most = std::max<int64_t>(
        sizes[l].mostRows, sizes[l].denseFallback ? sizes[l].denseRows : 0);
    p.states += sizes[l].states;
    worstRows[pool] += sizes[l].states * p.capacityFor(most);
    expectedRows[pool] +=
        sizes[l].states *
        p.capacityFor(std::min<int64_t>(boundOf(manifest.layers[l]) / 2, most));
  }
  for (size_t pool = 0; pool < pools.size(); ++pool) {
    RowPoolSizes &p = pools[pool];
    if (2 * p.states > INT32_MAX)
      fail(SS_INVALID_ARGUMENT, p.states, " states with rows of ", p.rowBytes,
           " bytes, expected at most ", INT32_MAX / 2,
           ": create the engine with fewer slots");
    countDue(manifest, pool);
    // While states move they hold two blocks, and every class may have a chunk
    // that is hardly used. A chunk has room for at least four fifths of its
    // rows in blocks of any class.
    const int64_t moving = slots * p.dueStates * p.mostRows;
    const int64_t chunks =
        divideUp((worstRows[pool] + moving) * 5 / 4, p.chunkRows) +
        int64_t(p.capacity.size());
    if (chunks > INT32_MAX / ss::kMostBlocks)
      fail(SS_OUT_OF_MEMORY, p.states, " states of up to ", p.mostRows,
           " rows do not fit a pool: create the engine with fewer slots");
    p.chunkCount = int32_t(chunks);
    tableBytes += p.tableBytes();
    worstBytes += p.mappedBytes(chunks, kAssumedUnit);
    expectedBytes += p.mappedBytes(
        divideUp(expectedRows[pool], p.chunkRows), kAssumedUnit);
  }
}

void RowPoolLayout::addLayers(const Manifest &manifest,
                              const std::vector<LayerLayout> &sizes) {
  struct Needs {
    int32_t mostRows = 0;
    std::vector<int32_t> exact;
  };
  std::map<int64_t, Needs> byRowBytes;
  for (size_t l = 0; l < sizes.size(); ++l) {
    const LayerManifest &layer = manifest.layers[l];
    if (layer.denseForm)
      continue;
    Needs &needs = byRowBytes[sizes[l].rowBytes()];
    needs.mostRows = std::max(needs.mostRows, boundOf(layer));
    if (!sizes[l].denseFallback)
      continue;
    needs.mostRows = std::max(needs.mostRows, int32_t(sizes[l].denseRows));
    needs.exact.push_back(int32_t(sizes[l].denseRows));
  }
  for (const auto &[rowBytes, needs] : byRowBytes)
    pools.emplace_back(rowBytes, needs.mostRows, needs.exact);
  for (size_t l = 0; l < sizes.size(); ++l)
    if (!manifest.layers[l].denseForm)
      poolOf[l] = int32_t(
          std::distance(byRowBytes.begin(), byRowBytes.find(sizes[l].rowBytes())));
}

void RowPoolLayout::fitInto(int64_t bytes) {
  int64_t all = 0;
  for (const RowPoolSizes &pool : pools)
    all += pool.mappedBytes(pool.chunkCount, 1);
  if (all <= bytes)
    return;
  const double share = double(bytes) / double(all);
  for (RowPoolSizes &pool : pools)
    pool.chunkCount =
        std::max(1, int32_t(double(pool.chunkCount) * share) - 1);
}

/// The token with which most states of a request are due together.
void RowPoolLayout::countDue(const Manifest &manifest, size_t pool) {
  RowPoolSizes &p = pools[pool];
  int64_t period = 1;
  for (size_t l = 0; l < poolOf.size(); ++l)
    if (poolOf[l] == int32_t(pool))
      period = std::min(kMostPositions,
                        std::lcm(period, int64_t(manifest.layers[l].buffer)));
  for (int64_t position = 0; position < period; ++position) {
    int64_t states = 0, rows = 0;
    for (size_t l = 0; l < poolOf.size(); ++l) {
      const LayerManifest &layer = manifest.layers[l];
      if (poolOf[l] != int32_t(pool) ||
          (position + !layer.compactsBefore) % layer.buffer != layer.phase)
        continue;
      states += layer.heads;
      rows += layer.heads * p.capacityFor(std::min<int64_t>(
                  boundOf(layer), layer.buffer + layer.draft +
                                      int32_t(layer.sinkForm) + kRoomRows));
    }
    p.dueStates = std::max(p.dueStates, states);
    p.dueRows = std::max(p.dueRows, rows);
  }
}

} // namespace sinkstate::runtime::cuda
