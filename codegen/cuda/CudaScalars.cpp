//===- CudaScalars.cpp - Scalars of a kernel ------------------------------===//

#include "codegen/cuda/KernelPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::codegen;
using namespace sinkstate::cuda;

CppExpr KernelPrinter::getExpr(Value value) const {
  if (auto it = elements.find(value); it != elements.end())
    return {it->second};
  Operation *def = value.getDefiningOp();
  if (!def || !forming.isInlined(def)) {
    const std::string &name = plan.lookup(value).name;
    return {isa_and_nonnull<ssk::AllocOp>(def) ? "scratch." + name : name};
  }
  if (auto read = dyn_cast<ssk::ReadOp>(def))
    return {getElement(read.getMemory(), read.getIndices())};
  SmallVector<CppExpr> operands;
  for (Value operand : def->getOperands())
    operands.push_back(getExpr(operand));
  return getCppExpr(def, operands);
}

/// The text of the opposite of a condition.
std::string KernelPrinter::getNegation(Value condition) const {
  Operation *def = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(def); compare && forming.isInlined(def))
    return getNegatedComparison(compare, getExpr(compare.getLhs()), getExpr(compare.getRhs())).text;
  return "!" + parenthesize(getExpr(condition), Precedence::Unary);
}

/// `[i][j]`.
std::string KernelPrinter::getSubscripts(ValueRange indices) const {
  std::string text;
  for (Value index : indices) {
    CppExpr expr = getExpr(index);
    // A subscript widens an integer by itself.
    Operation *def = index.getDefiningOp();
    if (def && forming.isInlined(def) && def->getNumOperands() == 1)
      expr = getImplicitlyConverted(def, expr, getExpr(def->getOperand(0)));
    text += "[" + expr.text + "]";
  }
  return text;
}

/// One element of a global (`rows[i]`) or of scratch (`scratch.gram[i][j]`).
std::string KernelPrinter::getElement(Value memory, ValueRange indices) const {
  return getText(memory) + getSubscripts(indices);
}

/// Gives the variable of `result` a value: as its declaration, or as an assignment.
void KernelPrinter::assignScalar(Value result, StringRef text) {
  const Variable &variable = plan.lookup(result);
  StringRef type = getCppScalarType(result.getType());
  if (!plan.isDeclaredBy(result))
    return out.line(variable.name + " = " + text + ";");
  StringRef qualifier = variable.isMutable                          ? ""
                        : result.getDefiningOp<arith::ConstantOp>() ? "constexpr "
                                                                    : "const ";
  out.line(qualifier + type + " " + variable.name + " = " + text + ";");
}

static StringRef getCompoundOperator(Operation *op) {
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return "+=";
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return "-=";
  // Products of other integers wrap around, which needs casts.
  if (isa<arith::MulFOp>(op) || (isa<arith::MulIOp>(op) && op->getResult(0).getType().isIndex()))
    return "*=";
  return isa<arith::OrIOp>(op) && !op->getResult(0).getType().isInteger(1) ? "|=" : "";
}

/// `x += y` where the variable is the first operand of the operation. Returns false
/// if it is not of that form.
bool KernelPrinter::printUpdate(Value target, Operation *op) {
  StringRef symbol = getCompoundOperator(op);
  if (symbol.empty())
    return false;
  Operation *def = op->getOperand(0).getDefiningOp();
  if ((def && forming.isInlined(def)) || elements.count(op->getOperand(0)) ||
      !plan.isShared(op->getOperand(0), target))
    return false;
  StringRef name = getName(target);
  std::string step = getText(op->getOperand(1));
  bool isInteger = isa<IntegerType, IndexType>(target.getType());
  if (isInteger && step == "1" && (symbol == "+=" || symbol == "-="))
    out.line((symbol == "+=" ? "++" : "--") + name + ";");
  else
    out.line(name + " " + symbol + " " + step + ";");
  return true;
}

/// Assigns an expression to a variable that exists.
void KernelPrinter::printAssignment(Value target, Value value) {
  Operation *def = value.getDefiningOp();
  if (def && forming.isInlined(def) && def->getNumOperands() == 2 && printUpdate(target, def))
    return;
  out.line(getName(target) + " = " + getText(value) + ";");
}

/// The operation of `result` as a statement of its own.
void KernelPrinter::printScalar(Value result) {
  Operation *op = result.getDefiningOp();
  if (auto read = dyn_cast<ssk::ReadOp>(op))
    return assignScalar(result, getElement(read.getMemory(), read.getIndices()));
  if (!plan.isDeclaredBy(result) && op->getNumOperands() == 2 && printUpdate(result, op))
    return;
  SmallVector<CppExpr> operands;
  for (Value operand : op->getOperands())
    operands.push_back(getExpr(operand));
  CppExpr whole = getCppExpr(op, operands);
  if (op->getNumOperands() == 1 && plan.isDeclaredBy(result))
    whole = getImplicitlyConverted(op, whole, operands[0]);
  assignScalar(result, whole.text);
}
