//===- Driver.cpp - The CUDA driver, opened with dlopen -------------------===//

#include "cuda/Driver.h"

#include "capi/Failure.h"
#include "environment/Environment.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

namespace sinkstate::runtime::cuda {
namespace {

/// Where a driver puts its library, beside the loader's own folders.
constexpr const char *kPaths[] = {
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
};

const char *fileName(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

using GetProcAddress = CUresult (*)(const char *symbol, void **function,
                                    int version, uint64_t flags,
                                    CUdriverProcAddressQueryResult *status);

} // namespace

std::string versionText(int version) {
  return text(version / 1000, ".", version % 1000 / 10);
}

bool endsTheContext(CUresult result) {
  switch (result) {
  case kErrorDeinitialized:
  case kErrorEccUncorrectable:
  case kErrorNvlinkUncorrectable:
  case kErrorContained:
  case kErrorIllegalAddress:
  case kErrorLaunchTimeout:
  case kErrorContextIsDestroyed:
  case kErrorAssert:
  case kErrorTensorMemoryLeak:
    return true;
  default: // hardware stack, illegal instruction, misaligned, ..., launch failed
    return result >= kErrorHardwareStack && result <= kErrorLaunchFailed;
  }
}

bool isOfCapture(CUresult result) {
  return result >= kErrorCaptureUnsupported && result <= kErrorCapturedEvent;
}

std::shared_ptr<const Driver> Driver::get() {
  static std::mutex mutex;
  static std::shared_ptr<const Driver> driver;
  std::lock_guard lock(mutex);
  if (!driver)
    driver = open(environment::read(environment::cudaDriver));
  return driver;
}

std::shared_ptr<const Driver> Driver::open(const std::string &path) {
  std::vector<std::string> paths(std::begin(kPaths), std::end(kPaths));
  if (!path.empty())
    paths = {path};
  std::shared_ptr<Driver> driver(new Driver);
  std::string looked, why;
  for (const std::string &candidate : paths) {
    driver->handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (driver->handle) {
      driver->openedPath = candidate;
      break;
    }
    looked += (looked.empty() ? "'" : ", '") + candidate + "'";
    if (const char *reason = dlerror(); reason && why.empty())
      why = reason;
  }
  if (!driver->handle)
    fail(SS_DEVICE_UNAVAILABLE, "no CUDA driver: looked for ", looked, " (",
         why, "), expected the library of an NVIDIA driver for CUDA ",
         versionText(kOldestVersion),
         " or newer: install the driver or use the CPU device");
  driver->resolve();
  driver->initialise();
  return driver;
}

Driver::~Driver() {
  if (handle)
    dlclose(handle);
}

/// Asks for the driver's version first: an old driver is then called old, and
/// not a library with a function missing.
void Driver::resolve() {
  using GetVersion = CUresult (*)(int *);
  auto getVersion =
      reinterpret_cast<GetVersion>(dlsym(handle, "cuDriverGetVersion"));
  if (!getVersion || getVersion(&driverVersion) != kSuccess)
    fail(SS_DEVICE_UNAVAILABLE, "'", openedPath,
         "' does not say its version (cuDriverGetVersion), expected the "
         "library of an NVIDIA driver: install the driver again");
  if (driverVersion < kOldestVersion)
    fail(SS_DEVICE_UNAVAILABLE, "the NVIDIA driver ('", openedPath,
         "') is for CUDA ", versionText(driverVersion), ", expected ",
         versionText(kOldestVersion), " or newer: update the driver");
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(handle, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    fail(SS_DEVICE_UNAVAILABLE, "'", openedPath,
         "' has no function 'cuGetProcAddress_v2', expected it in every "
         "driver for CUDA 12: install the driver again");

  enum Kind { Required, Optional };
  auto find = [&](auto &function, Kind kind, const char *name, int version) {
    void *address = nullptr;
    CUdriverProcAddressQueryResult status = 0;
    CUresult result = getProcAddress(name, &address, version, 0, &status);
    if ((result != kSuccess || !address) && kind == Required)
      fail(SS_DEVICE_UNAVAILABLE, "the NVIDIA driver ('", openedPath,
           "', CUDA ", versionText(driverVersion), ") has no function '", name,
           "' as of CUDA ", versionText(version),
           status == kSymbolVersionNotSufficient ? " (it is too old)" : "",
           ", which SinkState needs: install the driver again or update it");
    function = result == kSuccess
                   ? reinterpret_cast<std::remove_reference_t<decltype(
                         function)>>(address)
                   : nullptr;
  };
#define SS_CUDA_SYMBOL(KIND, NAME, VERSION, PARAMETERS)                        \
  find(table.NAME, KIND, #NAME, VERSION);
#include "cuda/DriverSymbols.def"
#undef SS_CUDA_SYMBOL
}

void Driver::initialise() {
  CUresult result = table.cuInit(0);
  if (result == kSuccess)
    return;
  const char *remedy = "check the driver with nvidia-smi";
  if (result == kErrorNoDevice)
    remedy = "expected at least one NVIDIA GPU (see CUDA_VISIBLE_DEVICES)";
  else if (result == kErrorStubLibrary)
    remedy = "this is the toolkit's stub for linking, not a driver: take its "
             "folder out of the library path";
  else if (result == kErrorSystemDriverMismatch)
    remedy = "the driver's library and kernel module differ: restart the "
             "machine after a driver update";
  fail(SS_DEVICE_UNAVAILABLE, "the NVIDIA driver ('", openedPath, "', CUDA ",
       versionText(driverVersion), ") does not start: ", describe(result),
       ": ", remedy);
}

std::string Driver::describe(CUresult result) const {
  const char *name = nullptr, *words = nullptr;
  if (table.cuGetErrorName(result, &name) != kSuccess || !name)
    return text("error ", result);
  if (table.cuGetErrorString(result, &words) != kSuccess || !words)
    return name;
  return text(name, " (", words, ")");
}

void Driver::throwFailure(CUresult result, const char *call, const char *file,
                          int line) const {
  const std::string what = text(call, " failed: ", describe(result), " at ",
                                fileName(file), ":", line);
  if (result == kErrorOutOfMemory)
    fail(SS_OUT_OF_MEMORY, what,
         ": free GPU memory, or create the engine with fewer slots or a "
         "smaller row_capacity");
  if (endsTheContext(result))
    fail(SS_DEVICE_LOST, what,
         ": the GPU's context is lost, and every later call on it fails; an "
         "earlier kernel may be the cause: end the process and start again");
  if (isOfCapture(result))
    fail(SS_DEVICE_ERROR, what,
         ": this call is not allowed while a stream is captured; make it "
         "before the capture or after it");
  fail(SS_DEVICE_ERROR, what, ": check the arguments and the driver");
}

} // namespace sinkstate::runtime::cuda
