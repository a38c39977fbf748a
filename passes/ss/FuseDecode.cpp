//===- FuseDecode.cpp - ss-fuse-decode ------------------------------------===//

#include "passes/ss/Passes.h"
#include "passes/ss/StateFusion.h"

using namespace mlir;

namespace sinkstate::ss {
#define GEN_PASS_DEF_SSFUSEDECODE
#include "passes/ss/Passes.h.inc"
} // namespace sinkstate::ss

using namespace sinkstate::ss;

namespace {
struct FuseDecode : sinkstate::ss::impl::SSFuseDecodeBase<FuseDecode> {
  using Base::Base;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto role =
        function->getAttrOfType<StringAttr>(SSDialect::getRoleAttrName());
    if (!role || role.getValue() != "decode")
      return;
    FusionCounts counts =
        fuseStateOps(function, role.getValue(), [](SSStateOpInterface op) {
          // Rows of factors are immutable between compactions.
          if (op.writesRows() && touchesFactoredState(op))
            return false;
          return hasAxes(op.parallelAxes(), StateAxis::heads);
        });
    if (report)
      reportFusion(function, counts);
  }
};
} // namespace
