//===- Memory.cpp - Memory and a stream of a GPU --------------------------===//

#include "cuda/Memory.h"

#include "capi/Failure.h"

#include <cstring>
#include <utility>

namespace sinkstate::runtime::cuda {

DeviceMemory::DeviceMemory(std::shared_ptr<const Context> owner, size_t bytes)
    : context(std::move(owner)), size(bytes) {
  const IgnoredCaptures ignored(*context);
  const Driver &driver = context->driver();
  const CUresult result = driver.functions().cuMemAlloc(&begin, bytes);
  size_t free = 0, total = 0;
  if (result == kErrorOutOfMemory &&
      driver.functions().cuMemGetInfo(&free, &total) == kSuccess)
    fail(SS_OUT_OF_MEMORY, bytes, " bytes asked of GPU ", context->ordinal(),
         " (", context->name(), "), which has ", free, " of ", total,
         " free: free GPU memory, or create the engine with fewer slots or a "
         "smaller row_capacity");
  driver.check(result, "cuMemAlloc(&begin, bytes)", __FILE__, __LINE__);
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(context, other.context);
  std::swap(begin, other.begin);
  std::swap(size, other.size);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!begin)
    return;
  try {
    const Release release(*context);
    SS_RELEASE(cuMemFree(begin));
  } catch (const Failure &) {
    // The context is gone, and its memory with it.
  }
}

PinnedMemory::PinnedMemory(std::shared_ptr<const Context> owner, size_t bytes)
    : context(std::move(owner)) {
  void *memory = nullptr;
  const IgnoredCaptures ignored(*context);
  const Driver &driver = context->driver();
  const CUresult result = driver.functions().cuMemHostAlloc(
      &memory, bytes, kHostAllocPortable | kHostAllocDeviceMap);
  if (result == kErrorOutOfMemory)
    fail(SS_OUT_OF_MEMORY, bytes, " bytes of page-locked memory asked of the "
         "host, which has not so much: raise the limit of locked memory, or "
         "create the engine with fewer slots or without consolidation");
  driver.check(result, "cuMemHostAlloc(&memory, bytes, flags)", __FILE__,
               __LINE__);
  begin = static_cast<std::byte *>(memory);
  std::memset(begin, 0, bytes);
  try {
    SS_CUDA(driver, cuMemHostGetDevicePointer(&device, memory, 0));
  } catch (...) {
    (void)driver.functions().cuMemFreeHost(memory);
    throw;
  }
}

PinnedMemory::~PinnedMemory() {
  try {
    const Release release(*context);
    SS_RELEASE(cuMemFreeHost(begin));
  } catch (const Failure &) {
    // The context is gone, and its mappings with it.
  }
}

OwnStream::OwnStream(std::shared_ptr<const Context> owner)
    : context(std::move(owner)) {
  SS_CUDA(context->driver(), cuStreamCreate(&stream, kStreamNonBlocking));
}

OwnStream::~OwnStream() {
  try {
    const Release release(*context);
    SS_RELEASE(cuStreamDestroy(stream));
  } catch (const Failure &) {
    // The context is gone, and its streams with it.
  }
}

void OwnStream::copyIn(CUdeviceptr to, const void *from, size_t bytes) const {
  if (bytes == 0)
    return;
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuMemcpyHtoDAsync(to, from, bytes, stream));
  wait();
}

void OwnStream::copyOut(void *to, CUdeviceptr from, size_t bytes) const {
  if (bytes == 0)
    return;
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuMemcpyDtoHAsync(to, from, bytes, stream));
  wait();
}

void OwnStream::zero(CUdeviceptr begin, size_t bytes) const {
  if (bytes > 0)
    SS_CUDA(context->driver(), cuMemsetD8Async(begin, 0, bytes, stream));
}

void OwnStream::wait() const {
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
}

} // namespace sinkstate::runtime::cuda
