//===- SyncPlacement.h - Where the lanes of a program must meet -*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SSK_SYNCPLACEMENT_H
#define SINKSTATE_PASSES_SSK_SYNCPLACEMENT_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::ssk {

/// The operations of a kernel that need a sync before them, in program order.
llvm::SmallVector<mlir::Operation *> findMissingSyncs(KernelOp kernel);

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_SYNCPLACEMENT_H
