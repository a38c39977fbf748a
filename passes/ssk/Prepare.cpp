//===- Prepare.cpp - Makes a kernel ready for the printers ----------------===//

#include "dialect/ssk/SSKNames.h"
#include "passes/ssk/AccessWidth.h"
#include "passes/ssk/Passes.h"
#include "passes/ssk/ScratchSlots.h"
#include "passes/ssk/SyncPlacement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace sinkstate::ssk {
#define GEN_PASS_DEF_SSKPREPAREPASS
#include "passes/ssk/Passes.h.inc"
} // namespace sinkstate::ssk

using namespace mlir;
using namespace sinkstate::ssk;

namespace {
struct Prepare : public sinkstate::ssk::impl::SSKPreparePassBase<Prepare> {
  using Base::Base;

  void runOnOperation() override {
    duplicateSplats();
    allocateSums();
    setAccessWidths();
    setPitches();
    assignScratchSlots(getOperation());
    fitBlock();
    insertSyncs();
    keepLoopsRolled();
    nameConstants();
  }

  void duplicateSplats();
  void allocateSums();
  void setAccessWidths();
  void setPitches();
  void fitBlock();
  void insertSyncs();
  void keepLoopsRolled();
  void nameConstants();
};
} // namespace

/// Every further use of a splat gets one right before it.
void Prepare::duplicateSplats() {
  SmallVector<SplatOp> splats;
  getOperation().walk([&](SplatOp splat) { splats.push_back(splat); });
  for (SplatOp splat : splats) {
    if (splat.getResult().hasOneUse())
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(splat.getResult().getUses())) {
      Operation *user = use.getOwner();
      OpBuilder builder(user);
      use.set(SplatOp::create(builder, user->getLoc(), splat.getType(),
                              splat.getValue()));
    }
    splat.erase();
  }
}

/// Scratch through which the warps of a program add up the sums of parts.
void Prepare::allocateSums() {
  getOperation().walk([&](PartsOp parts) {
    if (!parts.getThrough().empty())
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    SmallVector<Value> scratch;
    for (Value sum : parts.getSums()) {
      auto tile = cast<TileType>(sum.getType());
      auto type = SharedType::get(tile.getContext(), tile.getShape(), tile.getElementType());
      auto name = builder.getStringAttr("part_sum");
      scratch.push_back(AllocOp::create(builder, NameLoc::get(name, parts.getLoc()), type));
    }
    parts.getThroughMutable().assign(scratch);
  });
}

void Prepare::setAccessWidths() {
  auto set = [&](auto access) {
    int64_t width = getAccessWidth(access);
    if (width == 1) {
      ++narrowAccesses;
      return access.removeVectorAttr();
    }
    ++wideAccesses;
    access.setVector(width);
    return Attribute();
  };
  getOperation().walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      set(load);
    else if (auto store = dyn_cast<StoreOp>(op))
      set(store);
    else if (auto copy = dyn_cast<CopyOp>(op))
      set(copy);
  });
}

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
void Prepare::setPitches() {
  constexpr int64_t banks = 32, shift = 8, shiftOfBoth = 20, mostPadding = 8;
  const auto pitched = findPitched(getOperation());
  for (AllocOp alloc : getOperation().getBody().getOps<AllocOp>()) {
    auto type = cast<SharedType>(alloc.getResult().getType());
    if (!pitched.contains(alloc) || type.getRank() != 2)
      continue;
    const int64_t width = type.getElementType().getIntOrFloatBitWidth() / 32;
    const int64_t columns = type.getShape()[1];
    const int64_t both = getPitch(columns, banks, shiftOfBoth);
    if (getOperation().getWarpsOfProgram() > 1 && width == 1 &&
        both - columns <= mostPadding && both != columns)
      alloc.setPitch(both);
    else if (columns * width % banks == 0)
      alloc.setPitch(columns + shift / width);
  }
}

/// As many programs a block as their scratch allows.
void Prepare::fitBlock() {
  int64_t bytes = getScratchBytes(getOperation());
  int64_t programs = getOperation().getProgramsPerBlock();
  while (programs > 1 && programs * bytes > maxSharedBytes)
    programs /= 2;
  getOperation().setProgramsPerBlock(programs);
  scratchBytes = std::max<int64_t>(scratchBytes, bytes);
}

void Prepare::insertSyncs() {
  for (Operation *op : findMissingSyncs(getOperation())) {
    OpBuilder builder(op);
    SyncOp::create(builder, op->getLoc());
    ++syncs;
  }
}

/// A compaction is much code that runs once for a state. Where a loop takes several rows or
/// elements at a time already, and how often it runs is not known, compilers would repeat
/// it four times for nothing.
void Prepare::keepLoopsRolled() {
  if (getOperation().getRole() != "compact")
    return;
  getOperation().walk([](scf::ForOp loop) {
    std::optional<int64_t> step = getConstantIntValue(loop.getStep());
    if (step && *step > 1 && !getConstantIntValue(loop.getUpperBound()))
      loop->setAttr(kUnrollAttr, Builder(loop).getI64IntegerAttr(1));
  });
}

/// Folding has dropped where constants came from; their names are kept as attributes.
void Prepare::nameConstants() {
  getOperation().walk([&](arith::ConstantOp constant) {
    if (auto name = constant->getAttrOfType<StringAttr>(kConstantNameAttr))
      constant->setLoc(NameLoc::get(name, getOperation().getLoc()));
  });
}
