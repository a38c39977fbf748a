//===- MathExpansion.h - arith and math without a C library -------*- C++
//-*-===//
#ifndef SINKSTATE_CODEGEN_CPU_MATHEXPANSION_H
#define SINKSTATE_CODEGEN_CPU_MATHEXPANSION_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace sinkstate::cpu {

/// Creates `op`, an operation of arith or math, on `operands`, which are
/// scalars or vectors of one length, with a result of `type`.
///
/// exp, log and log1p of f32 become polynomials (errors below 4 units in the
/// last place; NaN and infinities as the C library has them) and conversions
/// to bf16 become integer arithmetic, as do those from and to f16 unless the
/// processor `convertsHalf`: no call of a C library remains. Fails with a
/// diagnostic on operations that would need one.
mlir::LogicalResult createElementwise(mlir::OpBuilder &builder,
                                      mlir::Operation &op,
                                      mlir::ValueRange operands,
                                      mlir::Type type, bool convertsHalf,
                                      mlir::Value &result);

/// e^x of f32 scalars or vectors.
mlir::Value createExp(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value x);
/// ln x.
mlir::Value createLog(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value x);
/// ln (1 + x), accurate for small x.
mlir::Value createLog1p(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value x);

} // namespace sinkstate::cpu

#endif // SINKSTATE_CODEGEN_CPU_MATHEXPANSION_H
