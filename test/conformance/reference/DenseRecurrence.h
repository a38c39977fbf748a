//===- DenseRecurrence.h - The recurrence itself, in float64 ----*- C++ -*-===//
//
// The oracle of the suites: H of every head of one request, dense, as
// docs/state-math.md section 1 writes it. Nothing is factored or truncated.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_DENSERECURRENCE_H
#define SINKSTATE_REFERENCE_DENSERECURRENCE_H

#include "LayerMath.h"

#include <utility>

namespace sinkstate::reference {

/// The raw inputs of one request and token in one layer.
struct TokenInputs {
  const float *q, *k; ///< [key_heads, dk]
  const float *v;     ///< [heads, dv]
  const float *gate;  ///< [heads] or [heads, dk]
  const float *beta;  ///< [heads]; mamba2: unused
};

class DenseRecurrence {
public:
  explicit DenseRecurrence(const LayerSpec &layer);

  /// One token; returns y [heads, dv].
  Vector step(const TokenInputs &in, const float *aLog, const float *dtBias);

  /// [heads, dv, dk]
  const Vector &state() const { return h; }
  /// Goes on from another state.
  void setState(Vector state) { h = std::move(state); }
  double frobeniusNorm(int64_t head) const;

private:
  LayerSpec layer;
  Vector h;
};

} // namespace sinkstate::reference

#endif
