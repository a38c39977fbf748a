//===- ExpressionForming.h - Which operations print inside others -*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_COMMON_EXPRESSIONFORMING_H
#define SINKSTATE_CODEGEN_COMMON_EXPRESSIONFORMING_H

#include "dialect/ssk/SSKDialect.h"

#include "llvm/ADT/DenseSet.h"

namespace sinkstate::codegen {

/// Decides which scalar operations of a kernel are printed as part of the
/// expression that uses them and which become variables. Constants go inside,
/// and so does an operation without a name of its own and with one use, if it
/// would not be evaluated more often there. A read goes inside only if nothing is
/// written in between. Nothing is changed in the IR.
class ExpressionForming {
public:
  explicit ExpressionForming(ssk::KernelOp kernel);

  /// True if `op` prints inside its users.
  bool isInlined(mlir::Operation *op) const { return inlined.contains(op); }

  /// The operation in whose statement `op` is evaluated: `op` itself unless it
  /// is inlined.
  mlir::Operation *getStatement(mlir::Operation *op) const;

private:
  void markCandidates(mlir::Block &block);
  void limitSizes(mlir::Block &block);
  bool canInline(mlir::Operation *op) const;

  llvm::DenseSet<mlir::Operation *> inlined;
};

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_EXPRESSIONFORMING_H
