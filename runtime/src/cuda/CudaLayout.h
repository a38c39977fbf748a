//===- CudaLayout.h - Where everything of an engine lies --------*- C++ -*-===//
//
// A CUDA engine takes all its memory in one allocation when it is created, so
// that addresses stay what captured graphs have in them and the plan is exact.
// Every state has the same number of rows.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CUDALAYOUT_H
#define SINKSTATE_CUDA_CUDALAYOUT_H

#include "package/Manifest.h"
#include "state/LayerLayout.h"

#include "sinkstate/sinkstate.h"

#include <vector>

namespace sinkstate::runtime::cuda {

/// Offsets in bytes of one layer's arrays.
struct LayerPlaces {
  LayerLayout sizes;
  int64_t capacity = 0; ///< rows of every state
  int32_t maxRank = 0;  ///< components that a compaction may leave
  // Factored layers.
  int64_t rows = 0, weights = 0, rowBase = 0, rowCapacity = 0;
  int64_t rank = 0, status = 0, count = 0;
  int64_t bufferK = 0, bufferU = 0, bufferG = 0, work = 0, workCount = 0;
  // Layers of dense form.
  int64_t dense = 0;
};

struct CudaLayout {
  CudaLayout(const Manifest &manifest, const ss_engine_options &options);

  std::vector<LayerPlaces> layers;
  int64_t position, stepTokens, scheduleLayers;
  int64_t rowSlots; ///< slots of the rows that have a token, [slots]
  int64_t refused;  ///< of a rollback
  int64_t compactions, faults;
  // One layer of one slot, dense, for inspection.
  int64_t inspected, inspectedWork, inspectedCount, inspectedBase;
  int64_t bytes = 0;
  int64_t denseBytes = 0; ///< all states dense in f32, for comparison

private:
  /// Takes room for `count` elements and returns its offset.
  int64_t take(int64_t count, int64_t elementBytes);
  void placeLayer(const LayerManifest &layer, LayerPlaces &places);
};

} // namespace sinkstate::runtime::cuda

#endif
