//===- FakeCuda.cpp - A CUDA driver without a GPU -------------------------===//

#include "FakeCalls.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace sinkstate::test::fake {

thread_local int captureMode = 0;
thread_local std::vector<CUcontext> contexts;

namespace {

constexpr CUresult kErrorInvalidContext = 201;

/// All others need a current context, as the driver's documentation has it.
bool needsContext(const std::string &symbol) {
  static const std::set<std::string> without = {
      "cuInit", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
      "cuMemGetAllocationGranularity", "cuThreadExchangeStreamCaptureMode"};
  return symbol.rfind("cuDevice", 0) != 0 && without.count(symbol) == 0;
}

} // namespace

CUresult enter(const char *symbol, bool allowedInCapture) {
  ++machine.calls[symbol];
  if (machine.lost != kSuccess)
    return machine.lost;
  auto planned = machine.failures.find(symbol);
  if (planned != machine.failures.end() && planned->second.skip-- <= 0) {
    const PlannedFailure failure = planned->second;
    machine.failures.erase(planned);
    if (failure.sticky)
      machine.lost = failure.error;
    return failure.error;
  }
  if (needsContext(symbol) && (contexts.empty() || !contexts.back()))
    return kErrorInvalidContext;
  if (machine.recording && !allowedInCapture &&
      captureMode != kCaptureModeRelaxed) {
    return forbid();
  }
  return kSuccess;
}

CUresult forbid() {
  ++machine.forbidden;
  return kErrorCaptureUnsupported;
}

} // namespace sinkstate::test::fake

using namespace sinkstate::test::fake;

namespace {

const CUcontext kPrimary = reinterpret_cast<CUcontext>(0x1000);
constexpr bool kNotInCapture = false;

CUresult fakecuInit(unsigned) {
  ENTER();
  return machine.devices > 0 ? kSuccess : kErrorNoDevice;
}
CUresult fakecuGetErrorName(CUresult error, const char **name) {
  static thread_local std::string text;
  text = error == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
         : error == 100 ? "CUDA_ERROR_NO_DEVICE"
                        : "CUDA_ERROR_" + std::to_string(error);
  *name = text.c_str();
  return kSuccess;
}
CUresult fakecuGetErrorString(CUresult, const char **text) {
  *text = "said by the fake driver";
  return kSuccess;
}
CUresult fakecuDeviceGetCount(int *count) {
  ENTER();
  *count = machine.devices;
  return kSuccess;
}
CUresult fakecuDeviceGet(CUdevice *device, int ordinal) {
  ENTER();
  *device = ordinal;
  return kSuccess;
}
CUresult fakecuDeviceGetName(char *name, int length, CUdevice) {
  ENTER();
  std::strncpy(name, "Fake GPU", size_t(length));
  return kSuccess;
}
CUresult fakecuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                  CUdevice) {
  ENTER();
  const std::map<int, int> values = {{kMultiprocessorCount, 4},
                                     {kComputeCapabilityMajor, machine.major},
                                     {kComputeCapabilityMinor, machine.minor},
                                     {kMaxSharedMemoryPerBlockOptin, 232448},
                                     {kVirtualMemoryManagement,
                                      machine.granularity > 0}};
  *value = values.at(attribute);
  return kSuccess;
}
CUresult fakecuDeviceTotalMem(size_t *bytes, CUdevice) {
  ENTER();
  *bytes = machine.limit;
  return kSuccess;
}
CUresult fakecuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  ENTER(kNotInCapture);
  ++machine.live["context"];
  *context = kPrimary;
  return kSuccess;
}
CUresult fakecuDevicePrimaryCtxRelease(CUdevice) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  --machine.live["context"];
  return kSuccess;
}
CUresult fakecuCtxGetStreamPriorityRange(int *lowest, int *highest) {
  ENTER();
  *lowest = 0, *highest = -5;
  return kSuccess;
}
CUresult fakecuCtxGetCurrent(CUcontext *context) {
  ENTER();
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
CUresult fakecuCtxPushCurrent(CUcontext context) {
  ENTER();
  contexts.push_back(context);
  return kSuccess;
}
CUresult fakecuCtxPopCurrent(CUcontext *context) {
  ENTER();
  if (contexts.empty())
    return kErrorInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
CUresult fakecuModuleLoadDataEx(CUmodule *module, const void *image,
                                unsigned count, CUjit_option *options,
                                void **values) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  if (CUresult failed = enter("cuModuleLoadDataEx", kNotInCapture)) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kJitErrorLogBuffer)
        std::strcpy(static_cast<char *>(values[i]), "the log of the loader");
    return failed;
  }
  if (std::memcmp(image, "FAKE", 4) != 0)
    return kErrorInvalidImage;
  ++machine.live["module"];
  *module = reinterpret_cast<CUmodule>(0x2000);
  return kSuccess;
}
CUresult fakecuModuleUnload(CUmodule) {
  ENTER_RELEASE(kNotInCapture);
  --machine.live["module"];
  return lost;
}
CUresult fakecuModuleGetFunction(CUfunction *function, CUmodule,
                                 const char *name) {
  ENTER();
  // Nobody controls the machine: every kernel is there and does nothing.
  if (machine.kernels.empty() || machine.uncontrolled) {
    machine.uncontrolled = true;
    machine.kernels[name] = {
        name, {}, [](void *, void *const *, unsigned) {}, nullptr};
  }
  auto kernel = machine.kernels.find(name);
  if (kernel == machine.kernels.end())
    return 500;
  machine.loaded.push_back(kernel->second);
  *function = reinterpret_cast<CUfunction>(&machine.loaded.back());
  return kSuccess;
}
CUresult fakecuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) {
  ENTER();
  *value = 0;
  return kSuccess;
}
CUresult fakecuFuncSetAttribute(CUfunction function,
                                CUfunction_attribute attribute, int value) {
  ENTER();
  if (attribute == kFunctionMaxDynamicSharedBytes)
    reinterpret_cast<Kernel *>(function)->dynamicShared = unsigned(value);
  return kSuccess;
}
CUresult fakecuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                         CUfunction, int,
                                                         size_t) {
  ENTER();
  *blocks = 3;
  return kSuccess;
}
CUresult fakecuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  ENTER(kNotInCapture);
  if (bytes == 0)
    return 1;
  if (bytes > machine.limit - machine.used)
    return kErrorOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory)
    return kErrorOutOfMemory;
  // What was there before is never zero.
  std::memset(memory, 0xff, bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  machine.memory[*pointer] = bytes;
  machine.used += bytes;
  return kSuccess;
}
CUresult fakecuMemFree(CUdeviceptr pointer) {
  ENTER_RELEASE(kNotInCapture);
  runQueue();
  auto found = machine.memory.find(pointer);
  if (found == machine.memory.end())
    return 1;
  machine.used -= found->second;
  machine.memory.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return lost;
}
// Reserved addresses are pages that cannot be touched until they are mapped. Nor
// can what is around them, whatever else the process has: so much of it.
constexpr size_t kGuardBytes = size_t(1) << 20;
CUresult fakecuMemGetAllocationGranularity(size_t *bytes,
                                           const CUmemAllocationProp *, int) {
  ENTER();
  *bytes = machine.granularity;
  return kSuccess;
}
CUresult fakecuMemAddressReserve(CUdeviceptr *begin, size_t bytes, size_t,
                                 CUdeviceptr, unsigned long long) {
  ENTER(kNotInCapture);
  if (bytes == 0 || bytes % machine.granularity != 0)
    return 1;
  void *pages = mmap(nullptr, bytes + 2 * kGuardBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return kErrorOutOfMemory;
  ++machine.live["reservation"];
  *begin = reinterpret_cast<CUdeviceptr>(pages) + kGuardBytes;
  return kSuccess;
}
CUresult fakecuMemAddressFree(CUdeviceptr begin, size_t bytes) {
  ENTER_RELEASE(kNotInCapture);
  --machine.live["reservation"];
  munmap(reinterpret_cast<void *>(begin - kGuardBytes),
         bytes + 2 * kGuardBytes);
  return lost;
}
CUresult fakecuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                         const CUmemAllocationProp *properties,
                         unsigned long long) {
  ENTER(kNotInCapture);
  if (bytes == 0 || bytes % machine.granularity != 0 ||
      properties->type != kMemAllocationPinned)
    return 1;
  if (bytes > machine.limit - machine.used)
    return kErrorOutOfMemory;
  machine.used += bytes;
  *handle = ++machine.lastHandle;
  machine.handles[*handle] = bytes;
  return kSuccess;
}
CUresult fakecuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER_RELEASE(kNotInCapture);
  auto found = machine.handles.find(handle);
  if (found == machine.handles.end())
    return 1;
  machine.used -= found->second;
  machine.handles.erase(found);
  return lost;
}
CUresult fakecuMemMap(CUdeviceptr begin, size_t bytes, size_t,
                      CUmemGenericAllocationHandle handle,
                      unsigned long long) {
  ENTER(kNotInCapture);
  if (!machine.handles.count(handle) || machine.handles[handle] != bytes)
    return 1;
  ++machine.live["mapping"];
  machine.mappings[begin] = bytes;
  return kSuccess;
}
CUresult fakecuMemUnmap(CUdeviceptr begin, size_t bytes) {
  ENTER_RELEASE(kNotInCapture);
  if (machine.mappings.erase(begin) == 0)
    return 1;
  --machine.live["mapping"];
  auto *pages = reinterpret_cast<void *>(begin);
  madvise(pages, bytes, MADV_DONTNEED);
  mprotect(pages, bytes, PROT_NONE);
  return lost;
}
CUresult fakecuMemSetAccess(CUdeviceptr begin, size_t bytes,
                            const CUmemAccessDesc *access, size_t count) {
  ENTER(kNotInCapture);
  if (machine.mappings[begin] != bytes || count != 1 ||
      access->flags != kMemAccessReadWrite)
    return 1;
  if (mprotect(reinterpret_cast<void *>(begin), bytes,
               PROT_READ | PROT_WRITE) != 0)
    return kErrorOutOfMemory;
  std::memset(reinterpret_cast<void *>(begin), 0xff, bytes);
  return kSuccess;
}
CUresult fakecuMemGetInfo(size_t *free, size_t *total) {
  ENTER();
  *free = machine.limit - machine.used;
  *total = machine.limit;
  return kSuccess;
}
CUresult fakecuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER(kNotInCapture);
  if (bytes == 0)
    return 1;
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer)
    return kErrorOutOfMemory;
  std::memset(*pointer, 0xff, bytes);
  machine.hostMemory.insert(*pointer);
  machine.hostBytes[*pointer] = bytes;
  return kSuccess;
}
CUresult fakecuMemFreeHost(void *pointer) {
  ENTER_RELEASE(kNotInCapture);
  runQueue();
  if (machine.hostMemory.erase(pointer) == 0)
    return 1;
  std::free(pointer);
  return lost;
}
CUresult fakecuMemHostGetDevicePointer(CUdeviceptr *pointer, void *host,
                                       unsigned) {
  ENTER();
  *pointer = reinterpret_cast<CUdeviceptr>(host);
  return machine.hostMemory.count(host) ? kSuccess : 1;
}
const std::map<std::string, void *> functions = {
    FUNCTION(cuInit), FUNCTION(cuGetErrorName), FUNCTION(cuGetErrorString),
    FUNCTION(cuDeviceGetCount), FUNCTION(cuDeviceGet),
    FUNCTION(cuDeviceGetName), FUNCTION(cuDeviceGetAttribute),
    FUNCTION(cuDeviceTotalMem), FUNCTION(cuDevicePrimaryCtxRetain),
    FUNCTION(cuDevicePrimaryCtxRelease), FUNCTION(cuCtxGetCurrent),
    FUNCTION(cuCtxPushCurrent), FUNCTION(cuCtxPopCurrent),
    FUNCTION(cuCtxGetStreamPriorityRange), FUNCTION(cuModuleLoadDataEx),
    FUNCTION(cuModuleUnload), FUNCTION(cuModuleGetFunction),
    FUNCTION(cuFuncGetAttribute), FUNCTION(cuFuncSetAttribute),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    FUNCTION(cuMemAlloc), FUNCTION(cuMemFree), FUNCTION(cuMemGetInfo),
    FUNCTION(cuMemHostAlloc), FUNCTION(cuMemHostGetDevicePointer),
    FUNCTION(cuMemFreeHost), FUNCTION(cuMemGetAllocationGranularity),
    FUNCTION(cuMemAddressReserve), FUNCTION(cuMemAddressFree),
    FUNCTION(cuMemCreate), FUNCTION(cuMemRelease), FUNCTION(cuMemMap),
    FUNCTION(cuMemUnmap), FUNCTION(cuMemSetAccess)};

/// Null where there is no such function.
void *functionNamed(const std::string &symbol) {
  for (const auto *some : {&functions, &streamFunctions()})
    if (auto found = some->find(symbol); found != some->end())
      return found->second;
  return nullptr;
}

} // namespace

extern "C" {

// What the runtime finds with dlsym.

CUresult cuDriverGetVersion(int *version) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  *version = machine.version;
  return kSuccess;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                             uint64_t, int *status) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  void *found = functionNamed(symbol);
  *function = nullptr;
  *status = 1;
  if (!found || machine.hidden.count(symbol))
    return 500;
  *status = version > machine.version ? kSymbolVersionNotSufficient : 0;
  if (*status == 0)
    *function = found;
  return kSuccess;
}
}
