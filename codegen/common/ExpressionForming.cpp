//===- ExpressionForming.cpp - Which operations print inside others -------===//

#include "codegen/common/ExpressionForming.h"
#include "codegen/common/CppExpr.h"
#include "codegen/common/LocationText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;

/// Operators in one expression before a part of it gets a name.
static constexpr unsigned kMaxExpressionSize = 8;

/// True if an operation between a read and its use could change what is read.
static bool mayWrite(Operation &op) {
  if (isMemoryEffectFree(&op))
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(&op);
  return !effects || effects.hasEffect<MemoryEffects::Write>();
}

static bool isWrittenBetween(Operation *from, Operation *to) {
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    if (mayWrite(*op))
      return true;
  return false;
}

/// A loop's upper bound and step are evaluated in every iteration.
static bool isLoopBound(OpOperand &use) {
  auto loop = dyn_cast<scf::ForOp>(use.getOwner());
  return loop && use.getOperandNumber() < 3;
}

/// An argument of the kernel as an index: the same number under the same name.
static bool isArgumentAsIndex(Operation *op) {
  auto cast = dyn_cast<arith::IndexCastOp>(op);
  return cast && isa<BlockArgument>(cast.getIn()) && cast.getIn().getType().isInteger(64) &&
         isa<ssk::KernelOp>(cast.getIn().getParentRegion()->getParentOp());
}

bool ExpressionForming::canInline(Operation *op) const {
  bool isRead = isa<ssk::ReadOp>(op);
  if (!isRead && !isCppScalarOp(op))
    return false;
  bool isNamed = !getNameHint(op->getLoc()).empty();
  if (isa<arith::ConstantOp>(op) || isArgumentAsIndex(op))
    return !isNamed;
  if (isNamed || !op->hasOneUse())
    return false;
  OpOperand &use = *op->use_begin();
  if (isLoopBound(use))
    return false;
  Operation *user = getStatement(use.getOwner());
  if (isRead)
    return user->getBlock() == op->getBlock() && !isWrittenBetween(op, user);
  // Into a branch, but not into a loop or the body of a map.
  while (user->getBlock() != op->getBlock()) {
    user = user->getParentOp();
    if (!isa<scf::IfOp>(user))
      return false;
  }
  return true;
}

Operation *ExpressionForming::getStatement(Operation *op) const {
  while (isInlined(op) && op->hasOneUse())
    op = *op->user_begin();
  return op;
}

/// Users come before definitions, so that a statement is known when asked for.
void ExpressionForming::markCandidates(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        markCandidates(inner);
    if (canInline(&op))
      inlined.insert(&op);
  }
}

/// Gives the largest part of an expression that grew too large a name.
void ExpressionForming::limitSizes(Block &block) {
  llvm::DenseMap<Operation *, unsigned> sizes;
  block.walk<WalkOrder::PreOrder>([&](Operation *op) {
    while (true) {
      unsigned size = isa<arith::ConstantOp>(op) ? 0 : 1;
      Operation *largest = nullptr;
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (!def || !isInlined(def))
          continue;
        size += sizes.lookup(def);
        if (sizes.lookup(def) > (largest ? sizes.lookup(largest) : 1))
          largest = def;
      }
      sizes[op] = size;
      if (size <= kMaxExpressionSize || !largest)
        return;
      inlined.erase(largest);
    }
  });
}

ExpressionForming::ExpressionForming(ssk::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  markCandidates(body);
  limitSizes(body);
}
