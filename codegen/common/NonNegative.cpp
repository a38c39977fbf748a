//===- NonNegative.cpp - Values that are never negative -------------------===//

#include "codegen/common/NonNegative.h"

#include "dialect/ssk/SSKDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

/// Deep chains are rare and not worth their time.
static constexpr unsigned kMaxDepth = 8;

static bool isNonNegative(Value value, unsigned depth) {
  if (depth == 0)
    return false;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isNonNegative();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (isa<sinkstate::ssk::PartsOp>(argument.getOwner()->getParentOp()))
      return true; // the number of a part, as the others are tiles
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && value == loop.getInductionVar() &&
           isNonNegative(loop.getLowerBound(), depth - 1);
  }
  Operation *op = value.getDefiningOp();
  auto allOperands = [&] {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return isNonNegative(operand, depth - 1);
    });
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<sinkstate::ssk::ProgramIdOp, sinkstate::ssk::NextProgramOp,
            arith::ExtUIOp>(
          [](auto) { return true; })
      .Case<arith::AddIOp, arith::MulIOp, arith::DivSIOp, arith::DivUIOp,
            arith::RemUIOp, arith::MinSIOp, arith::OrIOp, arith::XOrIOp,
            arith::IndexCastOp, arith::ExtSIOp, arith::CeilDivSIOp,
            arith::FloorDivSIOp>([&](auto) { return allOperands(); })
      .Case<arith::RemSIOp, arith::ShRSIOp, arith::ShRUIOp>([&](auto typed) {
        return isNonNegative(typed.getLhs(), depth - 1);
      })
      .Case<arith::AndIOp, arith::MaxSIOp>([&](auto typed) {
        return isNonNegative(typed.getLhs(), depth - 1) ||
               isNonNegative(typed.getRhs(), depth - 1);
      })
      .Case<arith::SelectOp>([&](arith::SelectOp select) {
        return isNonNegative(select.getTrueValue(), depth - 1) &&
               isNonNegative(select.getFalseValue(), depth - 1);
      })
      .Default([](Operation *) { return false; });
}

bool sinkstate::codegen::isNonNegative(Value value) {
  return ::isNonNegative(value, kMaxDepth);
}
