//===- RandomBits.h - random bits that depend on a place alone ------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// Counter-based: keys are mixed by splitmix64 (Steele, Lea, Flood 2014),
// elements by the 32-bit hash "lowbias32" (C. Wellons, hash-prospector). All of
// it is integer arithmetic: back ends agree bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SS_TO_SSK_RANDOMBITS_H
#define SINKSTATE_PASSES_SS_TO_SSK_RANDOMBITS_H

#include "KernelBuilder.h"

namespace sinkstate {

/// The next number of splitmix64 after `z` (i64).
mlir::Value splitmix64(KernelBuilder &k, mlir::Value z);

/// Mixes the bits of `x` (i32).
mlir::Value hash32(KernelBuilder &k, mlir::Value x);

/// Spreads an element's number (i32) before it is combined with a key.
mlir::Value placeBits(KernelBuilder &k, mlir::Value element);

} // namespace sinkstate

#endif
