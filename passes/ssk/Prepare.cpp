//===- Prepare.cpp - Makes a kernel ready for the printers ----------------===//

#include "passes/ssk/AccessWidth.h"
#include "passes/ssk/Passes.h"
#include "passes/ssk/ScratchSlots.h"
#include "passes/ssk/SyncPlacement.h"

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
    setAccessWidths();
    assignScratchSlots(getOperation());
    fitBlock();
    insertSyncs();
  }

  void duplicateSplats();
  void setAccessWidths();
  void fitBlock();
  void insertSyncs();
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
  });
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
