//===- ModelFamilies.h - What config files of models say --------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_IMPORT_MODELFAMILIES_H
#define SINKSTATE_TOOLS_SS_IMPORT_MODELFAMILIES_H

#include "tools/ss-import/ConfigNode.h"

#include "dialect/ss/SSEnums.h"
#include "dialect/ss/SSLayerTypes.h"

namespace sinkstate {

/// One recurrent layer as its model's config describes it.
struct LayerDescription {
  ss::LayerType type = ss::LayerType::gdn;
  /// Place in the whole model.
  int64_t index = 0;
  int64_t heads = 0, keyHeads = 0, dv = 0, dk = 0;
  ss::GateKind gate = ss::GateKind::softplus;
  double gateBound = 0.0;
  ss::NormKind norm = ss::NormKind::none;
  double normEps = 0.0;
  double queryScale = 1.0;
  double betaScale = 1.0;
};

/// Reads the recurrent layers of a config.json; its `model_type` says how.
mlir::FailureOr<llvm::SmallVector<LayerDescription>>
readLayers(const ConfigNode &config);

} // namespace sinkstate

#endif // SINKSTATE_TOOLS_SS_IMPORT_MODELFAMILIES_H
