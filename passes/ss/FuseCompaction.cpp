//===- FuseCompaction.cpp - ss-fuse-compaction ----------------------------===//

#include "passes/ss/Passes.h"
#include "passes/ss/StateFusion.h"

using namespace mlir;

namespace sinkstate::ss {
#define GEN_PASS_DEF_SSFUSECOMPACTION
#include "passes/ss/Passes.h.inc"
} // namespace sinkstate::ss

using namespace sinkstate::ss;

namespace {
struct FuseCompaction
    : sinkstate::ss::impl::SSFuseCompactionBase<FuseCompaction> {
  using Base::Base;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto role =
        function->getAttrOfType<StringAttr>(SSDialect::getRoleAttrName());
    if (!role || role.getValue() == "decode")
      return;
    FusionCounts counts =
        fuseStateOps(function, role.getValue(), [](SSStateOpInterface op) {
          return hasAxes(op.parallelAxes(), StateAxis::heads);
        });
    if (report)
      reportFusion(function, counts);
  }
};
} // namespace
