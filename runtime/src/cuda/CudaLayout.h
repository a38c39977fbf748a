//===- CudaLayout.h - Where everything of an engine lies --------*- C++ -*-===//
//
// A CUDA engine takes its tables and buffers in one allocation when it is
// created, so that addresses stay what captured graphs have in them. Rows are in
// pools of their own (RowPools.h), or, where the options give every state the
// same number of rows, in the same allocation.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CUDALAYOUT_H
#define SINKSTATE_CUDA_CUDALAYOUT_H

#include "package/Manifest.h"
#include "state/LayerLayout.h"

#include "sinkstate/sinkstate.h"

#include <vector>

namespace sinkstate::runtime::cuda {

/// Matrices of 16 bits that a layer tries to decompose in one step.
inline constexpr int64_t kMostStaged = 8;

/// Offsets in bytes of one layer's arrays.
struct LayerPlaces {
  LayerLayout sizes;
  int64_t capacity = 0; ///< rows of every state; in a pool: at most
  int32_t maxRank = 0;  ///< components that a compaction may leave
  // Factored layers; of deferred ones count and buffers.
  int64_t rows = 0, weights = 0, rowBase = 0, rowCapacity = 0;
  int64_t rank = 0, status = 0, count = 0;
  int64_t bufferK = 0, bufferU = 0, bufferG = 0, work = 0, workCount = 0,
          order = 0;
  int64_t sink = 0; ///< form sink: directions of the heads' sinks
  int64_t sharedBytes = 0; ///< form sink: by head, bytes that a sink saves; 0: none
  /// States that are due. Without pools they are what is compacted, `work`.
  int64_t due = 0, dueCount = 0;
  /// With pools: states to write as matrices, and where.
  int64_t denseWork = 0, denseCount = 0, densePlace = 0,
          noted = 0, asked = 0, askedCount = 0, last = 0, lastCount = 0;
  int64_t placing = 0; ///< [2, states], for RowPools::place
  /// Of layers whose dense states may come back: the rank up to which, and what
  /// the decomposition works on.
  int32_t mostBack = 0;
  int64_t folds = 0, backWork = 0, backCount = 0, backMatrix = 0, backBase = 0,
          backRank = 0, backStatus = 0;
  /// Of those in 16 bits: how many at a time, and their f32.
  int32_t mostStaged = 0;
  int64_t stagedMatrix = 0, stagedFactors = 0, stagedWeights = 0, backRows = 0;
  // Layers of dense form.
  int64_t dense = 0;
};

struct CudaLayout {
  CudaLayout(const Manifest &manifest, const ss_engine_options &options);

  int32_t slots;
  /// Rows are in pools. Their places in `layers` are set when those exist.
  bool pooled;
  std::vector<LayerPlaces> layers;
  int64_t position, requestKeys, stepTokens, tokenPosition, scheduleLayers;
  int32_t mostRows; ///< of a step
  /// Which rows name a slot first, the slots of a step, and those of a call that has
  /// another list: see ss::Schedule.
  int64_t firstRows, stepRows, callRows, left;
  int64_t rowSlots; ///< slots of the rows that have a token, [slots]
  int64_t refused;  ///< of a rollback
  int64_t compactions, faults;
  // One layer of one slot, dense, for inspection.
  int64_t inspected, inspectedWork, inspectedCount, inspectedBase;
  int64_t bytes = 0;
  int64_t denseBytes = 0; ///< all states dense in f32, for comparison
  int64_t inspectionBytes() const { return bytes - inspected; }

private:
  /// Takes room for `count` elements and returns its offset.
  int64_t take(int64_t count, int64_t elementBytes);
  void placeLayer(const LayerManifest &layer, LayerPlaces &places);
  void placeLists(const LayerManifest &layer, LayerPlaces &places);
  void placeBuffers(const LayerLayout &sizes, int64_t slots,
                    LayerPlaces &places);
};

} // namespace sinkstate::runtime::cuda

#endif
