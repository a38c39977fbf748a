//===- NonNegative.h - Values that are never negative -----------*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_COMMON_NONNEGATIVE_H
#define SINKSTATE_CODEGEN_COMMON_NONNEGATIVE_H

#include "mlir/IR/Value.h"

namespace sinkstate::codegen {

/// True if the integer is known to be >= 0 by the way it is computed, provided
/// that no arithmetic overflows. Such a value can be divided, compared and
/// shifted as a signed number where MLIR asks for the unsigned operation.
bool isNonNegative(mlir::Value value);

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_NONNEGATIVE_H
