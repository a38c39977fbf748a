//===- CppExpr.cpp - Scalar operations as C++ expressions -----------------===//

#include "codegen/common/CppExpr.h"
#include "codegen/common/NonNegative.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sinkstate::codegen;

//===----------------------------------------------------------------------===//
// Putting expressions together
//===----------------------------------------------------------------------===//

std::string sinkstate::codegen::parenthesize(const CppExpr &expr,
                                             Precedence parent, bool strict) {
  bool bare = expr.precedence > parent || (expr.precedence == parent && !strict);
  // `- -x` must not become `--x`.
  if (parent == Precedence::Unary && expr.text.front() == '-')
    bare = false;
  // Correct without them, but few readers know these rules by heart.
  bool bitwise = parent >= Precedence::BitOr && parent <= Precedence::BitAnd;
  if ((bitwise || parent == Precedence::Shift) && expr.precedence != parent &&
      expr.precedence < Precedence::Unary)
    bare = false;
  if (parent == Precedence::LogicalOr && expr.precedence == Precedence::LogicalAnd)
    bare = false;
  return bare ? expr.text : "(" + expr.text + ")";
}

static unsigned getSize(ArrayRef<CppExpr> operands) {
  unsigned size = 1;
  for (const CppExpr &operand : operands)
    size += operand.size;
  return size;
}

static CppExpr makeBinary(StringRef symbol, Precedence precedence,
                          const CppExpr &lhs, const CppExpr &rhs) {
  std::string text = parenthesize(lhs, precedence) + " " + symbol.str() + " " +
                     parenthesize(rhs, precedence, /*strict=*/true);
  return {text, precedence, getSize({lhs, rhs})};
}

static CppExpr makeCall(StringRef function, ArrayRef<CppExpr> arguments) {
  std::string text = function.str() + "(";
  for (auto [i, argument] : llvm::enumerate(arguments))
    text += (i ? ", " : "") + argument.text;
  return {text + ")", Precedence::Primary, getSize(arguments)};
}

static CppExpr makeNot(const CppExpr &operand) {
  return {"!" + parenthesize(operand, Precedence::Unary), Precedence::Unary,
          operand.size + 1};
}

/// Gives a literal the type of a 64-bit operation where C++ would take int.
static CppExpr widenLiteral(CppExpr literal, Type type) {
  if (literal.isLiteral && !type.isInteger(32))
    return makeCall("int64_t", literal);
  return literal;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
struct BinaryOperator {
  StringRef symbol; // empty: not a plain binary operator
  Precedence precedence = Precedence::Primary;
};
} // namespace

static BinaryOperator getBinaryOperator(Operation *op) {
  bool isBool = op->getResult(0).getType().isInteger(1);
  return llvm::TypeSwitch<Operation *, BinaryOperator>(op)
      .Case<arith::AddIOp, arith::AddFOp>(
          [](auto) { return BinaryOperator{"+", Precedence::Additive}; })
      .Case<arith::SubIOp, arith::SubFOp>(
          [](auto) { return BinaryOperator{"-", Precedence::Additive}; })
      .Case<arith::MulIOp, arith::MulFOp>(
          [](auto) { return BinaryOperator{"*", Precedence::Multiplicative}; })
      .Case<arith::DivFOp, arith::DivSIOp>(
          [](auto) { return BinaryOperator{"/", Precedence::Multiplicative}; })
      .Case<arith::RemSIOp>(
          [](auto) { return BinaryOperator{"%", Precedence::Multiplicative}; })
      .Case<arith::ShLIOp>(
          [](auto) { return BinaryOperator{"<<", Precedence::Shift}; })
      .Case<arith::ShRSIOp>(
          [](auto) { return BinaryOperator{">>", Precedence::Shift}; })
      .Case<arith::AndIOp>([&](auto) {
        return isBool ? BinaryOperator{"&&", Precedence::LogicalAnd}
                      : BinaryOperator{"&", Precedence::BitAnd};
      })
      .Case<arith::OrIOp>([&](auto) {
        return isBool ? BinaryOperator{"||", Precedence::LogicalOr}
                      : BinaryOperator{"|", Precedence::BitOr};
      })
      .Case<arith::XOrIOp>([&](auto) {
        return isBool ? BinaryOperator{"!=", Precedence::Equality}
                      : BinaryOperator{"^", Precedence::BitXor};
      })
      .Default([](Operation *) { return BinaryOperator{}; });
}

/// A function with a variant for float and one for double.
namespace {
struct Function {
  StringRef ofFloat, ofDouble;
};
} // namespace

static Function getFunction(Operation *op) {
  return llvm::StringSwitch<Function>(op->getName().getStringRef())
      .Case("math.exp", {"expf", "exp"})
      .Case("math.exp2", {"exp2f", "exp2"})
      .Case("math.expm1", {"expm1f", "expm1"})
      .Case("math.log", {"logf", "log"})
      .Case("math.log1p", {"log1pf", "log1p"})
      .Case("math.log2", {"log2f", "log2"})
      .Case("math.sqrt", {"sqrtf", "sqrt"})
      .Case("math.rsqrt", {"rsqrtf", "rsqrt"})
      .Case("math.absf", {"fabsf", "fabs"})
      .Case("math.tanh", {"tanhf", "tanh"})
      .Case("math.floor", {"floorf", "floor"})
      .Case("math.ceil", {"ceilf", "ceil"})
      .Case("math.trunc", {"truncf", "trunc"})
      .Case("math.round", {"roundf", "round"})
      .Case("math.roundeven", {"rintf", "rint"})
      .Case("math.copysign", {"copysignf", "copysign"})
      .Case("math.powf", {"powf", "pow"})
      .Case("math.fma", {"fmaf", "fma"})
      .Case("arith.minnumf", {"fminf", "fmin"})
      .Case("arith.maxnumf", {"fmaxf", "fmax"})
      .Case("arith.minimumf", {"ss::minimum", "ss::minimum"})
      .Case("arith.maximumf", {"ss::maximum", "ss::maximum"})
      .Case("arith.remf", {"fmodf", "fmod"})
      .Case("math.isnan", {"isnan", "isnan"})
      .Case("math.isinf", {"isinf", "isinf"})
      .Case("math.isfinite", {"isfinite", "isfinite"})
      .Default({});
}

static StringRef getUnsignedType(Type type) {
  return type.isInteger(32) ? "uint32_t" : "uint64_t";
}

/// `function(x)` as a cast to a type.
static CppExpr makeCast(StringRef type, const CppExpr &operand) {
  return makeCall(type, operand);
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

static CppExpr getIntegerComparison(arith::CmpIOp op, arith::CmpIPredicate predicate,
                                    CppExpr lhs, CppExpr rhs) {
  using P = arith::CmpIPredicate;
  bool isUnsigned = predicate == P::ult || predicate == P::ule ||
                    predicate == P::ugt || predicate == P::uge;
  Type type = op.getLhs().getType();
  if (isUnsigned && !(isNonNegative(op.getLhs()) && isNonNegative(op.getRhs()))) {
    lhs = makeCast(getUnsignedType(type), lhs);
    rhs = makeCast(getUnsignedType(type), rhs);
  }
  switch (predicate) {
  case P::eq:
    return makeBinary("==", Precedence::Equality, lhs, rhs);
  case P::ne:
    return makeBinary("!=", Precedence::Equality, lhs, rhs);
  case P::slt:
  case P::ult:
    return makeBinary("<", Precedence::Relational, lhs, rhs);
  case P::sle:
  case P::ule:
    return makeBinary("<=", Precedence::Relational, lhs, rhs);
  case P::sgt:
  case P::ugt:
    return makeBinary(">", Precedence::Relational, lhs, rhs);
  case P::sge:
  case P::uge:
    return makeBinary(">=", Precedence::Relational, lhs, rhs);
  }
  llvm_unreachable("all predicates are listed");
}

CppExpr sinkstate::codegen::getNegatedComparison(arith::CmpIOp op, const CppExpr &lhs,
                                                 const CppExpr &rhs) {
  return getIntegerComparison(op, arith::invertPredicate(op.getPredicate()), lhs, rhs);
}

/// C++ comparisons are the ordered ones, except for !=.
static CppExpr getFloatComparison(arith::CmpFOp op, CppExpr lhs, CppExpr rhs) {
  using P = arith::CmpFPredicate;
  auto compare = [&](StringRef symbol, Precedence precedence) {
    return makeBinary(symbol, precedence, lhs, rhs);
  };
  switch (op.getPredicate()) {
  case P::AlwaysFalse:
    return {"false"};
  case P::AlwaysTrue:
    return {"true"};
  case P::OEQ:
    return compare("==", Precedence::Equality);
  case P::UNE:
    return compare("!=", Precedence::Equality);
  case P::OLT:
    return compare("<", Precedence::Relational);
  case P::OLE:
    return compare("<=", Precedence::Relational);
  case P::OGT:
    return compare(">", Precedence::Relational);
  case P::OGE:
    return compare(">=", Precedence::Relational);
  case P::ULT:
    return makeNot(compare(">=", Precedence::Relational));
  case P::ULE:
    return makeNot(compare(">", Precedence::Relational));
  case P::UGT:
    return makeNot(compare("<=", Precedence::Relational));
  case P::UGE:
    return makeNot(compare("<", Precedence::Relational));
  case P::ONE:
    return makeCall("ss::less_or_greater", {lhs, rhs});
  case P::UEQ:
    return makeNot(makeCall("ss::less_or_greater", {lhs, rhs}));
  case P::ORD:
    return makeNot(makeCall("ss::unordered", {lhs, rhs}));
  case P::UNO:
    return makeCall("ss::unordered", {lhs, rhs});
  }
  llvm_unreachable("all predicates are listed");
}

//===----------------------------------------------------------------------===//
// Integer operations that C++ has for unsigned types only, and casts
//===----------------------------------------------------------------------===//

static CppExpr getWrapping(Type type, StringRef symbol, Precedence precedence, CppExpr lhs,
                           CppExpr rhs, bool isShift = false) {
  lhs = makeCast(getUnsignedType(type), lhs);
  if (!isShift)
    rhs = makeCast(getUnsignedType(type), rhs);
  return makeCast(getCppScalarType(type), makeBinary(symbol, precedence, lhs, rhs));
}

static CppExpr getUnsignedBinary(Operation *op, StringRef symbol,
                                 Precedence precedence, CppExpr lhs, CppExpr rhs) {
  bool isShift = isa<arith::ShRUIOp>(op);
  Type type = op->getResult(0).getType();
  if (isNonNegative(op->getOperand(0)) &&
      (isShift || isNonNegative(op->getOperand(1))))
    return makeBinary(symbol, precedence, lhs, rhs);
  return getWrapping(type, symbol, precedence, lhs, rhs, isShift);
}

static CppExpr getUnsignedMinMax(Operation *op, StringRef function, CppExpr lhs,
                                 CppExpr rhs) {
  Type type = op->getResult(0).getType();
  if (isNonNegative(op->getOperand(0)) && isNonNegative(op->getOperand(1)))
    return makeCall(function, {widenLiteral(lhs, type), widenLiteral(rhs, type)});
  StringRef wide = getUnsignedType(type);
  return makeCast(getCppScalarType(type),
                  makeCall(function, {makeCast(wide, lhs), makeCast(wide, rhs)}));
}

static CppExpr getCast(Operation *op, const CppExpr &operand) {
  Type from = op->getOperand(0).getType();
  Type to = op->getResult(0).getType();
  StringRef toName = getCppScalarType(to);
  if (isa<arith::BitcastOp>(op)) {
    StringRef function = from.isF32()   ? "__float_as_int"
                         : from.isF64() ? "__double_as_longlong"
                         : to.isF32()   ? "__int_as_float"
                                        : "__longlong_as_double";
    return from == to ? operand : makeCall(function, operand);
  }
  if (getCppScalarType(from) == toName)
    return operand; // index and i64
  if (from.isInteger(1))
    return isa<arith::ExtSIOp, arith::SIToFPOp, arith::IndexCastOp>(op)
               ? CppExpr{"-" + toName.str() + "(" + operand.text + ")", Precedence::Unary,
                         operand.size + 1}
               : makeCast(toName, operand);
  if (to.isInteger(1)) // truncation keeps the lowest bit
    return makeBinary("!=", Precedence::Equality,
                      makeBinary("&", Precedence::BitAnd, operand, {"1"}), {"0"});
  bool fromUnsigned = isa<arith::ExtUIOp, arith::UIToFPOp, arith::IndexCastUIOp>(op) &&
                      !isNonNegative(op->getOperand(0));
  if (fromUnsigned)
    return makeCast(toName, makeCast(getUnsignedType(from), operand));
  if (isa<arith::FPToUIOp>(op))
    return makeCast(toName, makeCast(getUnsignedType(to), operand));
  return makeCast(toName, operand);
}

static bool isCast(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp,
             arith::FPToUIOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(op);
}

/// Products of i32 and i64 wrap around (those of index are addresses, which do
/// not): C++ has that for unsigned types only.
static bool isWrappingProduct(Operation *op) {
  return isa<arith::MulIOp>(op) && op->getResult(0).getType().isInteger();
}

static bool isIntegerSpecial(Operation *op) {
  return isWrappingProduct(op) || isa<arith::DivUIOp, arith::RemUIOp, arith::ShRUIOp, arith::MinSIOp,
             arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp, arith::CeilDivSIOp,
             arith::FloorDivSIOp, math::AbsIOp>(op);
}

static CppExpr getIntegerSpecial(Operation *op, ArrayRef<CppExpr> operands) {
  Type type = op->getResult(0).getType();
  SmallVector<CppExpr> wide;
  for (const CppExpr &operand : operands)
    wide.push_back(widenLiteral(operand, type));
  return llvm::TypeSwitch<Operation *, CppExpr>(op)
      .Case<arith::MulIOp>([&](auto) {
        return getWrapping(type, "*", Precedence::Multiplicative, operands[0], operands[1]);
      })
      .Case<arith::DivUIOp>([&](auto) {
        return getUnsignedBinary(op, "/", Precedence::Multiplicative, operands[0], operands[1]);
      })
      .Case<arith::RemUIOp>([&](auto) {
        return getUnsignedBinary(op, "%", Precedence::Multiplicative, operands[0], operands[1]);
      })
      .Case<arith::ShRUIOp>([&](auto) {
        return getUnsignedBinary(op, ">>", Precedence::Shift, operands[0], operands[1]);
      })
      .Case<arith::MinSIOp>([&](auto) { return makeCall("min", wide); })
      .Case<arith::MaxSIOp>([&](auto) { return makeCall("max", wide); })
      .Case<arith::MinUIOp>(
          [&](auto) { return getUnsignedMinMax(op, "min", operands[0], operands[1]); })
      .Case<arith::MaxUIOp>(
          [&](auto) { return getUnsignedMinMax(op, "max", operands[0], operands[1]); })
      .Case<arith::CeilDivSIOp>([&](auto) { return makeCall("ss::ceil_div", wide); })
      .Case<arith::FloorDivSIOp>([&](auto) { return makeCall("ss::floor_div", wide); })
      .Default([&](Operation *) { return makeCall("abs", wide); });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

static bool isNarrowFloat(Type type) {
  return isa<Float16Type, BFloat16Type, Float8E4M3FNType>(type);
}

/// Arithmetic on narrow floats is widened by the IR, never by the printer.
static bool hasComputableTypes(Operation *op) {
  auto isPrintable = [](Type type) { return !getCppScalarType(type).empty(); };
  bool moves = isCast(op) || isa<arith::ConstantOp, arith::SelectOp>(op);
  auto isFine = [&](Type type) {
    return isPrintable(type) && (moves || !isNarrowFloat(type));
  };
  return llvm::all_of(op->getOperandTypes(), isFine) &&
         llvm::all_of(op->getResultTypes(), isFine);
}

/// Narrow floats are converted from and to f32 alone: two roundings are not one.
static bool isRoundedTwice(Operation *op) {
  if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
    return isCast(op) && !isa<arith::BitcastOp>(op) &&
           llvm::any_of(op->getOperandTypes(), isNarrowFloat);
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  return (isNarrowFloat(from) && !to.isF32()) || (isNarrowFloat(to) && !from.isF32());
}

/// Operations on i1 beyond logic have no meaning in the printed text.
static bool isLogicOnBool(Operation *op) {
  return isCast(op) || isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::CmpIOp,
                           arith::CmpFOp, arith::SelectOp, arith::ConstantOp>(op);
}

bool sinkstate::codegen::isCppScalarOp(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || !hasComputableTypes(op))
    return false;
  if (isRoundedTwice(op) || (isa<arith::SIToFPOp, arith::UIToFPOp>(op) &&
                             !op->getResult(0).getType().isF32() &&
                             !op->getResult(0).getType().isF64()))
    return false;
  bool onBool = llvm::any_of(op->getOperandTypes(), [](Type t) { return t.isInteger(1); });
  if (onBool && !isLogicOnBool(op))
    return false;
  if (auto bitcast = dyn_cast<arith::BitcastOp>(op))
    return !isNarrowFloat(bitcast.getIn().getType()) && !isNarrowFloat(bitcast.getType());
  if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && onBool)
    return compare.getPredicate() == arith::CmpIPredicate::eq ||
           compare.getPredicate() == arith::CmpIPredicate::ne;
  return isa<arith::ConstantOp, arith::SelectOp, arith::NegFOp, arith::CmpIOp,
             arith::CmpFOp>(op) ||
         isCast(op) || isIntegerSpecial(op) || !getBinaryOperator(op).symbol.empty() ||
         !getFunction(op).ofFloat.empty();
}

CppExpr sinkstate::codegen::getCppConditional(const CppExpr &condition, const CppExpr &yes,
                                              const CppExpr &no) {
  std::string text = parenthesize(condition, Precedence::Conditional, /*strict=*/true) +
                     " ? " + parenthesize(yes, Precedence::Conditional, /*strict=*/true) +
                     " : " + parenthesize(no, Precedence::Conditional);
  return {text, Precedence::Conditional, getSize({condition, yes, no}),
          yes.isLiteral && no.isLiteral};
}

static CppExpr getBinary(Operation *op, BinaryOperator symbol, ArrayRef<CppExpr> operands) {
  Type type = op->getResult(0).getType();
  CppExpr lhs = operands[0];
  // `x != true` is spelled `!x`.
  if (isa<arith::XOrIOp>(op) && type.isInteger(1) && operands[1].text == "true")
    return makeNot(lhs);
  bool literalsAlone = lhs.isLiteral && (operands[1].isLiteral || isa<arith::ShLIOp>(op));
  if (isa<IntegerType, IndexType>(type) && literalsAlone)
    lhs = widenLiteral(lhs, type);
  // Integers may be added in any order.
  if (isa<arith::AddIOp>(op) && operands[1].precedence == Precedence::Additive)
    return {parenthesize(lhs, Precedence::Additive) + " + " + operands[1].text,
            Precedence::Additive, getSize({lhs, operands[1]})};
  return makeBinary(symbol.symbol, symbol.precedence, lhs, operands[1]);
}

CppExpr sinkstate::codegen::getCppExpr(Operation *op, ArrayRef<CppExpr> operands) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return getCppLiteral(constant.getValue());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return getIntegerComparison(compare, compare.getPredicate(), operands[0], operands[1]);
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return getFloatComparison(compare, operands[0], operands[1]);
  if (isa<arith::SelectOp>(op))
    return getCppConditional(operands[0], operands[1], operands[2]);
  if (isa<arith::NegFOp>(op))
    return {"-" + parenthesize(operands[0], Precedence::Unary), Precedence::Unary,
            operands[0].size + 1};
  if (isCast(op))
    return getCast(op, operands[0]);
  if (isIntegerSpecial(op))
    return getIntegerSpecial(op, operands);
  if (BinaryOperator symbol = getBinaryOperator(op); !symbol.symbol.empty())
    return getBinary(op, symbol, operands);
  Function function = getFunction(op);
  bool isDouble = op->getOperand(0).getType().isF64();
  return makeCall(isDouble ? function.ofDouble : function.ofFloat, operands);
}

CppExpr sinkstate::codegen::getImplicitlyConverted(Operation *op, CppExpr whole,
                                                   const CppExpr &operand) {
  if (!op || !isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return whole;
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  bool widens = from.isInteger(32) && (to.isInteger(64) || to.isIndex());
  return widens ? operand : whole;
}
