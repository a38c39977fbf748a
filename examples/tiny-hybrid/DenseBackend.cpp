//===- DenseBackend.cpp - States as plain matrices ------------------------===//

#include "DenseBackend.h"

#include <algorithm>
#include <cmath>

using namespace tiny_hybrid;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

/// x / max(|x|, 1e-12) * scale
void normalize(const float *x, int size, double scale, float *out) {
  double squares = 0;
  for (int c = 0; c < size; ++c)
    squares += static_cast<double>(x[c]) * x[c];
  double factor = scale / std::max(std::sqrt(squares), 1e-12);
  for (int c = 0; c < size; ++c)
    out[c] = static_cast<float>(x[c] * factor);
}

/// The decay of every key channel of one head.
void decayOf(LayerKind kind, const RecurrentSizes &sizes,
             const StateInput &input, int request, int head, float *decay) {
  double rate = -std::exp(static_cast<double>(input.aLog[head]));
  bool perChannel = kind == LayerKind::Kda;
  int width = perChannel ? sizes.dk : 1;
  const float *gate =
      input.gate + (static_cast<size_t>(request) * sizes.heads + head) * width;
  const float *bias = input.dtBias + static_cast<size_t>(head) * width;
  for (int c = 0; c < width; ++c)
    decay[c] = static_cast<float>(
        std::exp(rate * softplus(static_cast<double>(gate[c]) + bias[c])));
  if (!perChannel)
    std::fill(decay + 1, decay + sizes.dk, decay[0]);
}

} // namespace

DenseBackend::DenseBackend(const Config &config, int batch, int threads)
    : batch(batch), threads(threads) {
  for (LayerKind kind : config.layers) {
    Layer layer{kind, {}, {}};
    if (kind != LayerKind::Attention) {
      layer.sizes = config.recurrent(kind);
      layer.states.resize(static_cast<size_t>(batch) * layer.sizes.heads *
                          layer.sizes.dk * layer.sizes.dv);
    }
    layers.push_back(std::move(layer));
  }
}

Status DenseBackend::decodeLayer(int layer, const StateInput &input, float *y) {
  Layer &states = layers[layer];
  int heads = states.sizes.heads;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int state = 0; state < batch * heads; ++state)
    decodeHead(states, input, state / heads, state % heads,
               y + static_cast<size_t>(state) * states.sizes.dv);
  return std::nullopt;
}

void DenseBackend::decodeHead(Layer &layer, const StateInput &input,
                              int request, int head, float *y) const {
  const RecurrentSizes &sizes = layer.sizes;
  const int dk = sizes.dk, dv = sizes.dv;
  const size_t state = static_cast<size_t>(request) * sizes.heads + head;
  const int keyHead = head / (sizes.heads / sizes.keyHeads);
  const size_t keyRow =
      (static_cast<size_t>(request) * sizes.keyHeads + keyHead) * dk;
  const bool deltaRule = layer.kind != LayerKind::Mamba2;
  float *h = layer.states.data() + state * dk * dv;

  std::vector<float> q(input.q + keyRow, input.q + keyRow + dk);
  std::vector<float> k(input.k + keyRow, input.k + keyRow + dk);
  if (deltaRule) {
    normalize(q.data(), dk, 1 / std::sqrt(static_cast<double>(dk)), q.data());
    normalize(k.data(), dk, 1, k.data());
  }
  std::vector<float> decay(dk);
  decayOf(layer.kind, sizes, input, request, head, decay.data());
  double weight = deltaRule ? sigmoid(input.beta[state])
                            : softplus(static_cast<double>(input.gate[state]) +
                                       input.dtBias[head]);

  // Decay, and with the delta rule what the decayed state holds for the key.
  std::vector<float> held(dv, 0.0f);
  for (int c = 0; c < dk; ++c) {
    float *row = h + static_cast<size_t>(c) * dv;
    for (int r = 0; r < dv; ++r) {
      row[r] *= decay[c];
      held[r] += row[r] * k[c];
    }
  }
  std::vector<float> u(dv);
  const float *v = input.v + state * dv;
  for (int r = 0; r < dv; ++r)
    u[r] = static_cast<float>(weight) * (deltaRule ? v[r] - held[r] : v[r]);

  // Append the pair and read out.
  std::fill(y, y + dv, 0.0f);
  for (int c = 0; c < dk; ++c) {
    float *row = h + static_cast<size_t>(c) * dv;
    for (int r = 0; r < dv; ++r) {
      row[r] += u[r] * k[c];
      y[r] += row[r] * q[c];
    }
  }
}
