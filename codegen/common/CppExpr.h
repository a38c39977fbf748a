//===- CppExpr.h - Scalar operations as C++ expressions ---------*- C++ -*-===//
//
// The one place that knows how a scalar operation of arith or math is spelled
// in C++ and where it needs parentheses.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_COMMON_CPPEXPR_H
#define SINKSTATE_CODEGEN_COMMON_CPPEXPR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace sinkstate::codegen {

/// How tightly a C++ operator binds, loosest first.
enum class Precedence {
  Conditional,
  LogicalOr,
  LogicalAnd,
  BitOr,
  BitXor,
  BitAnd,
  Equality,
  Relational,
  Shift,
  Additive,
  Multiplicative,
  Unary,
  Primary, // names, literals, calls, subscripts, functional casts
};

/// The text of an expression and the operator at its root.
struct CppExpr {
  std::string text;
  Precedence precedence = Precedence::Primary;
  /// Number of operators, calls and casts in it.
  unsigned size = 0;
  /// True for a literal, or a choice of two, whose C++ type is int whatever the IR's.
  bool isLiteral = false;
};

/// The C++ name of a scalar type ("float", "int64_t"), or an empty string if
/// values of the type cannot be printed.
llvm::StringRef getCppScalarType(mlir::Type type);

/// A literal; `attr` is an integer, boolean or floating point attribute of a
/// printable type. The text reads back as exactly the same value.
CppExpr getCppLiteral(mlir::TypedAttr attr);

/// True if the operation is one of arith or math on printable scalar types that
/// `getCppExpr` knows; constants included.
bool isCppScalarOp(mlir::Operation *op);

/// The expression of a scalar operation, given those of its operands. Integer
/// arithmetic is printed as it stands: kernels do not overflow.
CppExpr getCppExpr(mlir::Operation *op, llvm::ArrayRef<CppExpr> operands);

/// `condition ? yes : no`.
CppExpr getCppConditional(const CppExpr &condition, const CppExpr &yes, const CppExpr &no);

/// The expression that is true where an integer comparison is false.
CppExpr getNegatedComparison(mlir::arith::CmpIOp op, const CppExpr &lhs, const CppExpr &rhs);

/// The text of `expr` as an operand of something that binds like `parent`.
/// `strict` also puts parentheses around an equally binding operator (the right
/// operand of `-`).
std::string parenthesize(const CppExpr &expr, Precedence parent,
                         bool strict = false);

/// The expression without a widening integer cast at its root, for places where
/// C++ converts by itself: an initializer, a subscript.
CppExpr getImplicitlyConverted(mlir::Operation *op, CppExpr whole,
                               const CppExpr &operand);

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_CPPEXPR_H
