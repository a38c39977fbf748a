//===- SinkFixture.cpp - Engines whose heads have mean values -------------===//

#include "SinkFixture.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace sinkstate::conformance {

std::vector<float> meansOf(const LayerSpec &layer, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> means(size_t(layer.valueFloats()));
  for (size_t i = 0; i + (layer.heads > 1 ? size_t(layer.dv) : 0) < means.size();
       ++i)
    means[i] = 0.3f * normal(random);
  return means;
}

SinkFixture::Sunk::Sunk(const Case &parameter, int32_t slots, bool withSinks)
    : Running(parameter, plainOptions(slots)) {
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    means.push_back(meansOf(layers[layer], 40 + layer));
    if (withSinks && layers[layer].sinkForm)
      engine.setSink(int32_t(layer), means.back());
  }
}

RequestStyle SinkFixture::Sunk::style() const {
  RequestStyle style;
  style.adjust = [this](int64_t, TokenValues &token) {
    for (size_t layer = 0; layer < means.size(); ++layer)
      if (means[layer].size() == token.v.size())
        for (size_t i = 0; i < token.v.size(); ++i)
          token.v[i] += 4 * means[layer][i];
  };
  return style;
}

double SinkFixture::sinkError(Sunk &run, DrivenRequest &request, size_t layer) {
  const LayerSpec &spec = run.layers[layer];
  const std::vector<float> h = run.engine.densify(int32_t(layer), request.slot);
  const reference::Vector &exact = request.exact(layer).state();
  double worst = 0;
  for (int64_t head = 0; head < spec.heads; ++head) {
    const float *mean = run.means[layer].data() + head * spec.dv;
    double square = 0, mass = 0;
    std::vector<double> off(size_t(spec.dk));
    for (int64_t v = 0; v < spec.dv; ++v) {
      mass += double(mean[v]) * mean[v];
      for (int64_t k = 0; k < spec.dk; ++k) {
        const size_t at = size_t((head * spec.dv + v) * spec.dk + k);
        off[size_t(k)] += mean[v] * (h[at] - exact[at]);
      }
    }
    for (double x : off)
      square += x * x;
    if (mass > 0)
      worst = std::max(worst, std::sqrt(square / mass) /
                                  request.exact(layer).frobeniusNorm(head));
  }
  return worst;
}

} // namespace sinkstate::conformance
