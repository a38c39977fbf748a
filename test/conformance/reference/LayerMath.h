//===- LayerMath.h - Gates and norms in float64 -----------------*- C++ -*-===//
//
// What happens to raw inputs before they meet the state: docs/state-math.md
// section 1 and the attributes of docs/interfaces.md section 1.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_LAYERMATH_H
#define SINKSTATE_REFERENCE_LAYERMATH_H

#include "ModelSpec.h"

#include <vector>

namespace sinkstate::reference {

using Vector = std::vector<double>;

double softplus(double x);
double sigmoid(double x);

/// `x` normalised as the layer asks, times `scale`.
Vector normalized(const LayerSpec &layer, const float *x, double scale);

/// Log-decay of one head: one value, or one per key channel.
Vector logDecay(const LayerSpec &layer, int64_t head, const float *gate,
                const float *aLog, const float *dtBias);

/// Weight of a write: beta after the sigmoid, or the time step of mamba2.
double writeWeight(const LayerSpec &layer, int64_t head, const float *gate,
                   const float *beta, const float *dtBias);

} // namespace sinkstate::reference

#endif
