//===- Folds.cpp - Full buffers of dense states ---------------------------===//
//
// A dense state takes its pairs in at every fold, in place. In f16 it may leave
// the numbers that the type has digits for: what would become infinite is folded
// in f32 instead, and stored in factors, whose weights are f32; so is what has
// become too small. Where there is no memory for all factors, the largest that
// fit the matrix's place stay, and the status says so; where there are none, the
// state rounds as the type says.
//
//===----------------------------------------------------------------------===//

#include "engine/Engine.h"

#include "numeric/BinaryFloat.h"

#include <algorithm>
#include <cmath>
#include <new>

namespace sinkstate::runtime {
namespace {

/// Largest magnitude, or NaN where there is one.
float largestOf(const float *values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i]))
      return values[i];
    largest = std::max(largest, std::fabs(values[i]));
  }
  return largest;
}

/// Largest magnitude of a stored matrix.
float largestStored(const LayerLayout &layout, const std::byte *matrix) {
  const auto *elements = reinterpret_cast<const uint16_t *>(matrix);
  int largest = 0;
  for (int64_t i = 0; i < layout.denseFloats; ++i)
    largest = std::max(largest, elements[i] & 0x7fff);
  return numeric::F16::widen(uint16_t(largest));
}

/// No element of a fold is larger: decays are at most 1.
float boundOfFold(const LayerState &layer, int32_t state) {
  const LayerManifest &manifest = layer.manifest();
  const LayerLayout &layout = layer.layout();
  const int32_t slot = state / layer.heads(), head = state % layer.heads();
  const int32_t group = manifest.heads / manifest.keyHeads;
  const int64_t capacity = manifest.buffer + manifest.draft;
  const float *keys =
      layer.bufferK.data() +
      (int64_t(slot) * manifest.keyHeads + head / group) * capacity *
          manifest.dk;
  const float *updates = layer.bufferU.data() + state * capacity * manifest.dv;
  float bound = largestStored(layout, layer.rowsOf(state));
  for (int32_t pair = 0; pair < layer.count[slot]; ++pair)
    bound += largestOf(keys + pair * manifest.dk, manifest.dk) *
             largestOf(updates + pair * manifest.dv, manifest.dv);
  return bound;
}

} // namespace

bool isInRange(const LayerLayout &layout, const std::byte *matrix) {
  return layout.storage != Storage::F16 ||
         keepsDigits(layout.storage, largestStored(layout, matrix));
}

/// However many they are: the matrix has no place in its storage.
bool Engine::storeFactors(LayerState &layer, int32_t state,
                          const std::vector<float> &matrix) {
  try {
    return takeFactors(layer, state, factorsOf(layer, matrix.data()),
                       INT64_MAX);
  } catch (const std::bad_alloc &) {
    return false;
  }
}

/// The states whose folds f16 could not hold become factors of what f32 holds;
/// returns the others. What has no factors, as it is not finite, is among them
/// and rounds as the type says.
std::vector<int32_t> Engine::foldBeyondRange(LayerState &layer,
                                             const States &work) {
  const LayerLayout &layout = layer.layout();
  States inPlace;
  std::vector<float> matrix;
  for (int32_t state : work) {
    // What is surely below the limit is not looked at any closer.
    if (boundOfFold(layer, state) < kF16Beyond) {
      inPlace.push_back(state);
      continue;
    }
    matrix.resize(size_t(layout.denseFloats));
    const int64_t place = 0;
    launchDensify(layer, {&state, 1}, matrix.data(), {&place, 1});
    device.wait();
    if (largestOf(matrix.data(), layout.denseFloats) < kF16Beyond ||
        !storeFactors(layer, state, matrix))
      inPlace.push_back(state);
  }
  return inPlace;
}

void Engine::fold(LayerState &layer, const DueWork &due) {
  const LayerLayout &layout = layer.layout();
  counters.folds += int64_t(due.dense.size());
  if (layout.storage != Storage::F16) {
    // In place: a dense state is written once in K tokens.
    launchDensify(layer, due.dense, storedOut(layer), due.foldBase);
    return;
  }
  const States inPlace = foldBeyondRange(layer, due.dense);
  std::vector<int64_t> bases;
  for (int32_t state : inPlace)
    bases.push_back(storedPlace(layout, layer.rowBase[state]));
  if (!inPlace.empty())
    launchDensify(layer, inPlace, storedOut(layer), bases);
  device.wait();
  std::vector<float> matrix;
  for (int32_t state : inPlace) {
    if (isInRange(layout, layer.rowsOf(state)))
      continue;
    matrix.resize(size_t(layout.denseFloats));
    layer.readRows(state, matrix.data(), layout.denseFloats);
    if (storeFactors(layer, state, matrix))
      continue;
    layer.status[state] |= SS_STATUS_OUT_OF_RANGE;
    if (!std::isfinite(largestOf(matrix.data(), layout.denseFloats)))
      layer.status[state] |= SS_STATUS_NOT_FINITE;
    ++counters.out_of_range;
  }
}

} // namespace sinkstate::runtime
