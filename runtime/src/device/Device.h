//===- Device.h - What the engine needs of a device -------------*- C++ -*-===//
//
// Memory, one in-order queue and kernel launches. The engine, its pools and
// its schedule are written against this interface only.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DEVICE_DEVICE_H
#define SINKSTATE_DEVICE_DEVICE_H

#include "package/Package.h"

#include <cstddef>
#include <cstdint>

namespace sinkstate::runtime {

/// One kernel launch: programs [0, programs).
struct Launch {
  const Package &package;
  KernelIndex kernel;
  ArgumentValues &values;
  int64_t programs;
};

class Device {
public:
  virtual ~Device() = default;

  // Memory. An address range is reserved once and never moves; bytes stand
  // behind the parts that were committed. Ranges are multiples of pageBytes().
  virtual size_t pageBytes() const = 0;
  /// Address space without memory behind it.
  virtual std::byte *reserve(size_t bytes) = 0;
  /// Makes a part usable. Throws SS_OUT_OF_MEMORY and changes nothing if
  /// there is no memory. Committing twice is harmless.
  virtual void commit(std::byte *begin, size_t bytes) = 0;
  /// Gives the memory behind a committed part back. The part stays usable;
  /// its contents are undefined.
  virtual void discard(std::byte *begin, size_t bytes) noexcept = 0;
  virtual void unreserve(std::byte *begin, size_t bytes) noexcept = 0;

  // Large pages, which spare a device most of its address translation: hints, and
  // no contents change. Where the device has them, aligned parts of their size of
  // a reservation that is no smaller can be one page.
  /// 0: none.
  virtual size_t largePageBytes() const { return 0; }
  /// Parts of a committed range that hold nothing yet may be large from the first
  /// write on; such a write then puts memory behind all of the page.
  virtual void allowLargePages(std::byte * /*begin*/, size_t /*bytes*/) noexcept {}
  /// Makes one committed aligned part of that size, all of which is in use, one
  /// page. It may still be discarded in parts.
  virtual void makeLargePage(std::byte * /*begin*/) noexcept {}

  // The queue: what is submitted runs in order.
  virtual void copy(void *to, const void *from, size_t bytes) = 0;
  virtual void zero(void *begin, size_t bytes) = 0;
  virtual void launch(const Launch &launch) = 0;
  /// Returns when everything submitted so far is done and its results can be
  /// read by the host.
  virtual void wait() = 0;
};

} // namespace sinkstate::runtime

#endif
