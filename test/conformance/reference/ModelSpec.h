//===- ModelSpec.h - Models that the test suites run ------------*- C++ -*-===//
//
// A plain description of recurrent layers. The reference back end runs it as
// it is; a compiled back end turns it into a graph first.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_MODELSPEC_H
#define SINKSTATE_REFERENCE_MODELSPEC_H

#include <cstdint>
#include <string>
#include <vector>

namespace sinkstate::reference {

enum class GateKind { Softplus, SoftplusChannel, BoundedChannel };
enum class NormKind { None, Add, Max };

struct LayerSpec {
  std::string name = "layer0";
  std::string type = "gdn"; ///< "mamba2", "gdn" or "kda"
  int32_t index = 0;
  int32_t heads = 2, keyHeads = 2, dv = 128, dk = 128;
  bool denseForm = false;
  bool deferred = false; ///< of dense form; has no reference kernels
  bool sinkForm = false; ///< the reference kernels have none
  int32_t active = 8, buffer = 8, draft = 0;
  bool before = false; ///< compacts before its tokens, as with draft tokens
  std::string policyKind = "relative";
  double policyValue = 0;
  std::string core = "svd"; ///< or "qr"
  bool coreByDefault = false; ///< the graph leaves it to the compiler
  std::string storage = "f32"; ///< "f16", "bf16", "fp8"; reference kernels: f32
  std::string rounding = "nearest"; ///< or "stochastic", of a narrower storage
  int32_t phase = 0;
  bool initKernel = false; ///< the package has one; reference kernels: an exact SVD
  GateKind gate = GateKind::Softplus;
  double gateBound = -5;
  NormKind norm = NormKind::Max;
  double normEpsilon = 1e-12;
  double queryScale = 1;
  double betaScale = 1;

  bool channelDecay() const { return gate != GateKind::Softplus; }
  bool hasBeta() const { return type != "mamba2"; }
  /// 1 where an update first removes what the state holds at the key.
  double theta() const { return type == "mamba2" ? 0 : 1; }
  bool compactsBefore() const { return before || draft > 0; }
  /// Whether a step of the token at this position compacts what is due by phase.
  bool isPhase(int64_t position) const {
    return (position + !compactsBefore()) % buffer == phase;
  }
  /// Upper bound of stored rows per state.
  int32_t rank() const;

  int64_t keyFloats() const { return int64_t(keyHeads) * dk; }
  int64_t valueFloats() const { return int64_t(heads) * dv; }
  int64_t gateFloats() const {
    return int64_t(heads) * (channelDecay() ? dk : 1);
  }
};

/// Layers as models have them: mamba2 without normalisation and with shared
/// keys, gdn and kda with normalised keys and scaled queries.
LayerSpec mamba2Layer(int32_t heads, int32_t keyHeads, int32_t dv, int32_t dk);
LayerSpec gdnLayer(int32_t heads, int32_t keyHeads, int32_t dv, int32_t dk);
LayerSpec kdaLayer(int32_t heads, int32_t keyHeads, int32_t dv, int32_t dk);

/// The layers as layer0, layer1, .. of a model without others.
std::vector<LayerSpec> numbered(std::vector<LayerSpec> layers);

} // namespace sinkstate::reference

#endif
