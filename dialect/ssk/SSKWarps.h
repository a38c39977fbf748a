//===- SSKWarps.h - programs that several warps run together ----*- C++ -*-===//
//
// A kernel with `warps` runs each program by so many warps. All of them run all
// control flow and hold the same scalars and tiles; they share out products, the
// routines that are made for it, and the iterations of loops that have the
// attribute `ssk.over_warps`. What is stored outside of such loops the first one
// stores. `ssk.sync` is a meeting of all of them.
//
// Iterations of a loop over the warps run in any order, or at the same time:
// they write places of their own and read nothing that the loop writes. Neither
// then is a sync needed inside. One warp, and a CPU, run them in turn.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DIALECT_SSK_SSKWARPS_H
#define SINKSTATE_DIALECT_SSK_SSKWARPS_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::ssk {

/// Most warps of a program.
constexpr int64_t kMostWarps = 16;

/// Whether the iterations of a loop may be shared out.
bool isOverWarps(mlir::Operation *op);

/// Whether a routine of the device library is run by all warps of a program.
bool isForWarps(llvm::StringRef routine);

/// The rules above, for a loop and for a kernel.
mlir::LogicalResult verifyOverWarps(mlir::Operation *loop);
mlir::LogicalResult verifyWarps(KernelOp kernel);
/// The rules of SSKDialect::kIndependentAttr, for an operation that has it.
mlir::LogicalResult verifyIndependent(mlir::Operation *loop, mlir::Attribute value);

} // namespace sinkstate::ssk

#endif // SINKSTATE_DIALECT_SSK_SSKWARPS_H
