//===- Context.h - One GPU --------------------------------------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONTEXT_H
#define SINKSTATE_CUDA_CONTEXT_H

#include "cuda/Driver.h"

#include <memory>
#include <string>

namespace sinkstate::runtime::cuda {

/// The primary context of one GPU: the one that the application's own CUDA
/// code uses, so that its pointers and streams are valid here. Engines on one
/// GPU share it.
class Context {
public:
  /// Throws SS_DEVICE_UNAVAILABLE where there is no such GPU.
  static std::shared_ptr<const Context>
  open(std::shared_ptr<const Driver> driver, int ordinal);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const Driver &driver() const { return *library; }
  const std::string &name() const { return deviceName; }
  int ordinal() const { return deviceOrdinal; }
  /// What machine code has to be made for: "sm_80", "sm_90a", "sm_120". On a GPU
  /// of compute capability 9.0 with its own features, as kernels are measured.
  std::string architecture() const;
  /// Whether machine code for this architecture runs: that one, or "sm_90" where it
  /// has features of its own.
  bool runs(const std::string &architecture) const;
  /// Whether a kernel can begin beside the end of the one before it.
  bool overlapsKernels() const { return major >= 9; }
  int multiprocessors() const { return multiprocessorCount; }
  /// Shared memory that one block may ask for.
  int sharedBytesPerBlock() const { return sharedBytes; }
  /// Bytes of memory that can be put behind reserved addresses at a time; 0: it
  /// cannot.
  int64_t mappingUnit() const { return unit; }

private:
  friend class CurrentContext;
  explicit Context(std::shared_ptr<const Driver> driver)
      : library(std::move(driver)) {}
  int attribute(CUdevice_attribute name) const;
  void findMappingUnit();

  std::shared_ptr<const Driver> library;
  CUdevice device = 0;
  CUcontext primary = nullptr;
  int deviceOrdinal = 0;
  std::string deviceName;
  int major = 0, minor = 0, multiprocessorCount = 0, sharedBytes = 0;
  int64_t unit = 0;
};

/// Makes a context the calling thread's for a scope. Costs one look-up where
/// it is already, and is allowed while a stream is captured.
class CurrentContext {
public:
  explicit CurrentContext(const Context &context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const Context &context;
  bool pushed = false;
};

} // namespace sinkstate::runtime::cuda

#endif
