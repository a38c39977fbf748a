//===- LayerShape.h - sizes of a layer's states -----------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_LAYERSHAPE_H
#define SINKSTATE_PASSES_SSTOSSK_LAYERSHAPE_H

#include "dialect/ss/SS.h"

namespace sinkstate {

/// The sizes that a kernel is specialised for, read off a state type.
struct LayerShape {
  int64_t heads, keyHeads, dv, dk;
  int64_t active;
  int64_t capacity; ///< pairs the buffer holds: K and the draft tokens
  int64_t rankBound;
  bool channelDecay; ///< one decay per key channel instead of per head
  bool delta;        ///< theta = 1: the delta rule's correction
  bool hasBeta;
  ss::Form form;
  ss::Storage storage; ///< element type of stored rows and of dense states
  bool stochastic;     ///< rounded so, to that type
  bool sink;           ///< the first component is one

  static LayerShape of(ss::StateType type);

  /// Components and a buffer, with a sink or without.
  bool isFactored() const {
    return form == ss::Form::factored || form == ss::Form::sink;
  }
  bool isDense() const { return form == ss::Form::dense; }
  bool isDeferred() const { return form == ss::Form::deferred; }
  /// Elements of one component row [v | u].
  int64_t rowLength() const { return dk + dv; }
  /// Whether stored rows have fewer bits than what is computed with.
  bool isNarrow() const { return storage != ss::Storage::f32; }
  /// Bytes of one element of a stored row.
  int64_t elementBytes() const {
    return !isNarrow() ? 4 : storage == ss::Storage::fp8 ? 1 : 2;
  }
  mlir::Type storageType(mlir::MLIRContext *context) const;
  /// Whether a state may be dense: 8 bits hold rows of unit length alone.
  bool mayBeDense() const { return storage != ss::Storage::fp8; }
  /// Value heads that share one key head.
  int64_t group() const { return heads / keyHeads; }
  /// Components and pairs that take part in one compaction.
  int64_t block() const { return active + capacity; }
};

/// The largest divisor of `size` that is at most `wanted`.
int64_t largestDivisor(int64_t size, int64_t wanted);

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_LAYERSHAPE_H
