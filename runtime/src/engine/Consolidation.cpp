//===- Consolidation.cpp - Exact SVDs between compactions -----------------===//
//
// Compaction keeps the frozen part of a state out of its small SVD, so that
// frozen components slowly lose their orthogonality and their number grows. An
// exact SVD of the frozen part alone, every few compactions, undoes that.
//
//===----------------------------------------------------------------------===//

#include "consolidation/ExactSvd.h"
#include "consolidation/RowOrder.h"
#include "engine/Engine.h"
#include "engine/StatusBits.h"
#include "engine/Stopwatch.h"

#include "sinkstate/routines.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace sinkstate::runtime {
namespace {

using consolidation::SvdResult;
using consolidation::SvdStatus;
using consolidation::Truncation;

/// Keeps the `count` rows of largest weight; needs no memory.
void dropSmallest(LayerState &layer, int64_t state, int32_t count) {
  float *weights = layer.weightsOf(state);
  std::byte *rows = layer.rowsOf(state);
  const int64_t width = layer.layout().rowBytes();
  for (int32_t rank = layer.rank[state]; rank > count; --rank) {
    float *least = std::min_element(weights, weights + rank);
    std::copy_n(rows + (rank - 1) * width, width,
                rows + (least - weights) * width);
    *least = weights[rank - 1];
  }
}

/// Consolidates one state; whatever goes wrong leaves it as it was.
void consolidateState(LayerState &layer, int64_t state) {
  const LayerManifest &manifest = layer.manifest();
  const int64_t width = layer.layout().rowFloats;
  const int32_t rank = layer.rank[state];
  const int32_t active = std::min(manifest.active, rank);
  std::vector<float> weights(layer.weightsOf(state),
                             layer.weightsOf(state) + rank);
  if (!std::all_of(weights.begin(), weights.end(),
                   [](float w) { return std::isfinite(w); })) {
    layer.status[state] |= SS_STATUS_NOT_FINITE;
    return;
  }
  std::vector<float> rows(size_t(rank * width));
  layer.readRows(state, rows.data(), rank * width);
  consolidation::largestFirst(rows.data(), weights.data(), rank, width, active);
  Truncation truncation;
  truncation.eps = layer.layout().dropBelow;
  truncation.largest = *std::max_element(weights.begin(), weights.end());
  const SvdResult result = consolidation::consolidate(
      rows.data() + active * width, weights.data() + active, rank - active,
      manifest.dk, manifest.dv, truncation);
  layer.status[state] |= statusBits(result.status);
  if (result.status != SvdStatus::ok)
    return;
  layer.rank[state] = active + result.rank;
  layer.writeRows(state, rows.data(), layer.rank[state] * width);
  std::copy_n(weights.begin(), layer.rank[state], layer.weightsOf(state));
}

/// Runs `body(i)` for i in [0, count) on the host's threads. An iteration that
/// finds no memory is left out: none of this work is needed for correctness.
template <typename Body>
void forEachState(int threads, size_t count, const Body &body) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (size_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (const std::bad_alloc &) {
    }
  }
}

} // namespace

void Engine::consolidate(LayerState &layer, const States &work) {
  States due;
  for (int32_t state : work)
    if (layer.rank[state] > layer.manifest().active)
      due.push_back(state);
  if (due.empty())
    return;
  Stopwatch time(counters.consolidate_seconds);
  int64_t removed = 0;
  for (int32_t state : due)
    removed += layer.rank[state];
  forEachState(device.threads(), due.size(),
               [&](size_t i) { consolidateState(layer, due[i]); });
  for (int32_t state : due)
    removed -= layer.rank[state];
  counters.components_removed += removed;
  counters.consolidations += int64_t(due.size());
}

/// Whether a state goes dense is decided by the rank that its SVD leaves, in
/// deterministic mode as in line: there such a state does not wait for its
/// result. Takes those states out of `work`.
void Engine::consolidateAtBreakEven(LayerState &layer, States &work) {
  const LayerLayout &layout = layer.layout();
  if (!layout.denseFallback)
    return;
  const auto first = std::stable_partition(
      work.begin(), work.end(), [&](int32_t state) {
        return layer.rank[state] < layout.breakEvenRank;
      });
  const States atOnce(first, work.end());
  work.erase(first, work.end());
  consolidate(layer, atOnce);
  counters.consolidation_waits += !atOnce.empty();
}

void Engine::fitIntoBound(LayerState &layer, const States &work) {
  try {
    consolidate(layer, work);
  } catch (const std::bad_alloc &) {
    // Then rows are dropped below.
  }
  for (int32_t state : work) {
    const int64_t slot = state / layer.heads();
    const int32_t most = layer.manifest().rank - layer.count[slot];
    if (layer.rank[state] <= most)
      continue;
    // Only where the SVD failed: independent rows always fit.
    dropSmallest(layer, state, most);
    layer.rank[state] = most;
    layer.status[state] |= SS_STATUS_TIGHTENED;
  }
}

Engine::Factors Engine::factorsOf(const LayerState &layer,
                                  const float *matrix) const {
  const LayerManifest &manifest = layer.manifest();
  const int64_t most = std::min(manifest.dv, manifest.dk);
  Factors found{std::vector<float>(size_t(most * layer.layout().rowFloats)),
                std::vector<float>(size_t(most)), std::nullopt};
  Truncation truncation;
  truncation.eps = layer.layout().dropBelow;
  found.result =
      consolidation::factorize(matrix, manifest.dk, manifest.dv, truncation,
                               found.rows.data(), found.weights.data());
  return found;
}

bool Engine::takeFactors(LayerState &layer, int32_t state,
                         const Factors &factors, int64_t mostRank) {
  if (!factors.result)
    return false;
  int32_t rank = factors.result->rank;
  layer.status[state] |= statusBits(factors.result->status);
  if (factors.result->status != SvdStatus::ok || rank > mostRank)
    return false;
  // Without memory for another block the matrix makes room for them.
  const int64_t rows = rank + layer.manifest().buffer;
  layer.renewBlock(state, rows);
  const int64_t capacity = layer.capacityOf(state);
  if (capacity < rows && mostRank < INT64_MAX &&
      options.exhaustion == SS_EXHAUSTION_TIGHTEN)
    return false; // what would be tightened at once stays dense
  if (rank > capacity) {
    rank = int32_t(capacity);
    layer.status[state] |= SS_STATUS_TIGHTENED;
    ++counters.tightened;
  }
  layer.rank[state] = rank;
  layer.compactions[size_t(state)] = 0;
  layer.writeRows(state, factors.rows.data(),
                  rank * layer.layout().rowFloats);
  device.copy(layer.weightsOf(state), factors.weights.data(),
              size_t(rank) * sizeof(float));
  ++counters.went_factored;
  return true;
}

void Engine::returnToFactors(LayerState &layer, const States &work) {
  if (work.empty())
    return;
  Stopwatch time(counters.consolidate_seconds);
  std::vector<Factors> factors(work.size());
  forEachState(device.threads(), work.size(), [&](size_t i) {
    std::vector<float> matrix(size_t(layer.layout().denseFloats));
    layer.readRows(work[i], matrix.data(), int64_t(matrix.size()));
    factors[i] = factorsOf(layer, matrix.data());
  });
  // Well below the break-even rank, so that it does not go back at once.
  const int64_t mostRank = 3 * layer.layout().breakEvenRank / 4;
  for (size_t i = 0; i < work.size(); ++i)
    takeFactors(layer, work[i], factors[i], mostRank);
}

} // namespace sinkstate::runtime
