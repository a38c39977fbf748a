//===- FrozenPlan.cpp - Memory of consolidation on a GPU ------------------===//

#include "cuda/consolidation/FrozenPlan.h"

#include "capi/Failure.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

constexpr int64_t kAlignment = 256;
/// Staging memory where one slot of the largest layer is smaller: a job of this
/// size takes a millisecond to copy and far longer to decompose.
constexpr int64_t kRoom = int64_t(16) << 20;

} // namespace

int64_t FrozenPlan::take(int64_t &bytes, int64_t count,
                         int64_t elementBytes) const {
  const int64_t offset = bytes;
  int64_t size = 0;
  if (__builtin_mul_overflow(count, elementBytes, &size) ||
      __builtin_add_overflow(size, kAlignment - 1, &size) ||
      __builtin_add_overflow(bytes, size / kAlignment * kAlignment, &bytes))
    fail(SS_OUT_OF_MEMORY, count, " times ", elementBytes,
         " bytes to consolidate with do not fit any address space: create the "
         "engine with fewer slots");
  return offset;
}

FrozenPlan::FrozenPlan(const Manifest &manifest, const CudaLayout &layout,
                       int32_t slotCount)
    : slots(slotCount) {
  int64_t largest = 0; // bytes of one slot in one layer
  std::vector<int64_t> slotBytes;
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    const LayerPlaces &places = layout.layers[i];
    if (layer.denseForm || places.sizes.fixedRank)
      continue;
    FrozenLayerPlan plan;
    plan.layer = int32_t(i);
    plan.most = int32_t(places.capacity);
    plan.epoch = take(deviceBytes, slots, sizeof(uint64_t));
    plan.since = take(deviceBytes, slots, sizeof(int32_t));
    plan.changed = take(deviceBytes, 1, sizeof(uint64_t));
    plan.notes = take(hostBytes, slots, sizeof(uint64_t));
    plan.changes = take(hostBytes, 1, sizeof(uint64_t));
    slotBytes.push_back(layer.heads *
                        ss::packed_bytes(plan.most, places.sizes.rowBytes()));
    largest = std::max(largest, slotBytes.back());
    layers.push_back(plan);
  }
  room = std::max(largest, std::min(kRoom, largest * slots));
  for (size_t i = 0; i < layers.size(); ++i) {
    const int64_t fits = room / slotBytes[i];
    layers[i].slotsPerJob = int32_t(std::min<int64_t>(fits, slots));
    mostStates = std::max(
        mostStates, int64_t(layers[i].slotsPerJob) *
                        manifest.layers[size_t(layers[i].layer)].heads);
  }
  placeStaging();
}

void FrozenPlan::placeStaging() {
  tables = take(deviceBytes, int64_t(layers.size()), sizeof(ss::FrozenLayer));
  gatherSlots = take(deviceBytes, slots, sizeof(int32_t));
  gatherStates = take(deviceBytes, mostStates, sizeof(ss::GatheredState));
  gatherUsed = take(deviceBytes, 1, sizeof(uint64_t));
  gatherData = take(deviceBytes, room, 1);
  hostSlots = take(hostBytes, slots, sizeof(int32_t));
  hostStates = take(hostBytes, mostStates, sizeof(ss::GatheredState));
  hostUsed = take(hostBytes, 1, sizeof(uint64_t));
  hostData = take(hostBytes, room, 1);
  hostZero = take(hostBytes, 1, sizeof(uint64_t));
  hostPositions = take(hostBytes, slots, sizeof(int64_t));
  for (MailboxPlan &box : boxes)
    placeBox(box);
}

void FrozenPlan::placeBox(MailboxPlan &box) {
  box.ready = take(deviceBytes, 1, sizeof(uint64_t));
  box.count = take(deviceBytes, 1, sizeof(uint64_t));
  box.results = take(deviceBytes, mostStates, sizeof(ss::Result));
  box.data = take(deviceBytes, room, 1);
  box.answered = take(deviceBytes, mostStates, sizeof(uint64_t));
  box.hostReady = take(hostBytes, 1, sizeof(uint64_t));
  box.hostCount = take(hostBytes, 1, sizeof(uint64_t));
  box.hostResults = take(hostBytes, mostStates, sizeof(ss::Result));
  box.hostData = take(hostBytes, room, 1);
  box.hostAnswers = take(hostBytes, mostStates, sizeof(uint64_t));
  box.hostAnsweredAt = take(hostBytes, mostStates, sizeof(int64_t));
}

} // namespace sinkstate::runtime::cuda
