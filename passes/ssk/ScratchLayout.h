//===- ScratchLayout.h - Where a program's scratch lies ---------*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SSK_SCRATCHLAYOUT_H
#define SINKSTATE_PASSES_SSK_SCRATCHLAYOUT_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::ssk {

/// Shared memory that data center GPUs give one block; the smallest give 99 KB.
inline constexpr int64_t kMostBlockBytes = 227 * 1024;

struct ScratchLayout {
  int64_t bytes; ///< of one program
  bool isPadded; ///< rows that would begin in one bank
};

/// Sets `pitch` and `slot` on the allocations of a kernel. Rows are padded unless
/// a block has no room for that.
ScratchLayout layOutScratch(KernelOp kernel);

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_SCRATCHLAYOUT_H
