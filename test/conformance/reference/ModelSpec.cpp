//===- ModelSpec.cpp - Models that the test suites run --------------------===//

#include "ModelSpec.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::reference {

int32_t LayerSpec::rank() const {
  if (policyKind == "fixed")
    return int32_t(policyValue) + buffer + draft;
  return std::min(dv, dk) + active + buffer + draft;
}

static LayerSpec layerOf(const char *type, int32_t heads, int32_t keyHeads,
                         int32_t dv, int32_t dk) {
  LayerSpec layer;
  layer.type = type;
  layer.heads = heads;
  layer.keyHeads = keyHeads;
  layer.dv = dv;
  layer.dk = dk;
  return layer;
}

LayerSpec mamba2Layer(int32_t heads, int32_t keyHeads, int32_t dv,
                      int32_t dk) {
  LayerSpec layer = layerOf("mamba2", heads, keyHeads, dv, dk);
  layer.norm = NormKind::None;
  return layer;
}

LayerSpec gdnLayer(int32_t heads, int32_t keyHeads, int32_t dv, int32_t dk) {
  LayerSpec layer = layerOf("gdn", heads, keyHeads, dv, dk);
  layer.norm = NormKind::Add;
  layer.normEpsilon = 1e-6;
  layer.queryScale = 1 / std::sqrt(double(dk));
  return layer;
}

LayerSpec kdaLayer(int32_t heads, int32_t keyHeads, int32_t dv, int32_t dk) {
  LayerSpec layer = gdnLayer(heads, keyHeads, dv, dk);
  layer.type = "kda";
  layer.gate = GateKind::SoftplusChannel;
  return layer;
}

std::vector<LayerSpec> numbered(std::vector<LayerSpec> layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].index = int32_t(i);
  }
  return layers;
}

} // namespace sinkstate::reference
