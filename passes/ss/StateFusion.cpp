//===- StateFusion.cpp - Grouping of state operations ---------------------===//

#include "passes/ss/StateFusion.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sinkstate::ss;

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

/// The state that an operation works on, or null.
static StateType findState(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (auto state = dyn_cast<StateType>(type))
      return state;
  for (Type type : op->getResultTypes())
    if (auto state = dyn_cast<StateType>(type))
      return state;
  return {};
}

bool sinkstate::ss::touchesFactoredState(Operation *op) {
  StateType state = findState(op);
  return state && state.isFactored();
}

/// Bytes of a block of factors, f32 rows and weights.
static int64_t factorBytes(FactorsType type) {
  return 4 * type.getHeads() * type.getRows() *
         (type.getDv() + type.getDk() + 1);
}

/// What the operations move alone, less what they move as one kernel. Rows and
/// buffers go once in and once out of the kernel, blocks of factors stay
/// inside.
static int64_t countSavedBytes(ArrayRef<Operation *> group) {
  int64_t alone = 0, rowBytes = 0, bufferBytes = 0;
  bool readsRows = false, writesRows = false, readsBuffer = false;
  for (Operation *op : group) {
    auto stateOp = cast<SSStateOpInterface>(op);
    for (Value result : op->getResults())
      if (auto factors = dyn_cast<FactorsType>(result.getType())) {
        int64_t moves = 1;
        for (OpOperand &use : result.getUses())
          moves += llvm::is_contained(group, use.getOwner());
        alone += moves * factorBytes(factors);
      }
    StateType state = findState(op);
    if (!state)
      continue;
    rowBytes = std::max(rowBytes, state.getRowBytes());
    bufferBytes = std::max(bufferBytes, state.getBufferBytes());
    alone += stateOp.rowPasses() * state.getRowBytes();
    alone += stateOp.readsBuffer() * state.getBufferBytes();
    readsRows |= stateOp.readsRows();
    writesRows |= stateOp.writesRows();
    readsBuffer |= stateOp.readsBuffer();
  }
  int64_t fused =
      (readsRows + writesRows) * rowBytes + readsBuffer * bufferBytes;
  return std::max<int64_t>(alone - fused, 0);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
/// Operations of one kernel, and the foreign operations between them that wait
/// for its results.
struct Group {
  SmallVector<Operation *> members;
  llvm::SetVector<Operation *> waiting;

  bool isMember(Operation *op) const { return llvm::is_contained(members, op); }
};
} // namespace

/// True if the operation, or one inside it, uses a result of one of `others`.
template <typename Set>
static bool usesResultOf(Operation *op, const Set &others) {
  WalkResult result = op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && llvm::is_contained(others, def))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Walks a block in order and cuts its state operations into groups.
static SmallVector<Group> findGroups(Block &block, CanJoin canJoin) {
  SmallVector<Group> groups;
  Group current;
  auto close = [&] {
    if (!current.members.empty())
      groups.push_back(std::move(current));
    current = Group();
  };
  for (Operation &op : block.without_terminator()) {
    bool waits = usesResultOf(&op, current.waiting);
    auto stateOp = dyn_cast<SSStateOpInterface>(op);
    if (!stateOp || !canJoin(stateOp)) {
      // What the group needs must come before it, what needs the group behind.
      if (waits || usesResultOf(&op, current.members))
        current.waiting.insert(&op);
      continue;
    }
    if (waits)
      close();
    current.members.push_back(&op);
  }
  close();
  return groups;
}

/// The values that a group takes from outside: arguments of the block in their
/// order, then others in the order of use.
static SmallVector<Value> collectInputs(const Group &group) {
  llvm::SetVector<BlockArgument> arguments;
  llvm::SetVector<Value> others;
  for (Operation *op : group.members)
    for (Value operand : op->getOperands()) {
      if (auto argument = dyn_cast<BlockArgument>(operand))
        arguments.insert(argument);
      else if (!group.isMember(operand.getDefiningOp()))
        others.insert(operand);
    }
  SmallVector<BlockArgument> sorted = arguments.takeVector();
  llvm::sort(sorted, [](BlockArgument a, BlockArgument b) {
    return a.getArgNumber() < b.getArgNumber();
  });
  SmallVector<Value> inputs(sorted.begin(), sorted.end());
  llvm::append_range(inputs, others);
  return inputs;
}

/// The values that others take from a group.
static SmallVector<Value> collectOutputs(const Group &group) {
  SmallVector<Value> outputs;
  for (Operation *op : group.members)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !group.isMember(user); }))
        outputs.push_back(result);
  return outputs;
}

/// Moves a group into an ss.fused in place of its last member.
static void fuseGroup(Group &group, StringRef role) {
  SmallVector<Value> inputs = collectInputs(group);
  SmallVector<Value> outputs = collectOutputs(group);
  Operation *last = group.members.back();
  OpBuilder builder(last);
  SmallVector<Location> locs;
  for (Operation *op : group.members)
    locs.push_back(op->getLoc());
  auto fused = FusedOp::create(builder, builder.getFusedLoc(locs),
                               ValueRange(outputs).getTypes(), role, inputs);
  Block *body = builder.createBlock(&fused.getBody());
  IRMapping map;
  for (Value input : inputs)
    map.map(input, body->addArgument(input.getType(), input.getLoc()));
  for (Operation *op : group.members)
    builder.clone(*op, map);
  SmallVector<Value> yielded;
  for (Value output : outputs)
    yielded.push_back(map.lookup(output));
  YieldOp::create(builder, fused.getLoc(), yielded);

  for (auto [i, output] : llvm::enumerate(outputs))
    output.replaceAllUsesWith(fused.getResult(i));
  Operation *behind = fused;
  for (Operation *op : group.waiting) {
    if (fused->isBeforeInBlock(op))
      break;
    op->moveAfter(behind);
    behind = op;
  }
  for (Operation *op : llvm::reverse(group.members))
    op->erase();
}

FusionCounts sinkstate::ss::fuseStateOps(func::FuncOp function, StringRef role,
                                         CanJoin canJoin) {
  FusionCounts counts;
  for (Block &block : function.getBody()) {
    for (Operation &op : block)
      counts.before += isa<SSStateOpInterface>(op);
    int64_t alone = counts.before;
    for (Group &group : findGroups(block, canJoin)) {
      counts.bytesRemoved += countSavedBytes(group.members);
      alone -= group.members.size();
      ++counts.after;
      fuseGroup(group, role);
    }
    counts.after += alone;
  }
  return counts;
}

void sinkstate::ss::reportFusion(func::FuncOp function,
                                 const FusionCounts &counts) {
  function.emitRemark() << "@" << function.getSymName() << ": " << counts.before
                        << " state operations in " << counts.after
                        << " kernels, " << counts.bytesRemoved
                        << " bytes of state traffic removed";
}
