//===- Module.h - Machine code loaded on a GPU ------------------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_MODULE_H
#define SINKSTATE_CUDA_MODULE_H

#include "cuda/Context.h"

namespace sinkstate::runtime::cuda {

class Module {
public:
  /// Loads a cubin. `name`: what messages call it. A failure quotes the
  /// driver's own log.
  Module(std::shared_ptr<const Context> context, const std::string &name,
         const std::string &image);
  Module(Module &&other) noexcept;
  Module &operator=(Module &&) = delete;
  ~Module();

  /// A kernel, allowed `dynamicShared` bytes of shared memory at its launches.
  CUfunction function(const char *name, int64_t dynamicShared = 0) const;

private:
  std::shared_ptr<const Context> context;
  std::string name;
  CUmodule module = nullptr;
};

} // namespace sinkstate::runtime::cuda

#endif
