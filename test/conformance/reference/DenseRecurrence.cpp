//===- DenseRecurrence.cpp - The recurrence itself, in float64 ------------===//

#include "DenseRecurrence.h"

#include <cmath>

namespace sinkstate::reference {

DenseRecurrence::DenseRecurrence(const LayerSpec &layer)
    : layer(layer), h(size_t(layer.heads) * size_t(layer.dv) *
                      size_t(layer.dk)) {}

Vector DenseRecurrence::step(const TokenInputs &in, const float *aLog,
                             const float *dtBias) {
  Vector y;
  const int64_t group = layer.heads / layer.keyHeads;
  for (int64_t head = 0; head < layer.heads; ++head) {
    const int64_t keyOffset = head / group * layer.dk;
    const Vector q = normalized(layer, in.q + keyOffset, layer.queryScale);
    const Vector k = normalized(layer, in.k + keyOffset, 1);
    const Vector g = logDecay(layer, head, in.gate, aLog, dtBias);
    const double w = writeWeight(layer, head, in.gate, in.beta, dtBias);
    for (int64_t r = 0; r < layer.dv; ++r) {
      double *row = &h[size_t((head * layer.dv + r) * layer.dk)];
      double held = 0, read = 0;
      for (int64_t c = 0; c < layer.dk; ++c) {
        row[c] *= std::exp(g[g.size() == 1 ? 0 : size_t(c)]);
        held += row[c] * k[size_t(c)];
      }
      double u = w * (in.v[head * layer.dv + r] - layer.theta() * held);
      for (int64_t c = 0; c < layer.dk; ++c) {
        row[c] += u * k[size_t(c)];
        read += row[c] * q[size_t(c)];
      }
      y.push_back(read);
    }
  }
  return y;
}

double DenseRecurrence::frobeniusNorm(int64_t head) const {
  const size_t floats = size_t(layer.dv) * size_t(layer.dk);
  double squares = 0;
  for (size_t i = size_t(head) * floats; i < size_t(head + 1) * floats; ++i)
    squares += h[i] * h[i];
  return std::sqrt(squares);
}

} // namespace sinkstate::reference
