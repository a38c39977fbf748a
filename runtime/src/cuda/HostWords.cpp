//===- HostWords.cpp - Host memory that a GPU reads and writes ------------===//

#include "cuda/HostWords.h"

#include "capi/Failure.h"

#include <cstring>
#include <utility>

namespace sinkstate::runtime::cuda {

HostWords::HostWords(std::shared_ptr<const Context> owner, size_t bytes)
    : context(std::move(owner)) {
  void *memory = nullptr;
  SS_CUDA(context->driver(),
          cuMemHostAlloc(&memory, bytes, kMemHostPortable | kMemHostDeviceMap));
  host = static_cast<char *>(memory);
  std::memset(host, 0, bytes);
  SS_CUDA(context->driver(), cuMemHostGetDevicePointer(&device, memory, 0));
}

HostWords &HostWords::operator=(HostWords &&other) noexcept {
  std::swap(context, other.context);
  std::swap(host, other.host);
  std::swap(device, other.device);
  return *this;
}

HostWords::~HostWords() {
  if (!host)
    return;
  try {
    CurrentContext current(*context);
    (void)context->driver().functions().cuMemFreeHost(host);
  } catch (const Failure &) {
    // The context is gone; the process's own memory goes with the process.
  }
}

} // namespace sinkstate::runtime::cuda
