//===- HostWords.h - Host memory that a GPU reads and writes ----*- C++ -*-===//
#ifndef SINKSTATE_CUDA_HOSTWORDS_H
#define SINKSTATE_CUDA_HOSTWORDS_H

#include "cuda/Context.h"

namespace sinkstate::runtime::cuda {

/// Pinned memory of the host, zero at first, at one address for the host and
/// another for the GPU: words by which the two tell each other something
/// without waiting.
class HostWords {
public:
  HostWords() = default;
  HostWords(std::shared_ptr<const Context> context, size_t bytes);
  HostWords(HostWords &&other) noexcept { *this = std::move(other); }
  HostWords &operator=(HostWords &&other) noexcept;
  ~HostWords();

  template <typename T> volatile T *onHost(size_t offset) const {
    return reinterpret_cast<volatile T *>(host + offset);
  }
  template <typename T> T *onDevice(size_t offset) const {
    return reinterpret_cast<T *>(device + offset);
  }

private:
  std::shared_ptr<const Context> context;
  char *host = nullptr;
  CUdeviceptr device = 0;
};

} // namespace sinkstate::runtime::cuda

#endif
