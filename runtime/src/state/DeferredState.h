//===- DeferredState.h - Dense states that are written late -----*- C++ -*-===//
//
// Layers of the form `deferred`: a dense matrix, and the pairs of the tokens
// since it was last written. A decode with a full buffer writes them into the
// matrix. docs/interfaces.md section 3.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_STATE_DEFERREDSTATE_H
#define SINKSTATE_STATE_DEFERREDSTATE_H

#include "package/Manifest.h"

#include <cstdint>

namespace sinkstate::runtime {

/// What `count` is after a token. From 0 to the buffer's K: pairs whose keys are
/// in the first half of `buffer_k`; up to 2 K: K more than pairs whose keys are in
/// the second.
inline int32_t nextDeferredCount(int32_t count, int32_t buffer) {
  return count == 2 * buffer ? 1 : count + 1;
}

/// One slot's `count` and its part of the buffers, in host memory.
struct DeferredPairs {
  int32_t count;
  const float *k, *u, *g; ///< [key_heads, 2 K, dk], [heads, K, dv], [heads, K, ..]
};

/// `states` are a slot's matrices as they lie in memory, [heads, dk, dv], and
/// become its states, [heads, dv, dk]. For inspection: computes in double.
void addDeferredPairs(const LayerManifest &layer, const DeferredPairs &pairs,
                      float *states);

/// Throws SS_NOT_SUPPORTED for a deferred layer, whose states are not handed
/// over: the form is there to be measured against.
void refuseDeferred(const LayerManifest &layer);

} // namespace sinkstate::runtime

#endif
