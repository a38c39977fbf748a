//===- Interference.h - Values that need their own variables ----*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_COMMON_INTERFERENCE_H
#define SINKSTATE_CODEGEN_COMMON_INTERFERENCE_H

#include "codegen/common/ExpressionForming.h"

namespace sinkstate::codegen {

/// Answers whether two values of a kernel can live in one variable: neither may
/// still be needed when the other is written. Control flow is structured (scf.for,
/// scf.if with one block each), so the order of operations in blocks decides.
class Interference {
public:
  explicit Interference(const ExpressionForming &forming) : forming(forming) {}

  /// True if the values must not share a variable.
  bool interferes(mlir::Value a, mlir::Value b) const {
    return clobbers(a, b) || clobbers(b, a);
  }

private:
  /// Where a value is written: after an operation, or at a block's entry.
  struct Point {
    mlir::Block *block;
    mlir::Operation *op; // null: the entry
  };
  static Point getWritePoint(mlir::Value value);

  /// True if writing `written` destroys `needed`.
  bool clobbers(mlir::Value written, mlir::Value needed) const;
  bool isNeededAfter(mlir::Value value, mlir::OpOperand &use, Point point) const;
  bool isOverwrittenWhileRead(mlir::Value written, mlir::Value needed) const;

  const ExpressionForming &forming;
};

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_INTERFERENCE_H
