//===- Prepare.cpp - Makes a kernel ready for the printers ----------------===//

#include "dialect/ssk/SSKNames.h"
#include "passes/ssk/AccessWidth.h"
#include "passes/ssk/Passes.h"
#include "passes/ssk/ScratchLayout.h"
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
    fitBlock(layOutScratch(getOperation()).bytes);
    insertSyncs();
    keepLoopsRolled();
    nameConstants();
  }

  void duplicateSplats();
  void allocateSums();
  void setAccessWidths();
  void fitBlock(int64_t bytes);
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

/// As many programs a block as their scratch allows, `bytes` each.
void Prepare::fitBlock(int64_t bytes) {
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
