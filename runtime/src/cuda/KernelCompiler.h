//===- KernelCompiler.h - Sources to machine code of one GPU ----*- C++ -*-===//
//
// NVRTC behind the kernel cache. All kernels of an engine are compiled when it
// is created, in parallel threads; nothing is compiled after that.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_KERNELCOMPILER_H
#define SINKSTATE_CUDA_KERNELCOMPILER_H

#include "cache/KernelCache.h"
#include "cuda/Context.h"
#include "nvrtc/Nvrtc.h"

#include <memory>
#include <string>
#include <vector>

namespace sinkstate::runtime::cuda {

struct KernelSource {
  std::string name, text;
};

class KernelCompiler {
public:
  /// For the GPU of a context. The cache is that of the environment.
  explicit KernelCompiler(const Context &context);

  /// The cubins of the sources, in their order. Throws the first failure in
  /// that order: SS_INTERNAL where one of ours is rejected, SS_INVALID_ARGUMENT
  /// where a file of SS_OVERRIDE_DIR is, SS_DEVICE_UNAVAILABLE where NVRTC does not
  /// know the GPU or lacks a part of itself.
  std::vector<std::string>
  compile(const std::vector<KernelSource> &sources,
          const std::vector<nvrtc::Header> &headers) const;

private:
  struct Compiled;
  Compiled compileOne(const KernelSource &source,
                      const std::vector<nvrtc::Header> &headers) const;

  std::string architecture, gpu;
  std::shared_ptr<const nvrtc::Library> library;
  std::unique_ptr<cache::KernelCache> cache;
};

} // namespace sinkstate::runtime::cuda

#endif
