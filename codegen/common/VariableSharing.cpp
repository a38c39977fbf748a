//===- VariableSharing.cpp - Which values live in one variable ------------===//

#include "codegen/common/Interference.h"
#include "codegen/common/VariablePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;

Value VariablePlan::getLeader(Value value) const {
  for (auto it = parents.find(value); it != parents.end(); it = parents.find(value))
    value = it->second;
  return value;
}

/// True if the value has a variable that may change: not a constant, a kernel
/// argument, a loop counter or an element of a map.
static bool hasOwnVariable(Value value, const ExpressionForming &forming) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto parts = dyn_cast<ssk::PartsOp>(parent))
      return argument != parts.getPart();
    auto loop = dyn_cast<scf::ForOp>(parent);
    return loop && argument != loop.getInductionVar();
  }
  Operation *def = value.getDefiningOp();
  return !forming.isInlined(def) &&
         !isa<ssk::ProgramIdOp, ssk::AllocOp, arith::ConstantOp>(def);
}

bool VariablePlan::tryShare(Value a, Value b, const Interference &interference) {
  Value first = getLeader(a), second = getLeader(b);
  if (first == second)
    return true;
  if (!hasOwnVariable(a, forming) || !hasOwnVariable(b, forming))
    return false;
  for (Value x : getMembers(first))
    for (Value y : getMembers(second))
      if (interference.interferes(x, y))
        return false;
  SmallVector<Value> all(getMembers(first));
  llvm::append_range(all, getMembers(second));
  members.erase(second);
  members[first] = all;
  parents[second] = first;
  return true;
}

void VariablePlan::shareLoop(scf::ForOp loop, const Interference &interference) {
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    tryShare(argument, loop.getResult(i), interference);
    tryShare(argument, yield->getOperand(i), interference);
    tryShare(argument, loop.getInitArgs()[i], interference);
  }
}

/// Inner operations come first: what a loop carries for the one around is known then.
void VariablePlan::shareIn(Block &block, const Interference &interference) {
  for (Operation &op : block) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        shareIn(inner, interference);
    if (auto accumulate = dyn_cast<ssk::AccumulateOp>(op))
      tryShare(accumulate.getAcc(), accumulate.getResult(), interference);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      shareLoop(loop, interference);
    else if (auto parts = dyn_cast<ssk::PartsOp>(op))
      for (auto [i, own] : llvm::enumerate(parts.getLast().getArguments())) {
        tryShare(own, parts.getSums()[i], interference);
        tryShare(own, parts.getLastYielded()[i], interference);
        tryShare(own, parts.getYielded()[i], interference);
      }
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      for (auto [i, result] : llvm::enumerate(branch.getResults()))
        for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
          tryShare(result, yield.getOperand(i), interference);
  }
}
