//===- Interference.cpp - Values that need their own variables ------------===//

#include "codegen/common/Interference.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;

Interference::Point Interference::getWritePoint(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return {argument.getOwner(), nullptr};
  return {value.getDefiningOp()->getBlock(), value.getDefiningOp()};
}

/// The innermost block around both, or null.
static Block *getCommonBlock(Block *a, Operation *b) {
  for (Block *block = a; block;) {
    if (block->findAncestorOpInBlock(*b))
      return block;
    Operation *parent = block->getParentOp();
    block = parent ? parent->getBlock() : nullptr;
  }
  return nullptr;
}

/// True if control comes back to `block` while `value` lives: a loop around the
/// block that does not contain the value's definition.
static bool isRepeatedWithin(Block *block, Value value) {
  for (Operation *op = block->getParentOp(); op; op = op->getParentOp()) {
    if (op->isAncestor(value.getParentRegion()->getParentOp()))
      return false;
    if (isa<scf::ForOp, ssk::PartsOp>(op))
      return true;
  }
  return false;
}

/// True if, once `point` is passed, the program may come to this use of `value`.
bool Interference::isNeededAfter(Value value, OpOperand &use, Point point) const {
  Operation *statement = forming.getStatement(use.getOwner());
  // A loop looks at its bounds in every iteration.
  if (auto loop = dyn_cast<scf::ForOp>(statement);
      loop && use.getOwner() == statement && use.getOperandNumber() < 3 &&
      loop->isAncestor(point.block->getParentOp()))
    return true;
  Block *common = getCommonBlock(point.block, statement);
  if (!common)
    return false;
  Operation *useHere = common->findAncestorOpInBlock(*statement);
  Operation *pointHere = common == point.block
                             ? point.op
                             : common->findAncestorOpInBlock(*point.block->getParentOp());
  // At the entry of the common block everything in it is still to come.
  bool comesLater = !pointHere || pointHere->isBeforeInBlock(useHere);
  return comesLater || isRepeatedWithin(common, value);
}

/// True if the operation that writes `written` reads `needed` in a way that does
/// not bear the two in one place.
bool Interference::isOverwrittenWhileRead(Value written, Value needed) const {
  Operation *op = written.getDefiningOp();
  bool reads = op && llvm::any_of(needed.getUsers(), [&](Operation *user) {
                 return forming.getStatement(user) == op;
               });
  if (!reads)
    return false;
  if (auto accumulate = dyn_cast<ssk::AccumulateOp>(op))
    return accumulate.getCoef() == needed || accumulate.getRows() == needed;
  if (auto map = dyn_cast<ssk::MapOp>(op))
    return llvm::any_of(map.getInputs(), [&](Value input) {
      return input == needed && input.getType() != map.getType();
    });
  if (isa<scf::ForOp, scf::IfOp>(op))
    return false; // Its own initial values are checked by the pairs they form.
  return isa<ssk::TileType>(needed.getType());
}

/// True if `needed` is an initial value of a loop for another variable than the one
/// that `written`, an iteration argument, has.
static bool isOtherInitialValue(Value written, Value needed) {
  auto argument = dyn_cast<BlockArgument>(written);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop)
    return false;
  for (auto [other, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
    if (init == needed && other != argument)
      return true;
  return false;
}

bool Interference::clobbers(Value written, Value needed) const {
  if (written == needed)
    return false;
  if (isOtherInitialValue(written, needed) || isOverwrittenWhileRead(written, needed))
    return true;
  // A value is needed only where its definition was passed.
  Point point = getWritePoint(written), needs = getWritePoint(needed);
  if (!needed.getParentRegion()->isAncestor(point.block->getParent()))
    return false;
  if (point.block == needs.block && point.op == needs.op)
    return true; // arguments of one loop, results of one branch: written together
  if (point.block == needs.block && !point.op)
    return false;
  Operation *here = point.block == needs.block
                        ? point.op
                        : needs.block->findAncestorOpInBlock(*point.block->getParentOp());
  if (needs.op && (here == needs.op || here->isBeforeInBlock(needs.op)))
    return false; // not yet there
  return llvm::any_of(needed.getUses(), [&](OpOperand &use) {
    return isNeededAfter(needed, use, point);
  });
}
