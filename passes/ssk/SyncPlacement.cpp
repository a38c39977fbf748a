//===- SyncPlacement.cpp - Where the lanes of a program must meet ---------===//
//
// Control flow is uniform over the program, so a sync may stand anywhere. What
// each piece of memory saw since the last sync is followed through the kernel; a
// loop is followed until its end adds nothing to its beginning.
//
//===----------------------------------------------------------------------===//

#include "passes/ssk/SyncPlacement.h"
#include "dialect/ssk/SSKWarps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sinkstate::ssk;

namespace {
/// Accesses to one piece of memory since the last sync.
struct Pending {
  bool read = false;    // by several lanes
  bool written = false; // by several lanes
  bool set = false;     // one element, by lane 0

  bool operator==(const Pending &other) const {
    return read == other.read && written == other.written && set == other.set;
  }
};

/// What is pending, by memory.
using State = llvm::MapVector<Value, Pending>;

class SyncFinder {
public:
  State visit(Block &block, State state);
  llvm::SetVector<Operation *> missing;

private:
  State visit(Operation &op, State state);
  State visitLoop(Block &body, State before);
  State finishCopies(Operation &wait, State state);
  void access(Operation &op, State &state);
  void meet(Operation &op, const State &accesses, State &state);
};
} // namespace

static void add(State &state, Value memory, const Pending &now) {
  Pending &pending = state[memory];
  pending.read |= now.read;
  pending.written |= now.written;
  pending.set |= now.set;
}

static State join(State a, const State &b) {
  for (const auto &[memory, pending] : b)
    add(a, memory, pending);
  return a;
}

static bool isSame(const State &a, const State &b) {
  auto covers = [](const State &whole, const State &part) {
    return llvm::all_of(part, [&](const auto &entry) {
      return whole.lookup(entry.first) == entry.second;
    });
  };
  return covers(a, b) && covers(b, a);
}

/// Scratch in one slot is one memory: the first of it.
static Value getRootOfScratch(AllocOp alloc) {
  for (AllocOp other : alloc->getParentOfType<KernelOp>().getBody().getOps<AllocOp>())
    if (alloc.getSlot() && other.getSlot() == alloc.getSlot())
      return other.getResult();
  return alloc.getResult();
}

/// Pointers that may be the same memory count as one: the first of them.
static Value getRoot(Value memory) {
  if (auto alloc = memory.getDefiningOp<AllocOp>())
    return getRootOfScratch(alloc);
  auto argument = dyn_cast<BlockArgument>(memory);
  if (!argument)
    return memory;
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  if (!kernel.mayAlias(argument.getArgNumber()))
    return memory;
  for (BlockArgument other : argument.getOwner()->getArguments())
    if (kernel.mayAlias(other.getArgNumber()))
      return other;
  return memory;
}

/// What an operation does to one memory: reads and writes are by several lanes.
static Pending getAccess(Operation &op, Value memory) {
  Pending access;
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(op).getEffectsOnValue(memory, effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    access.read |= isa<MemoryEffects::Read>(effect.getEffect());
    bool writes = isa<MemoryEffects::Write>(effect.getEffect());
    (isa<WriteOp>(op) ? access.set : access.written) |= writes;
  }
  return access;
}

static bool conflicts(const Pending &before, const Pending &now) {
  return (now.read && (before.written || before.set)) ||
         (now.written && (before.read || before.written || before.set)) ||
         (now.set && (before.read || before.written));
}

static State getAccesses(Operation &op) {
  State accesses;
  for (Value operand : op.getOperands())
    if (isa<GlobalType, SharedType>(operand.getType()))
      add(accesses, getRoot(operand), getAccess(op, operand));
  return accesses;
}

/// A loop over the warps is like one operation: its iterations have nothing to
/// show each other.
static State getAccessesOverWarps(scf::ForOp loop) {
  State accesses;
  loop.getBody()->walk([&](MemoryEffectOpInterface op) {
    for (auto [memory, now] : getAccesses(*op)) {
      now.written |= now.set; // not always by the first warp
      now.set = false;
      add(accesses, memory, now);
    }
  });
  return accesses;
}

void SyncFinder::access(Operation &op, State &state) {
  meet(op, getAccesses(op), state);
}

/// A sync before the operation if what it does conflicts with what is pending.
void SyncFinder::meet(Operation &op, const State &accesses, State &state) {
  for (const auto &[memory, now] : accesses)
    if (conflicts(state.lookup(memory), now)) {
      missing.insert(&op);
      state.clear();
      break;
    }
  for (const auto &[memory, now] : accesses)
    add(state, memory, now);
}

State SyncFinder::visit(Operation &op, State state) {
  if (isa<SyncOp>(op) || missing.contains(&op))
    state.clear();
  if (isa<SyncOp>(op))
    return state;
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    State after = visit(branch.getThenRegion().front(), state);
    if (branch.getElseRegion().empty())
      return join(after, state);
    return join(after, visit(branch.getElseRegion().front(), state));
  }
  if (isOverWarps(&op)) {
    meet(op, getAccessesOverWarps(cast<scf::ForOp>(op)), state);
    return state;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitLoop(*loop.getBody(), state);
  if (auto parts = dyn_cast<PartsOp>(op)) {
    // All warps of the program meet behind the parts.
    visit(parts.getLast().front(), visitLoop(parts.getBody().front(), state));
    return State();
  }
  if (isa<WaitCopiesOp>(op))
    return finishCopies(op, state);
  if (isa<MemoryEffectOpInterface>(op))
    access(op, state);
  return state;
}

/// The body may run after itself, or not at all.
State SyncFinder::visitLoop(Block &body, State before) {
  while (true) {
    State entry = join(before, visit(body, before));
    if (isSame(entry, before))
      return entry;
    before = entry;
  }
}

/// A copy writes at any time until it is waited for, whatever syncs there are in
/// between: only then can a sync show it to the other lanes.
State SyncFinder::finishCopies(Operation &wait, State state) {
  wait.getParentOfType<KernelOp>().walk([&](CopyOp copy) {
    state[getRoot(copy.getTarget())].written = true;
  });
  return state;
}

State SyncFinder::visit(Block &block, State state) {
  for (Operation &op : block)
    state = visit(op, state);
  return state;
}

SmallVector<Operation *> sinkstate::ssk::findMissingSyncs(KernelOp kernel) {
  SyncFinder finder;
  finder.visit(kernel.getBody().front(), State());
  SmallVector<Operation *> missing;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (finder.missing.contains(op))
      missing.push_back(op);
  });
  return missing;
}
