//===- Floors.h - Bytes and operations that a step cannot avoid -*- C++ -*-===//
#ifndef SS_BENCH_FLOORS_H
#define SS_BENCH_FLOORS_H

#include "package/Manifest.h"

#include <cstdint>
#include <span>

namespace ss_bench {

/// Of one layer and step.
struct Floor {
  double decodeBytes = 0;  ///< read and written by a decode
  double compactBytes = 0; ///< by the compactions, a step's share of them
  double flops = 0;        ///< of a decode
};

/// `ranks`: of all states, [batch * heads]; not looked at for dense layers.
/// Half a buffer of pairs, queries and keys once per key head, every row once.
Floor floorOf(const sinkstate::runtime::LayerManifest &layer, int32_t batch,
              std::span<const int32_t> ranks);

/// Bytes of the states of a layer: components and weights, whole buffers (keys
/// once per key head), ranks, counts and the like.
double stateBytes(const sinkstate::runtime::LayerManifest &layer, int32_t batch,
                  std::span<const int32_t> ranks);

} // namespace ss_bench

#endif
