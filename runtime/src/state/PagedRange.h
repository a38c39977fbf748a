//===- PagedRange.h - Address range that counts its pages -------*- C++ -*-===//
//
// An address range reserved at once, whose pages are held while at least one
// of the spans retained in it touches them. `heldBytes` is therefore exact:
// pages are counted once however many spans share them, and a page goes back
// to the device when its last span is released. Where all of a large page is
// held, the device is asked to make it one, which changes no count.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_STATE_PAGEDRANGE_H
#define SINKSTATE_STATE_PAGEDRANGE_H

#include "device/Device.h"

#include <cstdint>
#include <vector>

namespace sinkstate::runtime {

/// Owns a reservation of a device.
class Reservation {
public:
  Reservation() = default;
  Reservation(Device &device, size_t bytes);
  Reservation(Reservation &&other) noexcept { *this = std::move(other); }
  Reservation &operator=(Reservation &&other) noexcept;
  ~Reservation();

  std::byte *begin() const { return start; }
  size_t bytes() const { return size; }

private:
  Device *device = nullptr;
  std::byte *start = nullptr;
  size_t size = 0;
};

/// Rounds up to whole pages; throws SS_OUT_OF_MEMORY on overflow.
size_t wholePages(const Device &device, size_t bytes);
/// a * b, or SS_OUT_OF_MEMORY when it does not fit.
size_t checkedProduct(size_t a, size_t b);

/// Bytes that an engine's states may take together, and those they take.
struct MemoryBudget {
  int64_t limit = 0; ///< 0: none
  int64_t held = 0;

  bool admits(int64_t more) const {
    return limit == 0 || held + more <= limit;
  }
};

/// A part of a reservation, beginning at a page.
class PagedRange {
public:
  /// `budget` may be null: no limit.
  PagedRange(Device &device, std::byte *begin, size_t bytes,
             MemoryBudget *budget = nullptr);

  /// Takes the pages of [offset, offset + bytes). On an error nothing changed.
  void retain(size_t offset, size_t bytes);
  void release(size_t offset, size_t bytes) noexcept;
  int64_t heldBytes() const { return held; }

private:
  void commitUpTo(size_t pageCount);
  /// A page has got its first user, or lost its last one.
  void noteFirst(size_t page) noexcept;
  void noteLast(size_t page) noexcept;
  void count(int64_t bytes) {
    held += bytes;
    if (budget)
      budget->held += bytes;
  }

  Device *device;
  MemoryBudget *budget;
  std::byte *begin;
  size_t pageBytes, totalPages;
  size_t committedPages = 0;
  std::vector<uint16_t> users; ///< spans per page, up to the highest one used
  /// An aligned part of a large page's size.
  struct LargePart {
    uint32_t used = 0;  ///< pages with a user
    uint32_t fills = 0; ///< how often all of them had
  };
  std::vector<LargePart> parts;
  size_t largePages = 0; ///< pages of a large one; 0: there are none
  size_t partsBegin = 0; ///< the first page of parts
  int64_t held = 0;
};

} // namespace sinkstate::runtime

#endif
