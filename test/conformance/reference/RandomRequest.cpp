//===- RandomRequest.cpp - Inputs that look like a model's ----------------===//

#include "RandomRequest.h"

#include <random>

namespace sinkstate::reference {
namespace {

using Generator = std::mt19937_64;

std::vector<float> normals(Generator &random, int64_t count, double mean,
                           double deviation) {
  std::normal_distribution<double> normal(0, 1);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(float(mean + deviation * normal(random)));
  return values;
}

/// `count` vectors of `size`: mixtures of the rows of `basis`, plus noise.
std::vector<float> mixtures(Generator &random, int64_t count, int64_t size,
                            const std::vector<float> &basis,
                            const RequestStyle &style) {
  if (style.rank == 0)
    return normals(random, count * size, 0, 1);
  std::vector<float> values =
      normals(random, count * size, 0, style.noise);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> mix = normals(random, style.rank, 0, 1);
    for (int64_t r = 0; r < style.rank; ++r)
      for (int64_t c = 0; c < size; ++c)
        values[size_t(i * size + c)] +=
            mix[size_t(r)] * basis[size_t(r * size + c)];
  }
  return values;
}

} // namespace

LayerWeights randomWeights(const LayerSpec &layer, uint64_t seed) {
  Generator random(seed * 7919 + 17);
  return {normals(random, layer.heads, -2.0, 0.5),
          normals(random, layer.gateFloats(), -1.0, 0.5)};
}

RandomRequest::RandomRequest(const LayerSpec &layer, uint64_t seed,
                             RequestStyle style)
    : layer(layer), seed(seed), style(style) {
  Generator random(seed * 104729 + 1);
  keyBasis = normals(random, int64_t(style.rank) * layer.dk, 0, 1);
  valueBasis = normals(random, int64_t(style.rank) * layer.dv, 0, 1);
}

TokenValues RandomRequest::token(int64_t position) const {
  Generator random(seed * 1000003 + uint64_t(position) * 31 + 5);
  TokenValues token;
  token.q = normals(random, layer.keyFloats(), 0, 1);
  token.k = mixtures(random, layer.keyHeads, layer.dk, keyBasis, style);
  token.v = mixtures(random, layer.heads, layer.dv, valueBasis, style);
  // Keys of mamba2 are not normalised: keep their length near 1.
  if (layer.norm == NormKind::None)
    for (float &x : token.k)
      x /= float(layer.dk) / 8;
  token.gate = normals(random, layer.gateFloats(), style.gateMean, 1);
  token.beta = normals(random, layer.heads, 0, 1);
  if (style.adjust)
    style.adjust(position, token);
  return token;
}

} // namespace sinkstate::reference
