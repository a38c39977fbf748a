//===- Context.cpp - One GPU ----------------------------------------------===//

#include "cuda/Context.h"

#include "capi/Failure.h"
#include "observe/Log.h"

namespace sinkstate::runtime::cuda {
namespace {
/// Independent threads in a warp, which the kernels' shuffles expect.
constexpr int kOldestMajor = 7;
} // namespace

std::shared_ptr<const Context>
Context::open(std::shared_ptr<const Driver> driver, int ordinal) {
  int count = 0;
  SS_CUDA(*driver, cuDeviceGetCount(&count));
  if (count < 1)
    fail(SS_DEVICE_UNAVAILABLE,
         "the NVIDIA driver shows no GPU, expected at least one: see "
         "CUDA_VISIBLE_DEVICES, or use the CPU device");
  if (ordinal < 0 || ordinal >= count)
    fail(SS_INVALID_ARGUMENT, "options.device_ordinal is ", ordinal,
         ", expected 0 to ", count - 1, " (the GPUs that this process sees)");
  std::shared_ptr<Context> context(new Context(std::move(driver)));
  const Driver &library = context->driver();
  SS_CUDA(library, cuDeviceGet(&context->device, ordinal));
  context->deviceOrdinal = ordinal;
  char name[256] = "";
  SS_CUDA(library, cuDeviceGetName(name, sizeof name - 1, context->device));
  context->deviceName = name;
  context->major = context->attribute(kComputeCapabilityMajor);
  context->minor = context->attribute(kComputeCapabilityMinor);
  context->multiprocessorCount = context->attribute(kMultiprocessorCount);
  context->sharedBytes = context->attribute(kMaxSharedMemoryPerBlockOptin);
  if (context->major < kOldestMajor)
    fail(SS_DEVICE_UNAVAILABLE, "GPU ", ordinal, " (", name,
         ") has compute capability ", context->major, ".", context->minor,
         ", expected ", kOldestMajor,
         ".0 or higher: use another GPU or the CPU device");
  CUcontext primary = nullptr;
  SS_CUDA(library, cuDevicePrimaryCtxRetain(&primary, context->device));
  context->primary = primary;
  context->findMappingUnit();
  return context;
}

void Context::findMappingUnit() {
  const Driver::Functions &call = library->functions();
  if (!call.cuMemGetAllocationGranularity || !call.cuMemAddressReserve ||
      !call.cuMemAddressFree || !call.cuMemCreate || !call.cuMemRelease ||
      !call.cuMemMap || !call.cuMemUnmap || !call.cuMemSetAccess ||
      attribute(kVirtualMemoryManagement) == 0)
    return;
  CUmemAllocationProp properties = {};
  properties.type = kMemAllocationPinned;
  properties.location = {kMemLocationDevice, deviceOrdinal};
  size_t bytes = 0;
  SS_CUDA(*library, cuMemGetAllocationGranularity(&bytes, &properties,
                                                  kMemGranularityMinimum));
  unit = int64_t(bytes);
}

Context::~Context() {
  if (primary)
    (void)library->functions().cuDevicePrimaryCtxRelease(device);
}

int Context::attribute(CUdevice_attribute name) const {
  int value = 0;
  SS_CUDA(*library, cuDeviceGetAttribute(&value, name, device));
  return value;
}

std::string Context::architecture() const {
  // NVRTC has known sm_90a since 12.0.
  return text("sm_", major, minor, major == 9 && minor == 0 ? "a" : "");
}

bool Context::runs(const std::string &code) const {
  return code == architecture() || code == text("sm_", major, minor);
}

CurrentContext::CurrentContext(const Context &context) : context(context) {
  CUcontext current = nullptr;
  SS_CUDA(context.driver(), cuCtxGetCurrent(&current));
  if (current == context.primary)
    return;
  SS_CUDA(context.driver(), cuCtxPushCurrent(context.primary));
  pushed = true;
}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed)
    (void)context.driver().functions().cuCtxPopCurrent(&popped);
}

IgnoredCaptures::IgnoredCaptures(const Context &context)
    : context(context), mode(kCaptureModeRelaxed) {
  // Where it fails, so does what follows, and says so.
  exchanged = context.driver().functions().cuThreadExchangeStreamCaptureMode(
                  &mode) == kSuccess;
}

IgnoredCaptures::~IgnoredCaptures() {
  if (exchanged)
    (void)context.driver().functions().cuThreadExchangeStreamCaptureMode(&mode);
}

void Release::note(CUresult result, const char *call) const noexcept {
  if (result == kSuccess || endsTheContext(result) ||
      context.refusalLogged.exchange(true))
    return;
  try {
    writeLog(SS_LOG_WARNING, "engine", call,
             " failed as an engine gave up what it holds: ",
             context.driver().describe(result),
             ": what it was to wait for may still run, or what it was to give back "
             "stays taken; destroy engines while no stream is captured");
  } catch (const std::exception &) {
    // No memory for a message.
  }
}

} // namespace sinkstate::runtime::cuda
