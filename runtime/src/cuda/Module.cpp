//===- Module.cpp - Machine code loaded on a GPU --------------------------===//

#include "cuda/Module.h"

#include "capi/Failure.h"

#include <array>
#include <utility>

namespace sinkstate::runtime::cuda {
namespace {

/// Shared memory that a kernel gets without asking.
constexpr int kOrdinarySharedBytes = 48 * 1024;

/// Percent of a multiprocessor's memory that all kernels want as shared memory.
/// Blocks of two kernels are on one multiprocessor only where both agree: with the
/// driver's choices a decode leaves no room for what runs beside it, which then
/// takes turns with it. docs/rationale.md has what was measured.
constexpr int kSharedCarveout = 75;

const char *loadRemedy(CUresult result) {
  switch (result) {
  case kErrorNoBinaryForGpu:
    return "the code is for another GPU: delete it from the kernel cache or "
           "the package";
  case kErrorInvalidImage:
  case kErrorUnsupportedPtxVersion:
    return "the code was made by a newer CUDA than the driver knows, or is "
           "damaged: update the driver, or delete it from the kernel cache or "
           "the package";
  default:
    return "check the driver";
  }
}

} // namespace

Module::Module(std::shared_ptr<const Context> owner, const std::string &label,
               const std::string &image)
    : context(std::move(owner)), name(label) {
  std::array<char, 4096> errors = {}, notes = {};
  CUjit_option options[] = {kJitErrorLogBuffer, kJitErrorLogBufferBytes,
                            kJitInfoLogBuffer, kJitInfoLogBufferBytes};
  // Sizes are passed as values in place of pointers.
  void *values[] = {errors.data(), reinterpret_cast<void *>(errors.size() - 1),
                    notes.data(), reinterpret_cast<void *>(notes.size() - 1)};
  const Driver &driver = context->driver();
  const CUresult result = driver.functions().cuModuleLoadDataEx(
      &module, image.data(), unsigned(std::size(options)), options, values);
  if (result == kSuccess)
    return;
  module = nullptr;
  if (result == kErrorOutOfMemory || endsTheContext(result))
    driver.check(result, "cuModuleLoadDataEx", __FILE__, __LINE__);
  const char *log = errors[0] ? errors.data() : notes.data();
  fail(SS_DEVICE_ERROR, "the driver (CUDA ", versionText(driver.version()),
       ") does not load kernel '", name, "' on GPU ", context->ordinal(), " (",
       context->name(), ", ", context->architecture(),
       "): ", driver.describe(result), *log ? text(", log: ", log) : "", ": ",
       loadRemedy(result));
}

Module::Module(Module &&other) noexcept
    : context(std::move(other.context)), name(std::move(other.name)),
      module(std::exchange(other.module, nullptr)) {}

Module::~Module() {
  if (!module)
    return;
  try {
    const Release release(*context);
    SS_RELEASE(cuModuleUnload(module));
  } catch (const Failure &) {
    // The context is gone, and its code with it.
  }
}

CUfunction Module::function(const char *symbol, int64_t dynamicShared) const {
  const Driver &driver = context->driver();
  CUfunction function = nullptr;
  const CUresult result =
      driver.functions().cuModuleGetFunction(&function, module, symbol);
  if (result == kErrorOutOfMemory || endsTheContext(result))
    driver.check(result, "cuModuleGetFunction", __FILE__, __LINE__);
  if (result != kSuccess)
    fail(SS_MALFORMED_PACKAGE, "the code of kernel '", name,
         "' has no function '", symbol, "' (", driver.describe(result),
         "): build the package again");
  SS_CUDA(driver, cuFuncSetAttribute(function, kFunctionSharedCarveout,
                                     kSharedCarveout));
  if (dynamicShared == 0)
    return function;
  int fixed = 0;
  SS_CUDA(driver, cuFuncGetAttribute(&fixed, kFunctionSharedBytes, function));
  if (dynamicShared + fixed > context->sharedBytesPerBlock())
    fail(SS_DEVICE_UNAVAILABLE, "kernel '", symbol, "' needs ",
         dynamicShared + fixed, " bytes of shared memory per block, but GPU ",
         context->ordinal(), " (", context->name(), ") has ",
         context->sharedBytesPerBlock(),
         ": compile the graph with a smaller active block or buffer");
  if (dynamicShared + fixed > kOrdinarySharedBytes)
    SS_CUDA(driver,
            cuFuncSetAttribute(function, kFunctionMaxDynamicSharedBytes,
                               int(dynamicShared)));
  return function;
}

} // namespace sinkstate::runtime::cuda
