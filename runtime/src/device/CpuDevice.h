//===- CpuDevice.h - The processor as a device ------------------*- C++ -*-===//
#ifndef SINKSTATE_DEVICE_CPUDEVICE_H
#define SINKSTATE_DEVICE_CPUDEVICE_H

#include "device/Device.h"

namespace sinkstate::runtime {

/// Runs kernels on OpenMP threads. Every submission is done when its call
/// returns. Programs are independent, so that results do not depend on how
/// they are divided among the threads.
class CpuDevice final : public Device {
public:
  /// `threads` 0: one per processor.
  explicit CpuDevice(int threads);

  int threads() const { return threadCount; }

  /// Of the machine.
  int64_t physicalBytes() const;

  size_t pageBytes() const override { return page; }
  std::byte *reserve(size_t bytes) override;
  void commit(std::byte *begin, size_t bytes) override;
  void discard(std::byte *begin, size_t bytes) noexcept override;
  void unreserve(std::byte *begin, size_t bytes) noexcept override;
  size_t largePageBytes() const override { return largePage; }
  void allowLargePages(std::byte *begin, size_t bytes) noexcept override;
  void makeLargePage(std::byte *begin) noexcept override;

  void copy(void *to, const void *from, size_t bytes) override;
  void zero(void *begin, size_t bytes) override;
  void launch(const Launch &launch) override;
  void wait() override {}

private:
  int threadCount;
  size_t page, largePage;
  const ss_routine_table *routines;
};

} // namespace sinkstate::runtime

#endif
