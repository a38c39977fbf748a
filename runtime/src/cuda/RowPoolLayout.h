//===- RowPoolLayout.h - Sizes of the row pools on a GPU --------*- C++ -*-===//
//
// Layers whose rows have the same bytes share a pool (device/pool.cuh). What
// follows from the manifest and the options alone: capacity classes, chunks,
// tables, and what the pools take at most.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_ROWPOOLLAYOUT_H
#define SINKSTATE_CUDA_ROWPOOLLAYOUT_H

#include "package/Manifest.h"
#include "state/LayerLayout.h"

#include <cstdint>
#include <vector>

namespace sinkstate::runtime::cuda {

/// Rows more than a compaction may need in a new block, and rows too many
/// before a state moves to a smaller one: a rank that moves by a few does not
/// move its rows every time.
constexpr int32_t kRoomRows = 1;
constexpr int32_t kSpareRows = 4;

/// Bytes in which GPUs map memory, where none has been asked.
constexpr int64_t kAssumedUnit = int64_t(2) << 20;

struct RowPoolSizes {
  RowPoolSizes(int64_t rowBytes, int32_t mostRows,
               const std::vector<int32_t> &exactRows);

  int64_t rowBytes;
  int32_t mostRows; ///< of any block
  int32_t chunkRows;
  std::vector<int32_t> capacity; ///< rows of a block by class, ascending
  std::vector<int32_t> blocks;   ///< of a chunk by class
  std::vector<int32_t> classOf;  ///< by rows, 0 to mostRows

  int64_t states = 0;     ///< of all slots
  int32_t chunkCount = 0; ///< addresses are reserved for
  /// Of one slot, the states that can be due in the same step, and rows that
  /// they may grow by in it.
  int64_t dueStates = 0, dueRows = 0;

  int32_t capacityFor(int64_t rows) const {
    return capacity[size_t(classOf[size_t(rows)])];
  }
  int32_t mostRequests() const { return int32_t(2 * states); }
  /// Bytes of rows and of weights of so many chunks.
  int64_t rowRange(int64_t chunks) const;
  int64_t weightRange(int64_t chunks) const;
  /// The chunks for which so many bytes are enough.
  int64_t chunksWithin(int64_t rangeOfRows, int64_t rangeOfWeights) const;
  /// Bytes of both as whole units.
  int64_t mappedBytes(int64_t chunks, int64_t unit) const;
  int64_t tableBytes() const;
};

class RowPoolLayout {
public:
  /// `sizes` by layer, as in the manifest.
  RowPoolLayout(const Manifest &manifest,
                const std::vector<LayerLayout> &sizes, int32_t slots);

  std::vector<RowPoolSizes> pools;
  std::vector<int32_t> poolOf; ///< by layer; -1: the layer has no rows
  int64_t tableBytes = 0;      ///< of all pools
  int64_t worstBytes = 0, expectedBytes = 0; ///< mapped, beside the tables

  /// Fewer chunks, so that pools that are mapped as a whole take no more.
  void fitInto(int64_t bytes);

private:
  void addLayers(const Manifest &manifest,
                 const std::vector<LayerLayout> &sizes);
  void countDue(const Manifest &manifest, size_t pool);
};

/// Rows that a state in factors may come to need: its bound.
int32_t boundOf(const LayerManifest &layer);

} // namespace sinkstate::runtime::cuda

#endif
