//===- StateFusion.h - Grouping of state operations -------------*- C++ -*-===//
//
// What ss-fuse-decode and ss-fuse-compaction have in common.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SS_STATEFUSION_H
#define SINKSTATE_PASSES_SS_STATEFUSION_H

#include "dialect/ss/SS.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sinkstate::ss {

struct FusionCounts {
  int64_t before = 0;       ///< state operations
  int64_t after = 0;        ///< kernels
  int64_t bytesRemoved = 0; ///< state traffic of a run
};

/// Whether a state operation may join a kernel.
using CanJoin = llvm::function_ref<bool(SSStateOpInterface)>;

/// True if the operation reads or writes a factored state.
bool touchesFactoredState(mlir::Operation *op);

/// Puts the state operations of a function into as few ss.fused of its role as
/// the order of evaluation allows.
FusionCounts fuseStateOps(mlir::func::FuncOp function, llvm::StringRef role,
                          CanJoin canJoin);

/// The counts as a remark on the function.
void reportFusion(mlir::func::FuncOp function, const FusionCounts &counts);

} // namespace sinkstate::ss

#endif // SINKSTATE_PASSES_SS_STATEFUSION_H
