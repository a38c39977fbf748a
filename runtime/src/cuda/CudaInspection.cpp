//===- CudaInspection.cpp - Looking at states on a GPU --------------------===//

#include "cuda/CudaEngine.h"

#include "capi/Failure.h"
#include "state/DeferredState.h"

#include <algorithm>
#include <vector>

namespace sinkstate::runtime::cuda {

/// Steps may be on any stream of the caller's.
void CudaEngine::waitForAll() const {
  SS_CUDA(context->driver(), cuCtxSynchronize());
}

void CudaEngine::layerInfo(int32_t layer, ss_layer_info &info) const {
  describeLayer(checkedLayer(layer), info);
}

/// What is in the buffers of a slot of a deferred layer.
void CudaEngine::addPairs(const LayerManifest &layer,
                          const LayerPlaces &places, int32_t slot,
                          float *states) {
  auto slotOf = [&](int64_t begin, int64_t floats) {
    std::vector<float> part(size_t(floats / slotCount));
    own->copyOut(part.data(),
                 memory.address() + CUdeviceptr(begin) +
                     size_t(slot) * part.size() * sizeof(float),
                 part.size() * sizeof(float));
    return part;
  };
  const std::vector<float> k = slotOf(places.bufferK, places.sizes.bufferKFloats),
                           u = slotOf(places.bufferU, places.sizes.bufferUFloats),
                           g = slotOf(places.bufferG, places.sizes.bufferGFloats);
  int32_t count = 0;
  own->copyOut(&count, memory.address() + CUdeviceptr(places.count + slot * 4),
               sizeof count);
  addDeferredPairs(layer, {count, k.data(), u.data(), g.data()}, states);
}

void CudaEngine::densify(int32_t index, int32_t slot, float *out) {
  const LayerManifest &layer = checkedLayer(index);
  checkSlot(slot);
  const LayerPlaces &places = layout.layers[size_t(index)];
  const int64_t floats = places.sizes.denseFloats;
  const int64_t all = layer.heads * floats;
  CurrentContext current(*context);
  waitForAll();
  if (layer.denseForm) {
    const int64_t bytes = layer.heads * places.sizes.denseStateBytes();
    std::vector<std::byte> stored(static_cast<size_t>(bytes));
    own->copyOut(stored.data(),
                 memory.address() + CUdeviceptr(places.dense + slot * bytes),
                 stored.size());
    loadElements(places.sizes.storage, out, stored.data(), all);
    if (layer.deferred)
      addPairs(layer, places, slot, out);
    return;
  }
  std::vector<int32_t> work;
  std::vector<int64_t> base;
  for (int32_t head = 0; head < layer.heads; ++head) {
    work.push_back(slot * layer.heads + head);
    base.push_back(head * floats);
  }
  own->copyIn(memory.address() + CUdeviceptr(layout.inspectedWork),
              work.data(), work.size() * sizeof(int32_t));
  own->copyIn(memory.address() + CUdeviceptr(layout.inspectedCount),
              &layer.heads, sizeof(int32_t));
  own->copyIn(memory.address() + CUdeviceptr(layout.inspectedBase),
              base.data(), base.size() * sizeof(int64_t));
  bindState(places);
  bindRounding(index);
  values.setPointer(Argument::Work, at<int32_t>(layout.inspectedWork));
  values.setPointer(Argument::WorkCount, at<int32_t>(layout.inspectedCount));
  values.setI32(Argument::CountAhead, 0);
  values.setPointer(Argument::Out, at<float>(layout.inspected));
  values.setPointer(Argument::OutBase, at<int64_t>(layout.inspectedBase));
  kernels->launch(layer.densify, values, layer.heads, own->get());
  std::vector<float> columns(static_cast<size_t>(all));
  own->copyOut(columns.data(),
               memory.address() + CUdeviceptr(layout.inspected),
               columns.size() * sizeof(float));
  // Kernels write column after column of H.
  for (int64_t head = 0; head < layer.heads; ++head)
    for (int64_t v = 0; v < layer.dv; ++v)
      for (int64_t k = 0; k < layer.dk; ++k)
        out[head * floats + v * layer.dk + k] =
            columns[size_t(head * floats + k * layer.dv + v)];
}

void CudaEngine::readState(int64_t offset, int32_t layer, int32_t slot,
                           int32_t *out) const {
  const int32_t heads = checkedLayer(layer).heads;
  checkSlot(slot);
  CurrentContext current(*context);
  waitForAll();
  own->copyOut(out,
               memory.address() +
                   CUdeviceptr(offset + int64_t(slot) * heads * 4),
               size_t(heads) * sizeof(int32_t));
}

void CudaEngine::ranks(int32_t layer, int32_t slot, int32_t *ranks) const {
  const LayerManifest &sizes = checkedLayer(layer);
  checkSlot(slot);
  if (sizes.denseForm)
    std::fill_n(ranks, sizes.heads, -1);
  else
    readState(layout.layers[size_t(layer)].rank, layer, slot, ranks);
}

void CudaEngine::status(int32_t layer, int32_t slot, int32_t *status) const {
  const LayerManifest &sizes = checkedLayer(layer);
  checkSlot(slot);
  if (sizes.denseForm)
    std::fill_n(status, sizes.heads, 0);
  else
    readState(layout.layers[size_t(layer)].status, layer, slot, status);
}

void CudaEngine::statistics(ss_statistics &out) const {
  const uint32_t structSize = out.struct_size;
  out = {};
  out.struct_size = structSize;
  out.allocated_bytes = out.allocated_peak =
      layout.bytes + (consolidator ? consolidator->bytes() : 0);
  out.hand_over_bytes = mover->bytes() + denseWork->bytes();
  if (consolidator)
    consolidator->addStatistics(out);
  CurrentContext current(*context);
  waitForAll();
  own->copyOut(&out.compactions,
               memory.address() + CUdeviceptr(layout.compactions),
               sizeof out.compactions);
  if (pools)
    rowStatistics(out);
  out.used_bytes += layout.bytes;
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerPlaces &places = layout.layers[i];
    const int32_t heads = manifest.layers[i].heads;
    if (!pools) // rows are a part of what is allocated once
      out.used_bytes -= places.sizes.states * places.capacity *
                        (places.sizes.rowBytes() + 4);
    std::vector<int32_t> ranks(size_t(places.sizes.states), -1);
    if (!manifest.layers[i].denseForm)
      ranks = wholeTable(places.rank, places.sizes.states);
    for (int64_t state = 0; state < places.sizes.states; ++state) {
      if (!inUse[size_t(state / heads)])
        continue;
      out.dense_bytes += places.sizes.denseFloats * 4;
      out.live_bytes += places.sizes.liveBytes(
          ranks[size_t(state)], sinks[i].hasSink(state % heads));
      if (!manifest.layers[i].denseForm)
        out.used_bytes += places.sizes.storedBytes(ranks[size_t(state)]);
    }
  }
}

/// A table of 32 bits, of all slots.
std::vector<int32_t> CudaEngine::wholeTable(int64_t offset,
                                            int64_t count) const {
  std::vector<int32_t> values(static_cast<size_t>(count));
  own->copyOut(values.data(), memory.address() + CUdeviceptr(offset),
               values.size() * sizeof(int32_t));
  return values;
}

void CudaEngine::layerStatistics(int32_t index,
                                 ss_layer_statistics &out) const {
  const LayerManifest &layer = checkedLayer(index);
  const LayerPlaces &places = layout.layers[size_t(index)];
  const LayerLayout &sizes = places.sizes;
  CurrentContext current(*context);
  waitForAll();
  std::vector<int32_t> ranks(size_t(sizes.states), -1),
      status(ranks.size(), 0), counts(inUse.size(), 0);
  if (!layer.denseForm) {
    ranks = wholeTable(places.rank, sizes.states);
    status = wholeTable(places.status, sizes.states);
    counts = wholeTable(places.count, slotCount);
  }
  for (int64_t state = 0; state < sizes.states; ++state) {
    const auto slot = size_t(state / layer.heads);
    const int32_t rank = ranks[size_t(state)];
    if (!inUse[slot])
      continue;
    ++out.states;
    out.status |= status[size_t(state)];
    out.dense_states += rank < 0;
    out.rank_sum += std::max(0, rank);
    out.rank_max = std::max(out.rank_max, rank);
    out.buffered_max = std::max(out.buffered_max, counts[slot]);
    out.live_bytes += sizes.liveBytes(
        rank, sinks[size_t(index)].hasSink(state % layer.heads));
  }
  out.dense_bytes = out.states * sizes.denseFloats * 4;
  out.allocated_bytes = heldRowBytes(places, layer.denseForm);
}

/// Of the blocks of rows of a layer's states, whether their slots are in use or not
/// taken back yet.
int64_t CudaEngine::heldRowBytes(const LayerPlaces &places,
                                 bool denseForm) const {
  const LayerLayout &sizes = places.sizes;
  if (denseForm)
    return sizes.states * sizes.denseStateBytes();
  int64_t rows = 0;
  for (int32_t capacity : wholeTable(places.rowCapacity, sizes.states))
    rows += capacity;
  return rows * (sizes.rowBytes() + int64_t(sizeof(float)));
}

} // namespace sinkstate::runtime::cuda
