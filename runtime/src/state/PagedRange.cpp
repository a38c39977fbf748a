//===- PagedRange.cpp - Address range that counts its pages ---------------===//

#include "state/PagedRange.h"

#include "capi/Failure.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sinkstate::runtime {

Reservation::Reservation(Device &device, size_t bytes)
    : device(&device), start(device.reserve(bytes)), size(bytes) {}

Reservation &Reservation::operator=(Reservation &&other) noexcept {
  std::swap(device, other.device);
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

Reservation::~Reservation() {
  if (device)
    device->unreserve(start, size);
}

size_t checkedProduct(size_t a, size_t b) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product))
    fail(SS_OUT_OF_MEMORY, a, " times ", b,
         " bytes of state do not fit any address space: create the engine "
         "with fewer slots");
  return product;
}

size_t wholePages(const Device &device, size_t bytes) {
  size_t page = device.pageBytes();
  return checkedProduct(bytes / page + (bytes % page != 0), page);
}

PagedRange::PagedRange(Device &device, std::byte *begin, size_t bytes,
                       MemoryBudget *budget)
    : device(&device), budget(budget), begin(begin), pageBytes(device.pageBytes()),
      totalPages(bytes / pageBytes) {
  const size_t large = device.largePageBytes();
  if (large == 0)
    return;
  partsBegin = -reinterpret_cast<uintptr_t>(begin) % large / pageBytes;
  if (partsBegin >= totalPages)
    return;
  largePages = large / pageBytes;
  // Parts that reach beyond the range are never full.
  parts.resize((totalPages - partsBegin + largePages - 1) / largePages);
}

void PagedRange::noteFirst(size_t page) noexcept {
  if (largePages == 0 || page < partsBegin)
    return;
  const size_t number = (page - partsBegin) / largePages;
  LargePart &part = parts[number];
  if (++part.used < largePages)
    return;
  // Making a large page takes a copy. One that is given back in part has been made
  // in vain, so a part that keeps filling up gets one less and less often.
  if (std::has_single_bit(++part.fills))
    device->makeLargePage(begin + (partsBegin + number * largePages) * pageBytes);
}

void PagedRange::noteLast(size_t page) noexcept {
  if (largePages > 0 && page >= partsBegin)
    --parts[(page - partsBegin) / largePages].used;
}

void PagedRange::commitUpTo(size_t pageCount) {
  if (pageCount <= committedPages)
    return;
  // In steps, so that a growing range is not a system call per block. Memory
  // stands behind a page only once it is written.
  constexpr size_t kStepPages = 64;
  size_t target = std::min(
      totalPages, (pageCount + kStepPages - 1) / kStepPages * kStepPages);
  users.resize(target);
  device->commit(begin + committedPages * pageBytes,
                 (target - committedPages) * pageBytes);
  committedPages = target;
}

void PagedRange::retain(size_t offset, size_t bytes) {
  size_t first = offset / pageBytes;
  size_t last = (offset + bytes + pageBytes - 1) / pageBytes;
  int64_t more = 0;
  for (size_t page = first; page < last; ++page)
    if (page >= users.size() || users[page] == 0)
      more += int64_t(pageBytes);
  if (budget && !budget->admits(more))
    fail(SS_OUT_OF_MEMORY, "the states hold ", budget->held, " of ",
         budget->limit, " bytes (options.state_bytes_limit) and need ", more,
         " more: free slots and try again");
  commitUpTo(last);
  count(more);
  for (size_t page = first; page < last; ++page)
    if (users[page]++ == 0)
      noteFirst(page);
}

void PagedRange::release(size_t offset, size_t bytes) noexcept {
  size_t first = offset / pageBytes;
  size_t last = (offset + bytes + pageBytes - 1) / pageBytes;
  for (size_t page = first; page < last;) {
    size_t run = page;
    while (run < last && --users[run] == 0)
      noteLast(run++);
    device->discard(begin + page * pageBytes, (run - page) * pageBytes);
    count(-int64_t((run - page) * pageBytes));
    page = run + (run < last);
  }
}

} // namespace sinkstate::runtime
