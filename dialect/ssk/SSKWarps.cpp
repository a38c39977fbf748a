//===- SSKWarps.cpp - programs that several warps run together ------------===//
#include "dialect/ssk/SSKWarps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate::ssk;

namespace {
struct Access {
  Operation *read = nullptr, *write = nullptr;
};
} // namespace

/// What the operations of a loop do to each memory.
static llvm::MapVector<Value, Access> getAccesses(scf::ForOp loop) {
  llvm::MapVector<Value, Access> accesses;
  loop.walk([&](MemoryEffectOpInterface op) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    op.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      Value memory = effect.getValue();
      if (!memory || !isa<GlobalType, SharedType>(memory.getType()))
        continue;
      Access &access = accesses[memory];
      if (isa<MemoryEffects::Write>(effect.getEffect()))
        access.write = op;
      if (isa<MemoryEffects::Read>(effect.getEffect()))
        access.read = op;
    }
  });
  return accesses;
}

bool sinkstate::ssk::isOverWarps(Operation *op) {
  return isa<scf::ForOp>(op) && op->hasAttr(SSKDialect::kOverWarpsAttr);
}

LogicalResult sinkstate::ssk::verifyOverWarps(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || !loop->getParentOfType<KernelOp>())
    return op->emitOpError("has 'ssk.over_warps', expected it on an scf.for of a "
                           "kernel alone");
  if (loop.getNumResults() != 0)
    return loop.emitOpError("is over the warps and has results, expected none: "
                            "its iterations know nothing of each other");
  WalkResult walk = loop.getBody()->walk([&](Operation *inner) {
    if (!isa<MatmulOp, CallOp, TopKOp, FillOp, CopyOp, WaitCopiesOp, SyncOp, PartsOp>(
            inner) &&
        !isOverWarps(inner))
      return WalkResult::advance();
    InFlightDiagnostic error = loop.emitOpError(
        "is over the warps and holds what all warps of a program do together, "
        "expected loads, stores and arithmetic");
    error.attachNote(inner->getLoc()) << "it is here";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  for (const auto &[memory, access] : getAccesses(loop))
    if (access.read && access.write) {
      InFlightDiagnostic error = loop.emitOpError(
          "is over the warps and reads memory that it writes, expected none: "
          "other warps may write it at the same time");
      error.attachNote(access.write->getLoc()) << "it is written here";
      return error;
    }
  return success();
}

bool sinkstate::ssk::isForWarps(StringRef routine) {
  enum Warps { OneWarp, AllWarps };
#define SS_ROUTINE(name, signature, warps)                                     \
  if (routine == #name)                                                        \
    return warps == AllWarps;
#include "sinkstate/routines.def"
  return false;
}

LogicalResult sinkstate::ssk::verifyWarps(KernelOp kernel) {
  const int64_t warps = kernel.getWarpsOfProgram();
  if (warps < 1 || warps > kMostWarps)
    return kernel.emitOpError("has ")
           << warps << " warps a program, expected 1 to " << kMostWarps;
  if (warps == 1)
    return success();
  if (kernel.getProgramsPerBlock() != 1)
    return kernel.emitOpError("has ")
           << warps << " warps a program and " << kernel.getProgramsPerBlock()
           << " programs a block, expected 1: the warps of a block are those of "
              "a program";
  LogicalResult result = success();
  kernel.walk([&](Operation *op) {
    auto call = dyn_cast<CallOp>(op);
    const bool isOfOneWarp =
        isa<PartsOp, TopKOp, CopyOp, WaitCopiesOp>(op) ||
        (call && !isForWarps(call.getCallee()));
    if (isOfOneWarp && succeeded(result))
      result = op->emitOpError("is done by one warp, in a kernel of ")
               << warps << " warps a program; expected a kernel of one";
    auto matmul = dyn_cast<MatmulOp>(op);
    if (matmul && matmul.isInPlace() && succeeded(result))
      result = matmul.emitOpError("writes to a factor, in a kernel of ")
               << warps << " warps a program; expected other scratch: one warp "
                           "may read what another has written already";
  });
  return result;
}
