//===- LayerState.h - The states of one layer -------------------*- C++ -*-===//
//
// Tables, buffers and rows of one layer, for all slots, as docs/interfaces.md
// section 3 lays them out. Knows nothing of kernels and schedules.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_STATE_LAYERSTATE_H
#define SINKSTATE_STATE_LAYERSTATE_H

#include "consolidation/Pipeline.h"
#include "state/LayerLayout.h"
#include "state/RowPool.h"

#include <memory>
#include <optional>
#include <vector>

namespace sinkstate::runtime {

/// An array in device memory that the host can address too: a part of what its
/// layer has reserved.
template <typename T> class DeviceArray {
public:
  DeviceArray() = default;
  /// The next `count` elements from `next` on, which moves behind them.
  DeviceArray(std::byte *&next, int64_t count)
      : begin(reinterpret_cast<T *>(next)) {
    next += LayerLayout::partBytes(count, sizeof(T));
  }
  T *data() const { return begin; }
  T &operator[](int64_t i) const { return begin[i]; }

private:
  T *begin = nullptr;
};

class LayerState {
public:
  /// `budget` may be null: no limit.
  LayerState(Device &device, const LayerManifest &manifest, int32_t slots,
             bool denseFallback, MemoryBudget *budget = nullptr);

  /// Bytes that an engine cannot do without whose slots are all in use: buffers,
  /// tables and for every state the smallest block of rows.
  static int64_t leastBytes(const Device &device, const LayerManifest &manifest,
                            int32_t slots, bool denseFallback);

  const LayerManifest &manifest() const { return *layer; }
  const LayerLayout &layout() const { return sizes; }
  int64_t heads() const { return layer->heads; }
  int64_t firstState(int32_t slot) const { return slot * heads(); }

  /// Makes every state of a slot zero, whatever bytes it held, and gives its
  /// rows back.
  void reset(int32_t slot);

  /// Makes slot `to` equal to slot `from`: buffers and tables are copied, rows
  /// shared until either writes its own.
  void fork(int32_t from, int32_t to) noexcept;
  /// States that have the same rows.
  int32_t owners(int64_t state) const {
    return rowPool->owners(blocks[size_t(state)]);
  }

  /// Room for `rows` rows in the block of a factored state; what it holds
  /// moves along. Throws SS_OUT_OF_MEMORY with nothing changed.
  void ensureRows(int64_t state, int64_t rows);
  /// Moves the rows, or the matrix, to a smaller block where one has room for
  /// `rows`; does nothing when there is no memory for it.
  void shrinkRows(int64_t state, int64_t rows) noexcept;
  /// Gives the state another block; the old one goes back to the pool.
  void replaceBlock(int64_t state, RowBlock block) noexcept;
  /// Gives a state that is its block's only owner one with room for `rows` rows,
  /// where there is memory for it: what the old one held is lost.
  void renewBlock(int64_t state, int64_t rows) noexcept;

  // Rows that another thread reads. A block is neither written nor given to
  // another state while it is being copied; nobody waits for the copy unless
  // there is no memory for another block.
  using ReadStage = consolidation::ReadStage;
  using ReaderStage = std::shared_ptr<std::atomic<ReadStage>>;
  /// The rows of the state may be read through `stage` from now on.
  void beginRead(int64_t state, ReaderStage stage);
  void endRead(int64_t state, const ReaderStage &stage) noexcept;
  /// To be called before rows are changed in place. Takes them from a reader
  /// that has not begun, and moves them away from one that has, and from other
  /// states that share them: then to a block with room for `rows`. Throws
  /// SS_OUT_OF_MEMORY with nothing changed.
  void prepareWrite(int64_t state, int64_t rows = 0);
  /// Says that the rows of a slot have changed in place: what was read before
  /// is stale. Whatever gives a state another block says so by itself.
  void noteChange(int32_t slot) { ++epochs[size_t(slot)]; }
  uint64_t epoch(int32_t slot) const { return epochs[size_t(slot)]; }

  RowPool &pool() { return *rowPool; }
  std::byte *rowsOf(int64_t state) const {
    return rowPool->rows() + rowBase[state] * sizes.rowBytes();
  }
  /// Elements of a state's rows, or of its matrix, as f32 and from there.
  void readRows(int64_t state, float *to, int64_t floats) const {
    loadElements(sizes.storage, to, rowsOf(state), floats);
  }
  void writeRows(int64_t state, const float *from, int64_t floats) const {
    storeElements(sizes.storage, rowsOf(state), from, floats);
  }
  float *weightsOf(int64_t state) const {
    return rowPool->weights() + rowBase[state];
  }
  int64_t capacityOf(int64_t state) const {
    return rowPool->capacity(blocks[size_t(state)]);
  }
  bool isDense(int64_t state) const { return rank[state] < 0; }

  /// Which heads have a sink, [heads]; none, as created. No slot has an owner.
  void setSinks(std::vector<bool> ofHeads) { hasSink = std::move(ofHeads); }
  /// Bytes of the states of one slot by the formula of docs/state-math.md
  /// section 7.
  int64_t liveBytes(int32_t slot) const;
  /// The ranks of a slot have changed, or whether it has an owner.
  void noteLive(int32_t slot, bool inUse) noexcept;
  /// Of all slots in use, as last noted: no step looks at slots outside its
  /// batch.
  int64_t liveBytes() const { return liveSum; }

  int64_t allocatedBytes() const;
  /// Of those, what tables, buffers and the rows of these states take up.
  int64_t tableBytes() const { return fixedBytes; }
  int64_t rowBytes(int64_t state) const {
    return sizes.storedBytes(rank[state]);
  }

  // Kernel arguments. Null in layers of dense form.
  DeviceArray<int64_t> rowBase;
  DeviceArray<int32_t> rank, status, count;
  /// No limit here: every state gets the block that its compaction needs.
  DeviceArray<int32_t> rowCapacity;
  DeviceArray<float> bufferK, bufferU, bufferG;
  /// Layers of dense form only: [slots, heads, dv, dk]; deferred: [.., dk, dv].
  DeviceArray<std::byte> dense;
  std::byte *denseOf(int64_t state) const {
    return dense.data() + state * sizes.denseStateBytes();
  }

  // Host only.
  std::vector<uint32_t> compactions; ///< per state, since the slot was fresh
  std::vector<uint32_t> folds;       ///< per state, since it went dense
  /// Per state: an SVD on the host is due and has not landed yet.
  std::vector<uint8_t> svdDue;
  /// Per slot: one more than the position of the last token decoded here.
  std::vector<int64_t> decodedTokens;

private:
  std::vector<bool> hasSink; ///< [heads], or empty: no head has one

  void takeBuffers(std::byte *&next, int32_t slots);
  void moveRows(int64_t state, int64_t rows);
  bool stopReading(int64_t state) noexcept;
  void freeParked() noexcept;

  /// A block that its state has left while a reader was in it.
  struct Parked {
    ReaderStage stage;
    RowBlock block;
  };

  Device *device;
  const LayerManifest *layer;
  LayerLayout sizes;
  int64_t fixedBytes;
  Reservation tables; ///< all arrays below rows and weights
  std::unique_ptr<RowPool> rowPool;
  std::vector<RowBlock> blocks;
  std::vector<uint64_t> epochs;     ///< per slot
  std::vector<int64_t> slotLive;    ///< per slot, as last noted
  int64_t liveSum = 0;
  std::vector<ReaderStage> readers; ///< per state
  std::vector<Parked> parked;
  size_t readerCount = 0;
};

} // namespace sinkstate::runtime

#endif
