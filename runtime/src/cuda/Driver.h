//===- Driver.h - The CUDA driver, opened with dlopen -----------*- C++ -*-===//
//
// libcuda.so.1 belongs to the machine's NVIDIA driver. It is opened when the
// first CUDA engine is made; a machine without it gets a message that says
// what was looked for. Every call goes through SS_CUDA, which turns a failure
// into one line: the call, the driver's words, where, and what to do.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_DRIVER_H
#define SINKSTATE_CUDA_DRIVER_H

#include "cuda/DriverTypes.h"

#include <memory>
#include <string>

namespace sinkstate::runtime::cuda {

class Driver {
public:
  struct Functions {
#define SS_CUDA_SYMBOL(KIND, NAME, VERSION, PARAMETERS)                        \
  CUresult(*NAME) PARAMETERS;
#include "cuda/DriverSymbols.def"
#undef SS_CUDA_SYMBOL
  };

  /// The oldest driver that is supported: CUDA 12.4.
  static constexpr int kOldestVersion = 12040;

  /// The driver of this process: opened, resolved and initialised at the first
  /// call that succeeds. Throws SS_DEVICE_UNAVAILABLE.
  static std::shared_ptr<const Driver> get();
  /// Opens one library on its own; empty: where the loader and the usual
  /// folders of a driver have it.
  static std::shared_ptr<const Driver> open(const std::string &path);
  ~Driver();
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  const Functions &functions() const { return table; }
  /// 13000 for CUDA 13.0.
  int version() const { return driverVersion; }

  /// Throws unless `result` is success. Errors that end the context are
  /// SS_DEVICE_LOST, a lack of memory is SS_OUT_OF_MEMORY.
  void check(CUresult result, const char *call, const char *file,
             int line) const {
    if (result != kSuccess)
      throwFailure(result, call, file, line);
  }
  /// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"
  std::string describe(CUresult result) const;

private:
  Driver() = default;
  void resolve();
  void initialise();
  [[noreturn]] void throwFailure(CUresult result, const char *call,
                                 const char *file, int line) const;

  void *handle = nullptr;
  std::string openedPath;
  int driverVersion = 0;
  Functions table = {};
};

/// Whether every later call in this process fails after this error.
bool endsTheContext(CUresult result);
/// Whether a call was refused because of a stream that is captured.
bool isOfCapture(CUresult result);
/// "12.4" for 12040.
std::string versionText(int version);

} // namespace sinkstate::runtime::cuda

/// SS_CUDA(driver, cuMemFree(pointer)): calls and checks.
#define SS_CUDA(DRIVER, CALL)                                                  \
  (DRIVER).check((DRIVER).functions().CALL, #CALL, __FILE__, __LINE__)

#endif
