//===- ScratchLayout.cpp - Where a program's scratch lies -----------------===//

#include "passes/ssk/ScratchLayout.h"
#include "passes/ssk/ScratchSlots.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sinkstate::ssk;

/// The scratch that products read, and what shares a call of a routine with it:
/// a routine takes matrices of one pitch.
static llvm::SmallPtrSet<Operation *, 16> findPitched(KernelOp kernel) {
  llvm::SmallPtrSet<Operation *, 16> pitched;
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>())
    if (llvm::any_of(alloc->getUsers(), llvm::IsaPred<MatmulOp>))
      pitched.insert(alloc);
  SmallVector<CallOp> calls;
  kernel.walk([&](CallOp call) { calls.push_back(call); });
  for (size_t before = 0; before != pitched.size();) {
    before = pitched.size();
    for (CallOp call : calls) {
      auto isPitched = [&](Value operand) {
        return pitched.contains(operand.getDefiningOp());
      };
      if (llvm::any_of(call->getOperands(), isPitched))
        for (Value operand : call->getOperands())
          if (auto alloc = operand.getDefiningOp<AllocOp>())
            pitched.insert(alloc);
    }
  }
  return pitched;
}

/// The smallest number from `columns` on that is `wanted` above a multiple of `step`.
static int64_t getPitch(int64_t columns, int64_t step, int64_t wanted) {
  return columns + ((wanted - columns) % step + step) % step;
}

/// Products read columns of matrices: where every row begins in the same one of
/// the 32 banks of 4 bytes, rows are set 8 banks apart. Chunks of f32 that several
/// warps multiply are read along both sides at once, 8 of one by 4 of the other:
/// rows 20 banks apart are in different ones either way.
static void setPitches(KernelOp kernel) {
  constexpr int64_t banks = 32, shift = 8, shiftOfBoth = 20, mostPadding = 8;
  const auto pitched = findPitched(kernel);
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>()) {
    auto type = cast<SharedType>(alloc.getResult().getType());
    if (!pitched.contains(alloc) || type.getRank() != 2)
      continue;
    const int64_t width = type.getElementType().getIntOrFloatBitWidth() / 32;
    const int64_t columns = type.getShape()[1];
    const int64_t both = getPitch(columns, banks, shiftOfBoth);
    if (kernel.getWarpsOfProgram() > 1 && width == 1 &&
        both - columns <= mostPadding && both != columns)
      alloc.setPitch(both);
    else if (columns * width % banks == 0)
      alloc.setPitch(columns + shift / width);
  }
}

/// Sets `pitch` and `slot`; returns the bytes of a program.
static int64_t layOut(KernelOp kernel, bool pads) {
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>())
    alloc.removePitchAttr();
  if (pads)
    setPitches(kernel);
  assignScratchSlots(kernel);
  return getScratchBytes(kernel);
}

ScratchLayout sinkstate::ssk::layOutScratch(KernelOp kernel) {
  int64_t bytes = layOut(kernel, /*pads=*/true);
  if (bytes <= kMostBlockBytes)
    return {bytes, /*isPadded=*/true};
  return {layOut(kernel, /*pads=*/false), /*isPadded=*/false};
}
