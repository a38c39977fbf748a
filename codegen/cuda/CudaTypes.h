//===- CudaTypes.h - Tiles and scratch in CUDA C++ --------------*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_CUDA_CUDATYPES_H
#define SINKSTATE_CODEGEN_CUDA_CUDATYPES_H

#include "dialect/ssk/SSKDialect.h"

#include <string>

namespace sinkstate::cuda {

/// The registers of one lane, dimension by dimension: {4, 4} for
/// tile<4x128xf32, lanes = 1>.
llvm::SmallVector<int64_t> getRegisterShape(ssk::TileType type);

/// `[4][4]`.
std::string getExtents(llvm::ArrayRef<int64_t> shape);

/// The C++ type of one access of `count` elements: float4, double2, ...
llvm::StringRef getAccessType(mlir::Type element, int64_t count);

/// Shared memory that a kernel may have without asking at the launch.
constexpr int64_t kMaxStaticShared = 48 * 1024;

/// Bytes of one element.
int64_t getElementBytes(mlir::Type element);

} // namespace sinkstate::cuda

#endif // SINKSTATE_CODEGEN_CUDA_CUDATYPES_H
