//===- LaneLayout.h - How tiles lie over lanes ------------------*- C++ -*-===//
//
// The rule by which the elements of a tile are spread over the 32 lanes of a
// warp. codegen/cuda/device/tile.cuh has the same rule for device code.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSK_LANELAYOUT_H
#define SINKSTATE_PASSES_SSK_LANELAYOUT_H

#include <cstdint>

namespace sinkstate::ssk {

constexpr int64_t kWarpSize = 32;

/// Consecutive elements that a lane holds: the smallest of 1, 2, 4 that divides
/// `count` and needs the fewest accesses. Element e is component e % width of
/// chunk e / (32 width) in lane (e / width) % 32.
constexpr int64_t getLaneWidth(int64_t count) {
  int64_t best = 1;
  for (int64_t width = 2; width <= 4; width *= 2)
    if (count % width == 0 &&
        (count - 1) / (kWarpSize * width) < (count - 1) / (kWarpSize * best))
      best = width;
  return best;
}

/// Registers of one lane for `count` elements over the lanes.
constexpr int64_t getLaneSize(int64_t count) {
  int64_t width = getLaneWidth(count);
  return (count + kWarpSize * width - 1) / (kWarpSize * width) * width;
}

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_LANELAYOUT_H
