//===- CudaPrinter.h - Kernels as CUDA C++ ----------------------*- C++ -*-===//
//
// Prints ssk kernels, prepared by ssk-prepare, as CUDA C++ for NVRTC. Printing
// changes nothing and the same IR gives the same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_CUDA_CUDAPRINTER_H
#define SINKSTATE_CODEGEN_CUDA_CUDAPRINTER_H

#include "dialect/ssk/SSKDialect.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace sinkstate::cuda {

struct CudaPrintOptions {
  /// Print `#line` before statements whose location is a place in a file.
  bool lineDirectives = false;
};

/// What the launch of a printed kernel needs to know.
struct CudaKernelInfo {
  int64_t programsPerBlock = 0;
  /// Warps of a program. More than 1: a block is one program.
  int64_t warps = 1;
  /// More than 1: the text has a second kernel, NAME_parts, that does the same, to the
  /// bit, with a block of that many warps for every program.
  int64_t parts = 1;
  /// Bytes of scratch of one block.
  int64_t sharedBytes = 0;
  /// True if the scratch must be requested at the launch (more than 48 KB).
  bool isSharedDynamic = false;
  /// True if every warp goes on to further programs, so that a grid of any size
  /// runs them all.
  bool loops = false;
};

/// The launch parameters of a kernel.
CudaKernelInfo getCudaKernelInfo(ssk::KernelOp kernel);

/// Emits an error for everything in the kernel that cannot be printed. What
/// passes here compiles: an NVRTC error after it is an error of the printer.
mlir::LogicalResult checkCudaPrintable(ssk::KernelOp kernel);

/// The source file of one kernel.
mlir::FailureOr<std::string> printCudaKernel(ssk::KernelOp kernel,
                                             const CudaPrintOptions &options = {});

/// The source file of all kernels of a module, in their order.
mlir::FailureOr<std::string> printCudaModule(mlir::ModuleOp module,
                                             const CudaPrintOptions &options = {});

} // namespace sinkstate::cuda

#endif // SINKSTATE_CODEGEN_CUDA_CUDAPRINTER_H
