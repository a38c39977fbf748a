//===- LayerLayout.cpp - Sizes of the states of one layer -----------------===//

#include "state/LayerLayout.h"

#include "capi/Failure.h"
#include "state/RowPool.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {
/// The least relative weight that is kept whatever the policy (2^-22): below
/// it a float32 component is rounding.
constexpr float kLeastRelativeWeight = 0x1p-22f;

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
} // namespace

LayerLayout::LayerLayout(const LayerManifest &layer, int32_t slots,
                         bool denseFallback)
    : states(int64_t(slots) * layer.heads), storage(layer.storage),
      rowFloats(layer.dk + layer.dv),
      denseFloats(int64_t(layer.dk) * layer.dv),
      denseRows(divideUp(denseFloats, rowFloats)),
      breakEvenRank(divideUp(denseStateBytes(), rowBytes() + 4)),
      fixedRank(layer.policy.kind == PolicyKind::Fixed), slots(slots),
      rankBound(layer.rank), buffer(layer.buffer),
      valueFloats(layer.dv), denseForm(layer.denseForm),
      deferred(layer.deferred) {
  // Work lists name states with 32 bits.
  if (states > INT32_MAX)
    fail(SS_INVALID_ARGUMENT, slots, " slots of ", layer.heads,
         " heads in layer '", layer.name, "', expected at most ", INT32_MAX,
         " states: create the engine with fewer slots");
  this->denseFallback =
      denseFallback && !fixedRank && !denseForm && holdsMatrices(storage);
  int64_t pairs = int64_t(layer.buffer) + layer.draft;
  int64_t decayFloats = layer.channelDecay ? layer.dk : 1;
  bool buffered = !denseForm || deferred;
  // Deferred layers have two halves of keys in turn: docs/interfaces.md.
  int64_t keyRows = deferred ? 2 * pairs : pairs;
  bufferKFloats = buffered * (slots * layer.keyHeads * keyRows * layer.dk);
  bufferUFloats = buffered * (states * pairs * layer.dv);
  bufferGFloats = buffered * (states * pairs * decayFloats);
  denseFormFloats = denseForm * (states * denseFloats);
  setPolicy(layer);
  setClasses(layer);
}

void LayerLayout::setPolicy(const LayerManifest &layer) {
  policyValue = 0;
  maxRank = layer.rank;
  dropBelow = kLeastRelativeWeight;
  const double value = layer.policy.value;
  switch (layer.policy.kind) {
  case PolicyKind::Relative:
    policyValue = float(value);
    dropBelow = std::max(policyValue, kLeastRelativeWeight);
    break;
  case PolicyKind::Fixed:
    maxRank = int32_t(value) + layer.sinkForm;
    break;
  case PolicyKind::Energy:
    policyValue = float(value);
    break;
  case PolicyKind::Budget: {
    double rows = (value - double(buffer * rowFloats * 4)) /
                  double(rowBytes() + 4);
    maxRank = int32_t(std::min(rows, double(layer.rank)));
    break;
  }
  }
}

void LayerLayout::setClasses(const LayerManifest &layer) {
  mostRows = 0;
  if (denseForm)
    return;
  // Fine steps where most states are, coarser ones above.
  for (int64_t rows = 8; rows < rankBound;
       rows += rows < 64 ? 8 : rows < 256 ? 16 : 64)
    classes.push_back(rows);
  classes.push_back(rankBound);
  mostRows = rankBound;
  if (denseFallback) {
    classes.push_back(denseRows);
    // After a compaction a factored state is below the break-even rank, and
    // takes a full buffer in before the next.
    int64_t factored = breakEvenRank - 1 + layer.buffer + layer.draft;
    // What leaves the range of f16 comes in factors, however many they are.
    if (storage == Storage::F16)
      factored = rankBound;
    mostRows = std::max(denseRows, std::min(rankBound, factored));
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
}

int64_t LayerLayout::liveBytes(int64_t rank, bool hasSink) const {
  int64_t dense = denseStateBytes();
  if (denseForm || rank < 0)
    return dense;
  int64_t bufferBytes = buffer * rowFloats * 4;
  int64_t factored = rank * rowBytes() + rank * 4 +
                     (fixedRank ? bufferBytes / 2 : bufferBytes);
  if (hasSink && rank > 0)
    factored -= sharedBytes();
  return holdsMatrices(storage) ? std::min(factored, dense) : factored;
}

size_t LayerLayout::partBytes(int64_t count, size_t elementBytes) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = checkedProduct(size_t(count), elementBytes);
  return checkedProduct(bytes / kAlignment + (bytes % kAlignment != 0),
                        kAlignment);
}

int64_t LayerLayout::fixedBytes(const Device &device) const {
  size_t bytes = 0;
  for (int64_t floats :
       {bufferKFloats, bufferUFloats, bufferGFloats})
    bytes += partBytes(floats, sizeof(float));
  bytes += partBytes(denseFormFloats, size_t(elementBytes(storage)));
  if (!denseForm) {
    bytes += partBytes(states, sizeof(int64_t));     // row_base
    // rank, status, row_capacity
    bytes += 3 * partBytes(states, sizeof(int32_t));
  }
  if (!denseForm || deferred)
    bytes += partBytes(slots, sizeof(int32_t));      // count
  return int64_t(wholePages(device, bytes));
}

int64_t LayerLayout::worstCaseBytes(const Device &device) const {
  if (denseForm)
    return fixedBytes(device);
  return fixedBytes(device) + RowPool::worstCaseBytes(device, states, classes,
                                                      rowBytes(), mostRows);
}

int64_t LayerLayout::expectedBytes(const Device &device) const {
  if (denseForm)
    return fixedBytes(device);
  int64_t rows = std::min(rankBound / 2, mostRows);
  auto sizeClass = std::lower_bound(classes.begin(), classes.end(), rows);
  return fixedBytes(device) + states * *sizeClass * (rowBytes() + 4);
}

} // namespace sinkstate::runtime
