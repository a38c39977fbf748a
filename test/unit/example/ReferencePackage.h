//===- ReferencePackage.h - The model's kernels in plain C++ ----*- C++ -*-===//
#ifndef TINY_HYBRID_TEST_REFERENCE_PACKAGE_H
#define TINY_HYBRID_TEST_REFERENCE_PACKAGE_H

#include "Config.h"
#include "ReferenceKernels.h"

#include "sinkstate/sinkstate.h"

#include <cmath>

namespace tiny_hybrid_test {

/// The recurrent layers of a model as the reference kernels know them. The
/// model normalises keys by x / max(|x|, 1e-12).
inline std::vector<sinkstate::reference::LayerSpec>
layersOf(const tiny_hybrid::Config &config) {
  using namespace sinkstate::reference;
  using tiny_hybrid::LayerKind;
  std::vector<LayerSpec> layers;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerKind kind = config.layers[i];
    if (kind == LayerKind::Attention)
      continue;
    const tiny_hybrid::RecurrentSizes &sizes = config.recurrent(kind);
    auto make = kind == LayerKind::Gdn   ? gdnLayer
                : kind == LayerKind::Kda ? kdaLayer
                                         : mamba2Layer;
    LayerSpec layer = make(sizes.heads, sizes.keyHeads, sizes.dv, sizes.dk);
    if (kind != LayerKind::Mamba2) {
      layer.norm = NormKind::Max;
      layer.normEpsilon = 1e-12;
      layer.queryScale = 1 / std::sqrt(static_cast<double>(sizes.dk));
    }
    layer.name = "layer" + std::to_string(i);
    layer.index = static_cast<int32_t>(i);
    layer.phase = static_cast<int32_t>(layers.size()) % layer.buffer;
    layers.push_back(layer);
  }
  return layers;
}

/// A package over reference kernels; engines must not outlive it.
class ReferencePackage {
public:
  explicit ReferencePackage(std::vector<sinkstate::reference::LayerSpec> layers)
      : kernels(std::move(layers)) {
    opened = ss_package_from_memory(
        kernels.manifest().data(), kernels.manifest().size(),
        &sinkstate::reference::KernelSet::lookup, &kernels, &handle);
  }
  ~ReferencePackage() { ss_package_close(handle); }
  ReferencePackage(const ReferencePackage &) = delete;
  ReferencePackage &operator=(const ReferencePackage &) = delete;

  const ss_package *get() const { return handle; }
  bool isOpen() const { return opened == SS_OK; }

private:
  sinkstate::reference::KernelSet kernels;
  ss_package *handle = nullptr;
  ss_result opened;
};

} // namespace tiny_hybrid_test

#endif // TINY_HYBRID_TEST_REFERENCE_PACKAGE_H
