//===- ForwardingDevice.h - A processor that tests change -------*- C++ -*-===//
#ifndef SINKSTATE_TEST_UNIT_RUNTIME_FORWARDINGDEVICE_H
#define SINKSTATE_TEST_UNIT_RUNTIME_FORWARDINGDEVICE_H

#include "device/CpuDevice.h"

namespace sinkstate::test {

/// Passes everything on to a CpuDevice of one thread, but has no large pages.
class ForwardingDevice : public runtime::Device {
public:
  size_t pageBytes() const override { return cpu.pageBytes(); }
  std::byte *reserve(size_t bytes) override { return cpu.reserve(bytes); }
  void commit(std::byte *begin, size_t bytes) override {
    cpu.commit(begin, bytes);
  }
  void discard(std::byte *begin, size_t bytes) noexcept override {
    cpu.discard(begin, bytes);
  }
  void unreserve(std::byte *begin, size_t bytes) noexcept override {
    cpu.unreserve(begin, bytes);
  }
  void copy(void *to, const void *from, size_t bytes) override {
    cpu.copy(to, from, bytes);
  }
  void zero(void *begin, size_t bytes) override { cpu.zero(begin, bytes); }
  void launch(const runtime::Launch &launch) override { cpu.launch(launch); }
  void wait() override { cpu.wait(); }

private:
  runtime::CpuDevice cpu{1};
};

} // namespace sinkstate::test

#endif
