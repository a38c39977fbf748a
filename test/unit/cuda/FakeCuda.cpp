//===- FakeCuda.cpp - A CUDA driver without a GPU -------------------------===//

#include "FakeCuda.h"

#include "cuda/DriverTypes.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace sinkstate::runtime::cuda;

namespace {

struct Kernel {
  std::string name;
  std::vector<size_t> sizes;
  fake_kernel run;
  void *context;
};

struct Launch {
  const Kernel *kernel;
  std::vector<std::vector<std::byte>> values;
  unsigned blocks;
  void run() {
    std::vector<void *> parameters;
    for (auto &value : values)
      parameters.push_back(value.data());
    kernel->run(kernel->context, parameters.data(), blocks);
  }
};

using Recording = std::vector<Launch>;

struct PlannedFailure {
  CUresult error = kSuccess;
  int skip = 0;
  bool sticky = false;
};

struct Machine {
  int version = 13000, devices = 1;
  size_t limit = size_t(8) << 30, used = 0;
  std::set<std::string> hidden;
  std::map<std::string, PlannedFailure> failures;
  CUresult lost = kSuccess;
  std::map<std::string, int> calls;
  std::map<std::string, Kernel> kernels;
  std::deque<Kernel> loaded; // what modules have; a later kernel of the same
                             // name is another module's
  std::map<CUdeviceptr, size_t> memory;
  std::map<std::string, int> live; // other objects by kind
  CUstream capturing = nullptr;
  std::unique_ptr<Recording> recording;
  int forbidden = 0;
  bool uncontrolled = false;
  unsigned blocks = 0, threads = 0, shared = 0;
  std::string watched;
  unsigned watchedBlocks = 0;
} machine;

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
  if (machine.recording && !allowedInCapture) {
    ++machine.forbidden;
    return kErrorCaptureUnsupported;
  }
  return kSuccess;
}

#define ENTER(...)                                                             \
  if (CUresult failed = enter(__func__ + 4, ##__VA_ARGS__))                    \
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
                                     {kComputeCapabilityMajor, 9},
                                     {kComputeCapabilityMinor, 0},
                                     {kMaxSharedMemoryPerBlockOptin, 232448}};
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
  --machine.live["context"];
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
CUresult fakecuLaunchKernel(CUfunction function, unsigned gridX, unsigned,
                            unsigned, unsigned blockX, unsigned, unsigned,
                            unsigned shared, CUstream stream,
                            void **parameters, void **) {
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
  if (kernel->name == machine.watched)
    machine.watchedBlocks = gridX;
  machine.threads = blockX;
  machine.shared = shared;
  if (machine.recording && stream == machine.capturing)
    machine.recording->push_back(std::move(launch));
  else
    launch.run();
  return kSuccess;
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
  auto found = machine.memory.find(pointer);
  if (found == machine.memory.end())
    return 1;
  machine.used -= found->second;
  machine.memory.erase(found);
  std::free(reinterpret_cast<void *>(pointer));
  return enter("cuMemFree", kNotInCapture);
}
CUresult fakecuMemGetInfo(size_t *free, size_t *total) {
  ENTER();
  *free = machine.limit - machine.used;
  *total = machine.limit;
  return kSuccess;
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
CUresult fakecuStreamDestroy(CUstream) {
  --machine.live["stream"];
  return kSuccess;
}
CUresult fakecuStreamSynchronize(CUstream) {
  ENTER(kNotInCapture);
  return kSuccess;
}
CUresult fakecuStreamBeginCapture(CUstream stream, int) {
  ENTER();
  machine.capturing = stream;
  machine.recording = std::make_unique<Recording>();
  return kSuccess;
}
CUresult fakecuStreamEndCapture(CUstream, CUgraph *graph) {
  ENTER();
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
  *event = reinterpret_cast<CUevent>(0x4000);
  return kSuccess;
}
CUresult fakecuEventDestroy(CUevent) { return kSuccess; }
CUresult fakecuEventRecord(CUevent, CUstream) {
  ENTER();
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
    FUNCTION(cuCtxSynchronize), FUNCTION(cuModuleLoadDataEx),
    FUNCTION(cuModuleUnload), FUNCTION(cuModuleGetFunction),
    FUNCTION(cuFuncGetAttribute), FUNCTION(cuFuncSetAttribute),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    FUNCTION(cuLaunchKernel), FUNCTION(cuMemAlloc), FUNCTION(cuMemFree),
    FUNCTION(cuMemGetInfo), FUNCTION(cuMemcpyHtoDAsync),
    FUNCTION(cuMemcpyDtoHAsync), FUNCTION(cuMemsetD8Async),
    FUNCTION(cuStreamCreate), FUNCTION(cuStreamDestroy),
    FUNCTION(cuStreamSynchronize), FUNCTION(cuStreamBeginCapture),
    FUNCTION(cuStreamEndCapture), FUNCTION(cuGraphInstantiateWithFlags),
    FUNCTION(cuGraphLaunch), FUNCTION(cuGraphExecDestroy),
    FUNCTION(cuGraphDestroy), FUNCTION(cuMemcpyDtoDAsync),
    FUNCTION(cuEventCreate), FUNCTION(cuEventDestroy),
    FUNCTION(cuEventRecord), FUNCTION(cuEventElapsedTime),
    {"cuEventSynchronize", reinterpret_cast<void *>(&fakecuEventDestroy)}};

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

// What tests call.

void fake_reset(void) {
  for (auto [pointer, bytes] : machine.memory)
    std::free(reinterpret_cast<void *>(pointer));
  machine = Machine();
}
void fake_set_version(int version) { machine.version = version; }
void fake_set_device_count(int count) { machine.devices = count; }
void fake_set_memory_limit(size_t bytes) { machine.limit = bytes; }
void fake_hide(const char *symbol) { machine.hidden.insert(symbol); }
void fake_fail(const char *symbol, int error, int skip, int sticky) {
  machine.failures[symbol] = {error, skip, sticky != 0};
}
void fake_add_kernel(const char *name, const size_t *sizes, size_t count,
                     fake_kernel run, void *context) {
  machine.kernels[name] = {name, {sizes, sizes + count}, run, context};
}
int fake_calls(const char *symbol) { return machine.calls[symbol]; }
int fake_forbidden_calls(void) { return machine.forbidden; }
int fake_live_objects(void) {
  int objects = int(machine.memory.size());
  for (auto &[kind, count] : machine.live)
    objects += count;
  return objects;
}
size_t fake_live_bytes(void) { return machine.used; }
unsigned fake_last_blocks(void) { return machine.blocks; }
void fake_watch(const char *kernel) {
  machine.watched = kernel;
}
unsigned fake_watched_blocks(void) { return machine.watchedBlocks; }
unsigned fake_last_threads(void) { return machine.threads; }
unsigned fake_last_shared(void) { return machine.shared; }
}
