//===- Memory.h - Memory and a stream of a GPU ------------------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_MEMORY_H
#define SINKSTATE_CUDA_MEMORY_H

#include "cuda/Context.h"

namespace sinkstate::runtime::cuda {

/// One allocation, for as long as the object lives.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// Throws SS_OUT_OF_MEMORY and says how much there is.
  DeviceMemory(std::shared_ptr<const Context> context, size_t bytes);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  CUdeviceptr address() const { return begin; }
  size_t bytes() const { return size; }
  /// The address `offset` bytes from the beginning.
  template <typename T> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(begin + CUdeviceptr(offset));
  }

private:
  std::shared_ptr<const Context> context;
  CUdeviceptr begin = 0;
  size_t size = 0;
};

/// Page-locked memory of the host, zero at first, that kernels and copies reach.
class PinnedMemory {
public:
  PinnedMemory(std::shared_ptr<const Context> context, size_t bytes);
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;
  ~PinnedMemory();

  /// Where the host finds the byte at `offset`.
  template <typename T> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(begin + offset);
  }
  /// Where kernels find it.
  template <typename T> T *onDevice(int64_t offset) const {
    return reinterpret_cast<T *>(device + CUdeviceptr(offset));
  }

private:
  std::shared_ptr<const Context> context;
  std::byte *begin = nullptr;
  CUdeviceptr device = 0;
};

/// A stream of the engine's own, for what has no stream of the caller's:
/// creation and inspection. It does not wait for the default stream.
class OwnStream {
public:
  explicit OwnStream(std::shared_ptr<const Context> context);
  OwnStream(const OwnStream &) = delete;
  OwnStream &operator=(const OwnStream &) = delete;
  ~OwnStream();

  CUstream get() const { return stream; }
  /// Both return when the bytes are there.
  void copyIn(CUdeviceptr to, const void *from, size_t bytes) const;
  void copyOut(void *to, CUdeviceptr from, size_t bytes) const;
  void zero(CUdeviceptr begin, size_t bytes) const;
  void wait() const;

private:
  std::shared_ptr<const Context> context;
  CUstream stream = nullptr;
};

} // namespace sinkstate::runtime::cuda

#endif
