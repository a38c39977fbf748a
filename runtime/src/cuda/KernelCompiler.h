//===- KernelCompiler.h - Sources to machine code of one GPU ----*- C++ -*-===//
//
// NVRTC behind the kernel cache. All kernels of an engine are compiled when it
// is created, in parallel threads; nothing is compiled after that.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_KERNELCOMPILER_H
#define SINKSTATE_CUDA_KERNELCOMPILER_H

#include "cache/KernelCache.h"
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
  /// `architecture`: "sm_90". The cache is that of the environment.
  explicit KernelCompiler(std::string architecture);

  /// The cubins of the sources, in their order. Throws the first failure in
  /// that order.
  std::vector<std::string>
  compile(const std::vector<KernelSource> &sources,
          const std::vector<nvrtc::Header> &headers) const;

private:
  Result<std::string> compileOne(const KernelSource &source,
                                 const std::vector<nvrtc::Header> &headers)
      const;

  std::string architecture;
  std::shared_ptr<const nvrtc::Library> library;
  std::unique_ptr<cache::KernelCache> cache;
};

} // namespace sinkstate::runtime::cuda

#endif
