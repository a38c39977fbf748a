//===- StateBackend.h - Who keeps the recurrent states ----------*- C++ -*-===//
//
// The decode loop knows the states of a model by this interface alone. An
// engine that adopts SinkState replaces what stands behind it and nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef TINY_HYBRID_STATE_BACKEND_H
#define TINY_HYBRID_STATE_BACKEND_H

#include "Result.h"

namespace tiny_hybrid {

/// What one recurrent layer feeds to its states for one token of every request
/// of the batch. All arrays are packed rows of float32.
struct StateInput {
  const float *q;      ///< [batch, key heads, dk], not normalised
  const float *k;      ///< [batch, key heads, dk], not normalised
  const float *v;      ///< [batch, heads, dv]
  const float *gate;   ///< [batch, heads], kda: [batch, heads, dk]; raw
  const float *beta;   ///< [batch, heads] before the sigmoid; mamba2: null
  const float *aLog;   ///< [heads]
  const float *dtBias; ///< [heads], kda: [heads, dk]
};

class StateBackend {
public:
  virtual ~StateBackend() = default;

  /// Updates the states of recurrent layer `layer` (its place among all layers
  /// of the model, attention counted) and writes what they answer to the
  /// queries: y = H q, [batch, heads, dv].
  virtual Status decodeLayer(int layer, const StateInput &input, float *y) = 0;

  /// Every layer has decoded the token.
  virtual Status endStep() = 0;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_STATE_BACKEND_H
