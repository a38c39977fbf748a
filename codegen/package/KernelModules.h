//===- KernelModules.h - a graph's kernels for a target ---------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_PACKAGE_KERNELMODULES_H
#define SINKSTATE_CODEGEN_PACKAGE_KERNELMODULES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace sinkstate {

enum class KernelTarget { cpu, cuda };

struct KernelOptions {
  /// With the kernels that start states from dense matrices.
  bool init = false;
  /// Those of layers whose dense states come back to factors by them on a GPU.
  bool initWhereDense = false;
  /// Warps of a GPU that start one state together; 0: by the table.
  int64_t initWarps = 0;
  /// Let the last quarter of the layers compact before its tokens.
  bool compactBefore = false;
  /// Remarks say what was chosen, and why.
  bool explain = false;
};

/// A copy of the graph's module after `ss-pipeline` with the choices that suit
/// the target. Both targets get kernels of the same names and arguments, and the
/// same schedule.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
buildKernels(mlir::ModuleOp graph, KernelTarget target,
             const KernelOptions &given = {});

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_PACKAGE_KERNELMODULES_H
