//===- Context.h - One GPU --------------------------------------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONTEXT_H
#define SINKSTATE_CUDA_CONTEXT_H

#include "cuda/Driver.h"

#include <atomic>
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
  friend class Release;
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
  mutable std::atomic<bool> refusalLogged = false;
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

/// While it lives, calls of this thread are not refused because other streams are
/// captured: for allocations, mappings, and copies and waits on streams that take no
/// part in a capture, none of which a capture has a place for. What touches a captured
/// stream, or waits for the whole context while one is, CUDA refuses nevertheless.
class IgnoredCaptures {
public:
  explicit IgnoredCaptures(const Context &context);
  ~IgnoredCaptures();
  IgnoredCaptures(const IgnoredCaptures &) = delete;
  IgnoredCaptures &operator=(const IgnoredCaptures &) = delete;

private:
  const Context &context;
  int mode;
  bool exchanged = false;
};

/// What a destructor gives back, in the context and whatever is captured. Throws
/// where the context is gone, and everything in it.
class Release {
public:
  explicit Release(const Context &context)
      : context(context), current(context), ignored(context) {}
  /// Logs the first call of a context that is refused: it cannot be thrown, and what
  /// it was to give back stays.
  void note(CUresult result, const char *call) const noexcept;

private:
  const Context &context;
  CurrentContext current;
  IgnoredCaptures ignored;
};

} // namespace sinkstate::runtime::cuda

/// In the scope of a Release `release`, of a member `context`.
#define SS_RELEASE(CALL)                                                       \
  release.note(context->driver().functions().CALL, #CALL)

#endif
