//===- RowPool.cpp - Component rows by capacity class ---------------------===//

#include "state/RowPool.h"

#include "capi/Failure.h"

#include <algorithm>
#include <functional>

namespace sinkstate::runtime {
namespace {

/// Rows between the beginnings of classes are a multiple of this, so that both
/// rows (multiples of 4 bytes, of 2, or of 1) and weights (4 bytes) begin at a
/// page.
int64_t rowAlignment(const Device &device, int64_t rowBytes) {
  return int64_t(device.pageBytes()) / (rowBytes % 4 == 0   ? 4
                                        : rowBytes % 2 == 0 ? 2
                                                            : 1);
}

int64_t alignedRows(const Device &device, int64_t states, int64_t capacity,
                    int64_t rowBytes) {
  int64_t unit = rowAlignment(device, rowBytes);
  size_t rows = checkedProduct(size_t(states), size_t(capacity));
  return int64_t(checkedProduct((rows + size_t(unit) - 1) / size_t(unit),
                                size_t(unit)));
}

/// Free blocks of a class whose memory is kept for the next request. None of a
/// class that nobody uses: ranks that grow together leave one class after the
/// other behind.
int64_t keptLimit(int64_t inUse) {
  return inUse == 0 ? 0 : std::max<int64_t>(1, inUse / 16);
}

} // namespace

RowPool::RowPool(Device &device, int64_t maxStates,
                 std::vector<int64_t> capacities, int64_t rowBytes,
                 MemoryBudget *budget)
    : states(maxStates + kMoving), rowBytes(rowBytes) {
  int64_t total = 0;
  for (int64_t capacity : capacities)
    if (__builtin_add_overflow(total, alignedRows(device, states, capacity, rowBytes),
                               &total))
      checkedProduct(SIZE_MAX, size_t(capacity));
  rowRange =
      Reservation(device, checkedProduct(size_t(total), size_t(rowBytes)));
  weightRange =
      Reservation(device, checkedProduct(size_t(total), sizeof(float)));
  int64_t first = 0;
  for (int64_t capacity : capacities) {
    int64_t rowCount = alignedRows(device, states, capacity, rowBytes);
    PagedRange rowPages(device, rowRange.begin() + size_t(first * rowBytes),
                        size_t(rowCount * rowBytes), budget);
    PagedRange weightPages(device,
                           weightRange.begin() + size_t(first) * sizeof(float),
                           size_t(rowCount) * sizeof(float), budget);
    classes.push_back({capacity, first, std::move(rowPages),
                       std::move(weightPages), 0, 0, {}, {}, {}});
    first += rowCount;
  }
}

int32_t RowPool::classFor(int64_t rows) const {
  auto found = std::lower_bound(
      classes.begin(), classes.end(), rows,
      [](const SizeClass &c, int64_t value) { return c.capacity < value; });
  if (found == classes.end())
    fail(SS_INTERNAL, rows, " rows asked for a state, expected at most ",
         largestClass(), ": report it");
  return int32_t(found - classes.begin());
}

void RowPool::retain(SizeClass &sizeClass, int32_t index) {
  size_t weightBytes = size_t(sizeClass.capacity) * sizeof(float);
  size_t blockBytes = size_t(sizeClass.capacity * rowBytes);
  sizeClass.rows.retain(size_t(index) * blockBytes, blockBytes);
  try {
    sizeClass.weights.retain(size_t(index) * weightBytes, weightBytes);
  } catch (...) {
    sizeClass.rows.release(size_t(index) * blockBytes, blockBytes);
    throw;
  }
}

void RowPool::release(SizeClass &sizeClass, int32_t index) noexcept {
  size_t weightBytes = size_t(sizeClass.capacity) * sizeof(float);
  size_t blockBytes = size_t(sizeClass.capacity * rowBytes);
  sizeClass.rows.release(size_t(index) * blockBytes, blockBytes);
  sizeClass.weights.release(size_t(index) * weightBytes, weightBytes);
}

RowBlock RowPool::allocate(int64_t rows) {
  RowBlock block{classFor(rows), 0};
  SizeClass &sizeClass = classes[size_t(block.sizeClass)];
  if (!sizeClass.kept.empty()) {
    block.index = sizeClass.kept.back();
    sizeClass.kept.pop_back();
  } else if (!sizeClass.released.empty()) {
    // The lowest first, so that the blocks in use stay close together.
    retain(sizeClass, sizeClass.released.front());
    std::pop_heap(sizeClass.released.begin(), sizeClass.released.end(),
                  std::greater<>());
    block.index = sizeClass.released.back();
    sizeClass.released.pop_back();
  } else {
    if (sizeClass.carved >= states)
      fail(SS_INTERNAL, "more blocks than states in a row pool: report it");
    // Room for every index in the lists: free() can then never fail.
    size_t blocks = size_t(sizeClass.carved) + 1;
    if (sizeClass.kept.capacity() < blocks) {
      sizeClass.kept.reserve(2 * blocks);
      sizeClass.released.reserve(2 * blocks);
    }
    block.index = int32_t(sizeClass.carved);
    sizeClass.owners.reserve(blocks);
    retain(sizeClass, block.index);
    sizeClass.owners.push_back(0);
    ++sizeClass.carved;
  }
  ++sizeClass.inUse;
  ownersOf(block) = 1;
  return block;
}

void RowPool::free(RowBlock block) noexcept {
  if (!block.valid() || --ownersOf(block) > 0)
    return;
  SizeClass &sizeClass = classes[size_t(block.sizeClass)];
  sizeClass.kept.push_back(block.index);
  --sizeClass.inUse;
  keepAtMost(sizeClass, keptLimit(sizeClass.inUse));
}

void RowPool::releaseKept() noexcept {
  for (SizeClass &sizeClass : classes)
    keepAtMost(sizeClass, 0);
}

void RowPool::keepAtMost(SizeClass &sizeClass, int64_t blocks) noexcept {
  while (int64_t(sizeClass.kept.size()) > blocks) {
    int32_t oldest = sizeClass.kept.front();
    sizeClass.kept.erase(sizeClass.kept.begin());
    release(sizeClass, oldest);
    sizeClass.released.push_back(oldest);
    std::push_heap(sizeClass.released.begin(), sizeClass.released.end(),
                   std::greater<>());
  }
}

int64_t RowPool::heldBytes() const {
  int64_t bytes = 0;
  for (const SizeClass &sizeClass : classes)
    bytes += sizeClass.rows.heldBytes() + sizeClass.weights.heldBytes();
  return bytes;
}

int64_t RowPool::worstCaseBytes(const Device &device, int64_t states,
                                const std::vector<int64_t> &classes,
                                int64_t rowBytes, int64_t rows) {
  const size_t page = device.pageBytes();
  // Pages that a block of `bytes` touches, wherever in its class it lies.
  auto touched = [&](size_t bytes) {
    size_t whole = bytes / page;
    return bytes % page == 0 ? bytes : (whole + 2) * page;
  };
  auto found = std::lower_bound(classes.begin(), classes.end(), rows);
  int64_t largestCapacity = found == classes.end() ? classes.back() : *found;
  size_t largestRows = 0, largestWeights = 0;
  size_t keptRows = 0, keptWeights = 0, allWeights = 0;
  for (int64_t capacity : classes) {
    size_t weightBytes = size_t(capacity) * sizeof(float);
    keptRows += touched(size_t(capacity * rowBytes));
    keptWeights += touched(weightBytes);
    allWeights += checkedProduct(
        size_t(alignedRows(device, states + kMoving, capacity, rowBytes)),
        sizeof(float));
    if (capacity > largestCapacity)
      continue;
    largestRows = std::max(largestRows, touched(size_t(capacity * rowBytes)));
    largestWeights = std::max(largestWeights, touched(weightBytes));
  }
  size_t blocks =
      size_t(states + states / 16 + std::min<int64_t>(states, kMoving));
  size_t weights =
      std::min(checkedProduct(blocks, largestWeights) + keptWeights,
               allWeights);
  return int64_t(checkedProduct(blocks, largestRows) + keptRows + weights);
}

} // namespace sinkstate::runtime
