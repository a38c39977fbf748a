//===- ScratchSlots.h - Which scratch can share memory ----------*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SSK_SCRATCHSLOTS_H
#define SINKSTATE_PASSES_SSK_SCRATCHSLOTS_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::ssk {

/// Scratch that shares one piece of memory, in the order of the allocations.
struct ScratchSlot {
  llvm::SmallVector<AllocOp> allocs;
  int64_t bytes = 0; ///< of the largest, rounded up to 16
};

/// The slots that the allocations of a kernel have; one without the attribute is
/// alone in its own.
llvm::SmallVector<ScratchSlot> getScratchSlots(KernelOp kernel);

/// Bytes of scratch of one program.
int64_t getScratchBytes(KernelOp kernel);

/// Sets `slot` on every allocation: the same for those that are never needed at
/// the same time.
void assignScratchSlots(KernelOp kernel);

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_SCRATCHSLOTS_H
