//===- RowPool.h - Component rows by capacity class -------------*- C++ -*-===//
//
// The rows and weights of the states of one layer. A block holds the rows of
// one state; its capacity is one of a few classes. Every class has its own
// part of the layer's address range with room for one block of every state, so
// that addresses are stable, nothing fragments across classes and an
// allocation fails only when the machine has no memory.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_STATE_ROWPOOL_H
#define SINKSTATE_STATE_ROWPOOL_H

#include "state/PagedRange.h"

#include <cstdint>
#include <vector>

namespace sinkstate::runtime {

/// The rows of one state: block `index` of class `sizeClass`.
struct RowBlock {
  int32_t sizeClass = -1; ///< -1: no rows
  int32_t index = 0;
  bool valid() const { return sizeClass >= 0; }
};

class RowPool {
public:
  /// States that may hold two blocks at a time, on their way from one to the
  /// other.
  static constexpr int64_t kMoving = 64;

  /// `rowBytes`: of one row. `classes`: capacities in rows,
  /// ascending. `states`: the most blocks that
  /// are in use at the same time, apart from kMoving on their way.
  RowPool(Device &device, int64_t states, std::vector<int64_t> classes,
          int64_t rowBytes, MemoryBudget *budget = nullptr);

  std::byte *rows() const { return rowRange.begin(); }
  float *weights() const {
    return reinterpret_cast<float *>(weightRange.begin());
  }

  /// A block of the smallest class with at least `rows` rows; its contents are
  /// undefined. Throws SS_OUT_OF_MEMORY with nothing changed.
  RowBlock allocate(int64_t rows);
  /// Takes back what one owner had: the last one frees the block.
  void free(RowBlock block) noexcept;
  /// One more owner of the block. Whoever writes into a block has to be its
  /// only one.
  void share(RowBlock block) noexcept {
    if (block.valid())
      ++ownersOf(block);
  }
  /// States that have this block; 0: no rows.
  int32_t owners(RowBlock block) const {
    return block.valid() ? at(block).owners[size_t(block.index)] : 0;
  }
  /// Gives the memory of all free blocks back.
  void releaseKept() noexcept;

  /// The class of `allocate(rows)`.
  int32_t classFor(int64_t rows) const;
  int64_t largestClass() const { return classes.back().capacity; }
  int64_t capacity(RowBlock block) const {
    return block.valid() ? at(block).capacity : 0;
  }
  /// Row number of the block's first row.
  int64_t base(RowBlock block) const {
    return block.valid() ? at(block).firstRow +
                               int64_t(block.index) * at(block).capacity
                         : 0;
  }

  /// Bytes held for rows and weights, free blocks kept for reuse included.
  int64_t heldBytes() const;

  /// An upper bound of heldBytes() when every state holds a block of at most
  /// `rows` rows.
  static int64_t worstCaseBytes(const Device &device, int64_t states,
                                const std::vector<int64_t> &classes,
                                int64_t rowBytes, int64_t rows);

private:
  struct SizeClass {
    int64_t capacity;
    int64_t firstRow;
    PagedRange rows, weights;
    int64_t carved = 0;            ///< blocks ever handed out
    int64_t inUse = 0;
    std::vector<int32_t> owners;   ///< of every block ever handed out
    std::vector<int32_t> kept;     ///< free, memory held: last in, first out
    std::vector<int32_t> released; ///< free, memory given back: a min-heap
  };
  const SizeClass &at(RowBlock block) const {
    return classes[size_t(block.sizeClass)];
  }
  int32_t &ownersOf(RowBlock block) {
    return classes[size_t(block.sizeClass)].owners[size_t(block.index)];
  }
  void retain(SizeClass &sizeClass, int32_t index);
  void release(SizeClass &sizeClass, int32_t index) noexcept;
  void keepAtMost(SizeClass &sizeClass, int64_t blocks) noexcept;

  int64_t states, rowBytes;
  Reservation rowRange, weightRange;
  std::vector<SizeClass> classes;
};

} // namespace sinkstate::runtime

#endif
