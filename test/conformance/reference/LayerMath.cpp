//===- LayerMath.cpp - Gates and norms in float64 -------------------------===//

#include "LayerMath.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::reference {

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Vector normalized(const LayerSpec &layer, const float *x, double scale) {
  double squares = 0;
  for (int32_t i = 0; i < layer.dk; ++i)
    squares += double(x[i]) * x[i];
  double factor = scale;
  if (layer.norm == NormKind::Add)
    factor /= std::sqrt(squares + layer.normEpsilon);
  else if (layer.norm == NormKind::Max)
    factor /= std::max(std::sqrt(squares), layer.normEpsilon);
  Vector result(x, x + layer.dk);
  for (double &value : result)
    value *= factor;
  return result;
}

Vector logDecay(const LayerSpec &layer, int64_t head, const float *gate,
                const float *aLog, const float *dtBias) {
  const int64_t channels = layer.channelDecay() ? layer.dk : 1;
  const double rate = std::exp(double(aLog[head]));
  Vector decay;
  for (int64_t i = head * channels; i < (head + 1) * channels; ++i) {
    double x = double(gate[i]) + dtBias[i];
    decay.push_back(layer.gate == GateKind::BoundedChannel
                        ? layer.gateBound * sigmoid(rate * x)
                        : -rate * softplus(x));
  }
  return decay;
}

double writeWeight(const LayerSpec &layer, int64_t head, const float *gate,
                   const float *beta, const float *dtBias) {
  if (!layer.hasBeta())
    return softplus(double(gate[head]) + dtBias[head]);
  return sigmoid(double(beta[head])) * layer.betaScale;
}

} // namespace sinkstate::reference
