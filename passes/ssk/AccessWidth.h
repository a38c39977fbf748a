//===- AccessWidth.h - How wide a load or store can be ----------*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SSK_ACCESSWIDTH_H
#define SINKSTATE_PASSES_SSK_ACCESSWIDTH_H

#include "dialect/ssk/SSKDialect.h"

namespace sinkstate::ssk {

/// The largest power of two, up to 16, that is known to divide an integer.
int64_t getKnownDivisor(mlir::Value value);

/// Elements of the widest access, up to 16 bytes, by which a lane can load or
/// store its part of the tile.
int64_t getAccessWidth(LoadOp load);
int64_t getAccessWidth(StoreOp store);
int64_t getAccessWidth(CopyOp copy);

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_ACCESSWIDTH_H
