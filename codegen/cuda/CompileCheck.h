//===- CompileCheck.h - Compile printed kernels to look at them -*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_CUDA_COMPILECHECK_H
#define SINKSTATE_CODEGEN_CUDA_COMPILECHECK_H

#include "result/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sinkstate::cuda {

/// What ptxas says of one kernel.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0;
  int64_t spillBytes = 0; ///< stored and loaded
  int64_t stackBytes = 0;
  int64_t sharedBytes = 0; ///< static shared memory
};

/// Compiles a printed source file with NVRTC for one architecture ("sm_90a") and
/// reports what its kernels take. Fails where NVRTC is missing, does not know the
/// architecture, or rejects the text, which is then an error of the printer.
Result<std::vector<KernelResources>> compileForCheck(const std::string &name,
                                                     const std::string &source,
                                                     const std::string &architecture);

} // namespace sinkstate::cuda

#endif // SINKSTATE_CODEGEN_CUDA_COMPILECHECK_H
