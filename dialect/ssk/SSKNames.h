//===- SSKNames.h - What passes tell the printer of CUDA C++ ----*- C++ -*-===//
#ifndef SINKSTATE_DIALECT_SSK_SSKNAMES_H
#define SINKSTATE_DIALECT_SSK_SSKNAMES_H

#include "llvm/ADT/StringRef.h"

namespace sinkstate::ssk {

/// Attribute (string) of an `arith.constant`: the name of the number. An attribute, as
/// folding drops the locations of constants; ssk-prepare makes it the location's name.
/// Constants of one value and type are merged and have the name of one of them, so
/// only numbers that mean one thing in a kernel have one.
inline constexpr llvm::StringLiteral kConstantNameAttr = "ssk.constant_name";

/// Attribute (i64) of a loop: it is printed with `#pragma unroll N`.
inline constexpr llvm::StringLiteral kUnrollAttr = "ssk.unroll";

/// Attribute (array of strings) of a kernel: routines of the device library
/// ("matmul", "orthogonalize") that it has at every use, instead of calling them.
inline constexpr llvm::StringLiteral kRepeatedAttr = "ssk.repeated";

} // namespace sinkstate::ssk

#endif // SINKSTATE_DIALECT_SSK_SSKNAMES_H
