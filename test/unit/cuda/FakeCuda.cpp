//===- FakeCuda.cpp - A CUDA driver without a GPU -------------------------===//

#include "FakeMachine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace sinkstate::test::fake;

namespace {

void waitWhileHeld(const std::string &name) {
  std::unique_lock<std::mutex> lock(held.mutex);
  auto isHeld = [&] {
    const auto found = held.by.find(name);
    return found != held.by.end() && found->second != std::this_thread::get_id();
  };
  if (!isHeld())
    return;
  ++held.waiting[name];
  held.changed.notify_all();
  held.changed.wait(lock, [&] { return !isHeld(); });
  --held.waiting[name];
}

/// Of this thread: calls that a capture forbids are the capturing thread's.
thread_local int captureMode = 0;
thread_local std::vector<CUcontext> contexts;
const CUcontext kPrimary = reinterpret_cast<CUcontext>(0x1000);

/// Counts a call and says whether it fails.
CUresult enter(const char *symbol, bool allowedInCapture = true) {
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
  if (machine.recording && !allowedInCapture &&
      captureMode != kCaptureModeRelaxed) {
    ++machine.forbidden;
    return kErrorCaptureUnsupported;
  }
  return kSuccess;
}

const std::string &nameOf(CUfunction function) {
  return reinterpret_cast<const Kernel *>(function)->name;
}

#define ENTER(...)                                                             \
  waitWhileHeld(__func__ + 4);                                                 \
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);             \
  if (CUresult failed = enter(__func__ + 4 __VA_OPT__(, ) __VA_ARGS__))                  \
  return failed
constexpr bool kNotInCapture = false;

// Functions are named fakeX, so that __func__ + 4 is the driver's cuX.
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
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
CUresult fakecuCtxSynchronize() {
  ENTER(kNotInCapture);
  return contexts.empty() ? 201 : kSuccess;
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
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  --machine.live["module"];
  return kSuccess;
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
CUresult fakecuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  ENTER();
  return kSuccess;
}
CUresult fakecuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                         CUfunction, int,
                                                         size_t) {
  ENTER();
  *blocks = 3;
  return kSuccess;
}
/// Null where a stream takes no part in a capture.
Captured *capturedStream(CUstream stream) {
  auto found = machine.captured.find(stream);
  return found == machine.captured.end() ? nullptr : &found->second;
}
CUresult fakecuLaunchKernel(CUfunction function, unsigned gridX, unsigned,
                            unsigned, unsigned blockX, unsigned, unsigned,
                            unsigned shared, CUstream stream,
                            void **parameters, void **) {
  waitWhileHeld(nameOf(function));
  ENTER();
  if (contexts.empty())
    return 201;
  if (gridX == 0 || blockX == 0 || blockX > 1024)
    return 1;
  auto *kernel = reinterpret_cast<const Kernel *>(function);
  Launch launch{kernel, {}, gridX};
  for (size_t i = 0; i < kernel->sizes.size(); ++i) {
    auto *bytes = static_cast<const std::byte *>(parameters[i]);
    launch.values.emplace_back(bytes, bytes + kernel->sizes[i]);
  }
  machine.blocks = gridX;
  if (kernel->name == machine.watched) {
    machine.watchedBlocks = gridX;
    machine.watchedThreads = blockX;
  }
  machine.threads = blockX;
  machine.shared = shared;
  if (Captured *captured = capturedStream(stream)) {
    ++captured->work;
    (stream == machine.capturing ? *machine.recording : captured->launches)
        .push_back(std::move(launch));
  } else {
    launch.run();
  }
  return kSuccess;
}
CUresult fakecuLaunchKernelEx(const CUlaunchConfig *config,
                              CUfunction function, void **parameters,
                              void **extra) {
  { // cuLaunchKernel has a lock of its own
    ENTER();
  }
  for (unsigned i = 0; i < config->attributeCount; ++i)
    if (config->attributes[i].id != kLaunchBesideEnd)
      return 1;
  const CUresult result = fakecuLaunchKernel(
      function, config->gridX, config->gridY, config->gridZ, config->blockX,
      config->blockY, config->blockZ, config->sharedBytes, config->stream,
      parameters, extra);
  if (result == kSuccess && reinterpret_cast<const Kernel *>(function)->name ==
                                machine.watched)
    machine.watchedAttributes = config->attributeCount;
  return result;
}
CUresult fakecuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  ENTER(kNotInCapture);
  if (bytes > machine.limit - machine.used)
    return kErrorOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  // What was there before is never zero.
  std::memset(memory, 0xff, bytes);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  machine.memory[*pointer] = bytes;
  machine.used += bytes;
  return kSuccess;
}
CUresult fakecuMemFree(CUdeviceptr pointer) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  auto found = machine.memory.find(pointer);
  if (found == machine.memory.end())
    return 1;
  machine.used -= found->second;
  machine.memory.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return enter("cuMemFree", kNotInCapture);
}
// Reserved addresses are pages that cannot be touched until they are mapped.
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
  void *pages = mmap(nullptr, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return kErrorOutOfMemory;
  ++machine.live["reservation"];
  *begin = reinterpret_cast<CUdeviceptr>(pages);
  return kSuccess;
}
CUresult fakecuMemAddressFree(CUdeviceptr begin, size_t bytes) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  --machine.live["reservation"];
  munmap(reinterpret_cast<void *>(begin), bytes);
  return enter("cuMemAddressFree", kNotInCapture);
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
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  auto found = machine.handles.find(handle);
  if (found == machine.handles.end())
    return 1;
  machine.used -= found->second;
  machine.handles.erase(found);
  return enter("cuMemRelease", kNotInCapture);
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
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  if (machine.mappings.erase(begin) == 0)
    return 1;
  --machine.live["mapping"];
  auto *pages = reinterpret_cast<void *>(begin);
  madvise(pages, bytes, MADV_DONTNEED);
  mprotect(pages, bytes, PROT_NONE);
  return enter("cuMemUnmap", kNotInCapture);
}
CUresult fakecuMemSetAccess(CUdeviceptr begin, size_t bytes,
                            const CUmemAccessDesc *access, size_t count) {
  ENTER(kNotInCapture);
  if (machine.mappings[begin] != bytes || count != 1 ||
      access->flags != kMemAccessReadWrite)
    return 1;
  mprotect(reinterpret_cast<void *>(begin), bytes, PROT_READ | PROT_WRITE);
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
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*pointer, 0xff, bytes);
  machine.hostMemory.insert(*pointer);
  return kSuccess;
}
CUresult fakecuMemFreeHost(void *pointer) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  if (machine.hostMemory.erase(pointer) == 0)
    return 1;
  std::free(pointer);
  return kSuccess;
}
CUresult fakecuMemHostGetDevicePointer(CUdeviceptr *pointer, void *host,
                                       unsigned) {
  ENTER();
  *pointer = reinterpret_cast<CUdeviceptr>(host);
  return machine.hostMemory.count(host) ? kSuccess : 1;
}
CUresult fakecuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                               CUstream) {
  ENTER(kNotInCapture);
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kSuccess;
}
CUresult fakecuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                               CUstream) {
  ENTER(kNotInCapture);
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return kSuccess;
}
CUresult fakecuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                             CUstream) {
  ENTER();
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return kSuccess;
}
CUresult fakecuStreamCreate(CUstream *stream, unsigned) {
  ENTER(kNotInCapture);
  static uintptr_t next = 0x3000;
  ++machine.live["stream"];
  *stream = reinterpret_cast<CUstream>(next++);
  return kSuccess;
}
CUresult fakecuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                        int priority) {
  ENTER(kNotInCapture);
  return priority < -5 || priority > 0 ? 1 : fakecuStreamCreate(stream, flags);
}
CUresult fakecuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER();
  const Mark mark = machine.events[event];
  Captured *captured = capturedStream(stream);
  if (captured && !mark.captured)
    return kErrorCaptureIsolation;
  if (!mark.captured)
    return kSuccess;
  if (!captured)
    captured = &machine.captured[stream];
  ++captured->work;
  Captured &other = machine.captured[mark.stream];
  other.joined = mark.work;
  std::move(other.launches.begin(), other.launches.end(),
            std::back_inserter(*machine.recording));
  other.launches.clear();
  return kSuccess;
}
CUresult fakecuStreamDestroy(CUstream) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  --machine.live["stream"];
  return kSuccess;
}
CUresult fakecuStreamSynchronize(CUstream) {
  ENTER(kNotInCapture);
  return kSuccess;
}
CUresult fakecuStreamIsCapturing(CUstream stream, int *status) {
  ENTER();
  *status = machine.recording && capturedStream(stream);
  return kSuccess;
}
CUresult fakecuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER();
  std::swap(*mode, captureMode);
  return kSuccess;
}
CUresult fakecuStreamBeginCapture(CUstream stream, int) {
  ENTER();
  machine.capturing = stream;
  machine.captured[stream];
  machine.recording = std::make_unique<Recording>();
  return kSuccess;
}
CUresult fakecuStreamEndCapture(CUstream, CUgraph *graph) {
  ENTER();
  bool joined = true;
  for (auto &[stream, captured] : machine.captured)
    joined &= stream == machine.capturing || captured.joined == captured.work;
  machine.captured.clear();
  for (auto &[event, mark] : machine.events)
    mark.captured = false;
  if (!joined) {
    machine.recording.reset();
    *graph = nullptr;
    return kErrorCaptureUnjoined;
  }
  *graph = reinterpret_cast<CUgraph>(machine.recording.release());
  return kSuccess;
}
CUresult fakecuGraphInstantiateWithFlags(CUgraphExec *executable,
                                         CUgraph graph, unsigned long long) {
  ENTER();
  *executable = reinterpret_cast<CUgraphExec>(
      new Recording(*reinterpret_cast<Recording *>(graph)));
  return kSuccess;
}
CUresult fakecuGraphLaunch(CUgraphExec executable, CUstream) {
  ENTER();
  for (Launch &launch : *reinterpret_cast<Recording *>(executable))
    launch.run();
  return kSuccess;
}
CUresult fakecuGraphExecDestroy(CUgraphExec executable) {
  delete reinterpret_cast<Recording *>(executable);
  return kSuccess;
}
CUresult fakecuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                               CUstream) {
  ENTER(kNotInCapture);
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
              bytes);
  return kSuccess;
}
CUresult fakecuEventCreate(CUevent *event, unsigned) {
  ENTER();
  static uintptr_t next = 0x4000;
  ++machine.live["event"];
  *event = reinterpret_cast<CUevent>(next++);
  return kSuccess;
}
CUresult fakecuEventDestroy(CUevent event) {
  std::lock_guard<std::recursive_mutex> machineLock(machineMutex);
  machine.events.erase(event);
  --machine.live["event"];
  return kSuccess;
}
CUresult fakecuEventSynchronize(CUevent) {
  ENTER(kNotInCapture);
  return kSuccess;
}
CUresult fakecuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  const Captured *captured = capturedStream(stream);
  machine.events[event] = {stream, captured ? captured->work : 0,
                           captured != nullptr};
  return kSuccess;
}
CUresult fakecuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  ENTER();
  *milliseconds = 1;
  return kSuccess;
}
CUresult fakecuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Recording *>(graph);
  return kSuccess;
}

#define FUNCTION(NAME)                                                         \
  { #NAME, reinterpret_cast<void *>(&fake##NAME) }
const std::map<std::string, void *> functions = {
    FUNCTION(cuInit), FUNCTION(cuGetErrorName), FUNCTION(cuGetErrorString),
    FUNCTION(cuDeviceGetCount), FUNCTION(cuDeviceGet),
    FUNCTION(cuDeviceGetName), FUNCTION(cuDeviceGetAttribute),
    FUNCTION(cuDeviceTotalMem), FUNCTION(cuDevicePrimaryCtxRetain),
    FUNCTION(cuDevicePrimaryCtxRelease), FUNCTION(cuCtxGetCurrent),
    FUNCTION(cuCtxPushCurrent), FUNCTION(cuCtxPopCurrent),
    FUNCTION(cuCtxSynchronize), FUNCTION(cuCtxGetStreamPriorityRange),
    FUNCTION(cuStreamCreateWithPriority), FUNCTION(cuStreamWaitEvent),
    FUNCTION(cuModuleLoadDataEx),
    FUNCTION(cuModuleUnload), FUNCTION(cuModuleGetFunction),
    FUNCTION(cuFuncGetAttribute), FUNCTION(cuFuncSetAttribute),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    FUNCTION(cuLaunchKernel), FUNCTION(cuLaunchKernelEx),
    FUNCTION(cuMemAlloc), FUNCTION(cuMemFree),
    FUNCTION(cuMemGetInfo), FUNCTION(cuMemcpyHtoDAsync),
    FUNCTION(cuMemcpyDtoHAsync), FUNCTION(cuMemsetD8Async),
    FUNCTION(cuStreamCreate), FUNCTION(cuStreamDestroy),
    FUNCTION(cuThreadExchangeStreamCaptureMode),
    FUNCTION(cuStreamSynchronize), FUNCTION(cuStreamBeginCapture),
    FUNCTION(cuStreamEndCapture), FUNCTION(cuGraphInstantiateWithFlags),
    FUNCTION(cuGraphLaunch), FUNCTION(cuGraphExecDestroy),
    FUNCTION(cuGraphDestroy), FUNCTION(cuMemcpyDtoDAsync),
    FUNCTION(cuMemHostAlloc), FUNCTION(cuMemHostGetDevicePointer),
    FUNCTION(cuMemFreeHost), FUNCTION(cuMemGetAllocationGranularity),
    FUNCTION(cuMemAddressReserve), FUNCTION(cuMemAddressFree),
    FUNCTION(cuMemCreate), FUNCTION(cuMemRelease), FUNCTION(cuMemMap),
    FUNCTION(cuMemUnmap), FUNCTION(cuMemSetAccess),
    FUNCTION(cuStreamIsCapturing), FUNCTION(cuEventCreate), FUNCTION(cuEventDestroy),
    FUNCTION(cuEventRecord), FUNCTION(cuEventElapsedTime),
    FUNCTION(cuEventSynchronize)};

} // namespace

extern "C" {

// What the runtime finds with dlsym.

CUresult cuDriverGetVersion(int *version) {
  *version = machine.version;
  return kSuccess;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                             uint64_t, int *status) {
  auto found = functions.find(symbol);
  *function = nullptr;
  *status = 1;
  if (found == functions.end() || machine.hidden.count(symbol))
    return 500;
  *status = version > machine.version ? kSymbolVersionNotSufficient : 0;
  if (*status == 0)
    *function = found->second;
  return kSuccess;
}
}
