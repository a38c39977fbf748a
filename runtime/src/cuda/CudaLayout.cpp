//===- CudaLayout.cpp - Where everything of an engine lies ----------------===//

#include "cuda/CudaLayout.h"

#include "capi/Failure.h"
#include "cuda/device/schedule.cuh"
#include "sinkstate/routines.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

/// What a memory transaction and a float4 like best.
constexpr int64_t kAlignment = 256;

/// Rows of padding that a step may have beside all slots.
constexpr int32_t kPaddingRows = 4096;

int64_t rowCapacity(const LayerManifest &layer,
                    const ss_engine_options &options) {
  if (layer.denseForm)
    return 0;
  if (options.row_capacity == 0 || options.row_capacity >= layer.rank)
    return layer.rank;
  // Below that a compaction could not keep the block it has just merged.
  const int32_t least = layer.active + layer.buffer + layer.draft;
  if (options.row_capacity < least)
    fail(SS_INVALID_ARGUMENT, "options.row_capacity is ", options.row_capacity,
         ", expected 0 or at least ", least, " (active ", layer.active,
         " + buffer ", layer.buffer, " + draft ", layer.draft, " of layer '",
         layer.name, "')");
  return options.row_capacity;
}

/// The rank up to which a dense state goes back to factors: well below the
/// break-even rank, so that it does not go dense again at once. The init kernel
/// finds so many components at most.
int32_t mostBack(const LayerManifest &layer, const LayerLayout &sizes) {
  if (!sizes.denseFallback || layer.init == kNoKernel ||
      sizes.dropBelow < float(SS_INIT_LEAST_EPS))
    return 0;
  return int32_t(std::min<int64_t>(SS_INIT_MOST_COMPONENTS - 1,
                                  3 * sizes.breakEvenRank / 4));
}

} // namespace

int64_t CudaLayout::take(int64_t count, int64_t elementBytes) {
  const int64_t offset = bytes;
  int64_t size = 0;
  if (__builtin_mul_overflow(count, elementBytes, &size) ||
      __builtin_add_overflow(size, kAlignment - 1, &size) ||
      __builtin_add_overflow(bytes, size / kAlignment * kAlignment, &bytes))
    fail(SS_OUT_OF_MEMORY, count, " times ", elementBytes,
         " bytes of state do not fit any address space: create the engine "
         "with fewer slots");
  return offset;
}

void CudaLayout::placeLayer(const LayerManifest &layer, LayerPlaces &places) {
  const LayerLayout &sizes = places.sizes;
  denseBytes += sizes.denseBytes();
  const int64_t slots = sizes.states / layer.heads;
  if (layer.denseForm) {
    places.dense = take(sizes.denseFormFloats, elementBytes(sizes.storage));
    if (layer.deferred)
      placeBuffers(sizes, slots, places);
    return;
  }
  places.maxRank =
      std::min(sizes.maxRank,
               int32_t(places.capacity) - layer.buffer - layer.draft);
  if (!pooled) {
    places.rows = take(sizes.states, places.capacity * sizes.rowBytes());
    places.weights = take(sizes.states, places.capacity * 4);
  }
  places.rowBase = take(sizes.states, sizeof(int64_t));
  places.rowCapacity = take(sizes.states, sizeof(int32_t));
  places.rank = take(sizes.states, sizeof(int32_t));
  places.status = take(sizes.states, sizeof(int32_t));
  placeBuffers(sizes, slots, places);
  placeLists(layer, places);
  places.sink = take(layer.sinkForm ? int64_t(layer.heads) * layer.dv : 0,
                     sizeof(float));
  places.sharedBytes = take(layer.sinkForm ? layer.heads : 0, sizeof(int32_t));
}

void CudaLayout::placeBuffers(const LayerLayout &sizes, int64_t slots,
                              LayerPlaces &places) {
  places.count = take(slots, sizeof(int32_t));
  places.bufferK = take(sizes.bufferKFloats, sizeof(float));
  places.bufferU = take(sizes.bufferUFloats, sizeof(float));
  places.bufferG = take(sizes.bufferGFloats, sizeof(float));
}

/// What is listed for a step's compactions, and with pools what they do.
void CudaLayout::placeLists(const LayerManifest &layer, LayerPlaces &places) {
  const LayerLayout &sizes = places.sizes;
  places.work = take(sizes.states, sizeof(int32_t));
  places.workCount = take(1, sizeof(int32_t));
  places.order = take(sizes.states, sizeof(int32_t));
  places.due = places.work;
  places.dueCount = places.workCount;
  if (!pooled)
    return;
  places.due = take(sizes.states, sizeof(int32_t));
  places.dueCount = take(1, sizeof(int32_t));
  places.denseWork = take(sizes.states, sizeof(int32_t));
  places.denseCount = take(1, sizeof(int32_t));
  places.densePlace = take(sizes.states, sizeof(int64_t));
  places.noted = take(sizes.states, sizeof(int32_t));
  places.asked = take(2 * sizes.states, sizeof(int32_t));
  places.askedCount = take(1, sizeof(int32_t));
  places.last = take(sizes.states, sizeof(int32_t));
  places.lastCount = take(1, sizeof(int32_t));
  places.placing = take(2 * sizes.states, sizeof(int32_t));
  places.folds = take(sizes.states, sizeof(int32_t));
  places.backCount = take(1, sizeof(int32_t));
  places.mostBack = mostBack(layer, sizes);
  if (places.mostBack == 0)
    return;
  places.backWork = take(sizes.states, sizeof(int32_t));
  places.backMatrix = take(sizes.states, sizeof(int64_t));
  places.backBase = take(sizes.states, sizeof(int64_t));
  places.backRank = take(sizes.states, sizeof(int32_t));
  places.backStatus = take(sizes.states, sizeof(int32_t));
  if (sizes.storage == Storage::F32)
    return;
  places.mostStaged = int32_t(std::min(kMostStaged, sizes.states));
  const int64_t rows = int64_t(places.mostStaged) * (places.mostBack + 1);
  places.stagedMatrix =
      take(places.mostStaged, sizes.denseFloats * int64_t(sizeof(float)));
  places.stagedFactors = take(rows, sizes.rowFloats * int64_t(sizeof(float)));
  places.stagedWeights = take(rows, sizeof(float));
  places.backRows = take(sizes.states, sizeof(int64_t));
}

CudaLayout::CudaLayout(const Manifest &manifest,
                       const ss_engine_options &options)
    : slots(options.slots), pooled(options.row_capacity == 0),
      mostRows(std::min(options.slots, INT32_MAX - kPaddingRows) +
               kPaddingRows) {
  int64_t buffered = 0, mostHeads = 0, mostFloats = 0;
  for (const LayerManifest &layer : manifest.layers) {
    LayerPlaces places{LayerLayout(layer, options.slots, options.dense_fallback == 1)};
    places.capacity = rowCapacity(layer, options);
    placeLayer(layer, places);
    mostFloats = std::max(mostFloats, layer.heads * places.sizes.denseFloats);
    mostHeads = std::max<int64_t>(mostHeads, layer.heads);
    buffered += layer.hasBuffer();
    layers.push_back(std::move(places));
  }
  position = take(options.slots, sizeof(int64_t));
  requestKeys = take(options.slots, sizeof(int64_t));
  stepTokens = take(options.slots, sizeof(int32_t));
  tokenPosition = take(options.slots, sizeof(int64_t));
  firstRows = take(std::max<int64_t>(1, buffered) * options.slots,
                   sizeof(int32_t));
  stepRows = take(mostRows, sizeof(int32_t));
  callRows = take(mostRows, sizeof(int32_t));
  left = take(options.slots, sizeof(int32_t));
  rowSlots = take(options.slots, sizeof(int32_t));
  refused = take(1, sizeof(int32_t));
  scheduleLayers = take(buffered, sizeof(ss::ScheduleLayer));
  compactions = take(1, sizeof(int64_t));
  faults = take(1, sizeof(int32_t));
  inspected = take(mostFloats, sizeof(float));
  inspectedWork = take(mostHeads, sizeof(int32_t));
  inspectedCount = take(1, sizeof(int32_t));
  inspectedBase = take(mostHeads, sizeof(int64_t));
}

} // namespace sinkstate::runtime::cuda
