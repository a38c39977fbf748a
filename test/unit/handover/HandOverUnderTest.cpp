#include "HandOverUnderTest.h"

#include "PackedCall.h"

namespace sinkstate::test {
namespace {

/// Inputs of some tokens of one layer, [tokens, heads, ..].
struct TokenArrays {
  std::vector<float> q, k, v, gate, beta, y;

  TokenArrays(const LayerSpec &layer, size_t index, uint64_t seed,
              int64_t from, int32_t tokens)
      : y(size_t(tokens * layer.valueFloats())) {
    const RandomRequest request(layer, seed * 1009 + index);
    auto append = [](std::vector<float> &all, const std::vector<float> &some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    for (int32_t token = 0; token < tokens; ++token) {
      const TokenValues values = request.token(from + token);
      append(q, values.q);
      append(k, values.k);
      append(v, values.v);
      append(gate, values.gate);
      append(beta, values.beta);
    }
  }
};

void decodeOnce(EngineUnderTest &test, int32_t slot, uint64_t seed,
                int64_t from, int32_t tokens, Outputs &outputs) {
  const auto &layers = test.kernels.layers();
  std::vector<TokenArrays> all; // as long as the step runs
  all.reserve(layers.size());
  test.engine.beginStep(&slot, 1);
  for (size_t i = 0; i < layers.size(); ++i) {
    TokenArrays &arrays = all.emplace_back(layers[i], i, seed, from, tokens);
    const LayerWeights &weights = test.driver.weights(i);
    decodePacked(test.engine, int32_t(i),
                 packedCall(layers[i], arrays, weights.aLog.data(),
                            weights.dtBias.data(), &slot, 1),
                 tokens);
  }
  test.engine.endStep(&slot, 1);
  (void)test.engine.position(slot); // waits for all of it
  for (size_t i = 0; i < layers.size(); ++i)
    outputs[i].insert(outputs[i].end(), all[i].y.begin(), all[i].y.end());
}

} // namespace

std::vector<LayerSpec> threeLayers(int32_t draft, double eps) {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 16, 24),
                                   mamba2Layer(4, 2, 24, 16),
                                   kdaLayer(2, 2, 16, 16)};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].index = int32_t(2 * i);
    layers[i].phase = int32_t(3 * i);
    layers[i].draft = draft;
    layers[i].active = 4;
    layers[i].policyValue = eps;
  }
  return layers;
}

std::vector<LayerSpec> mixedLayers(double eps) {
  std::vector<LayerSpec> layers = threeLayers(0, eps);
  layers[1].before = layers[2].before = true;
  return layers;
}

Outputs decode(EngineUnderTest &test, int32_t slot, uint64_t seed,
               int64_t from, int32_t tokens, bool single) {
  Outputs outputs(test.kernels.layers().size());
  if (!single)
    decodeOnce(test, slot, seed, from, tokens, outputs);
  for (int32_t token = 0; single && token < tokens; ++token)
    decodeOnce(test, slot, seed, from + token, 1, outputs);
  return outputs;
}

Seen look(EngineUnderTest &test, int32_t slot) {
  Seen seen{test.engine.position(slot), {}, {}, {}};
  for (int32_t i = 0; i < test.engine.layerCount(); ++i) {
    seen.ranks.push_back(test.engine.ranks(i, slot));
    seen.status.push_back(test.engine.status(i, slot));
    seen.states.push_back(test.engine.densify(i, slot));
  }
  return seen;
}

} // namespace sinkstate::test
