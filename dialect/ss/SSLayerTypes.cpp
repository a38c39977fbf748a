//===- SSLayerTypes.cpp - What distinguishes the layer types --------------===//

#include "dialect/ss/SSLayerTypes.h"

#include "llvm/Support/ErrorHandling.h"

using namespace sinkstate::ss;

// clang-format off
static const LayerTypeInfo kLayerTypes[] = {
    // type              theta  channelDecay  hasBeta  defaultGate                defaultCore
    {LayerType::mamba2,  0,     false,        false,   GateKind::softplus,         CoreKind::qr},
    {LayerType::gdn,     1,     false,        true,    GateKind::softplus,         CoreKind::qr},
    {LayerType::kda,     1,     true,         true,    GateKind::softplus_channel, CoreKind::qr},
};
// clang-format on

const LayerTypeInfo &sinkstate::ss::getLayerTypeInfo(LayerType type) {
  for (const LayerTypeInfo &info : kLayerTypes)
    if (info.type == type)
      return info;
  llvm::report_fatal_error("a layer type has no row in SSLayerTypes.cpp");
}
