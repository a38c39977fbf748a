//===- SSSizes.h - Limits of sizes in states and layers ---------*- C++ -*-===//
//
// Checked alike by the state type and by ss.layer.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DIALECT_SS_SSSIZES_H
#define SINKSTATE_DIALECT_SS_SSSIZES_H

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace sinkstate::ss {

/// The device routines take matrices of at most this many rows.
constexpr int64_t kMaxBlockRows = 64;
/// Above any model there is, and small enough that no product of a few sizes
/// overflows 64 bits.
constexpr int64_t kMaxSize = 65536;

struct StateSizes {
  int64_t heads, keyHeads, dv, dk, draft;
};

/// Sizes are in range and heads divide into key heads.
mlir::LogicalResult
verifyStateSizes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                 const StateSizes &sizes);

/// The block of a compaction, active + buffer + draft rows, is in range.
mlir::LogicalResult
verifyBlockSizes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                 int64_t active, int64_t buffer, int64_t draft);

/// Elements of a matrix have no length in common that 8 bits could rely on.
constexpr llvm::StringLiteral kNoDenseFp8 =
    "a dense state has storage 'fp8', expected f32, f16 or bf16: only rows, "
    "which have unit length, are stored in 8 bits";

/// What is computed is what is stored.
constexpr llvm::StringLiteral kNoRandomDeferred =
    "a deferred state is rounded stochastically, expected rounding nearest: "
    "only what compactions and dense layers write is rounded so";

constexpr llvm::StringLiteral kNoRoundingOfF32 =
    "'rounding' is 'stochastic' with storage 'f32', which rounds nothing; "
    "expected f16, bf16 or fp8";

/// A number for a message, without trailing zeros.
std::string formatNumber(double value);

} // namespace sinkstate::ss

#endif // SINKSTATE_DIALECT_SS_SSSIZES_H
