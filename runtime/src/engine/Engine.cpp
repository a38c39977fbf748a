//===- Engine.cpp - Slots and inspection ----------------------------------===//

#include "engine/Engine.h"

#include "capi/Failure.h"

#include <algorithm>

namespace sinkstate::runtime {

Engine::Engine(std::shared_ptr<const Package> loaded,
               const ss_engine_options &options)
    : package(std::move(loaded)), options(options), device(options.threads) {
  const Manifest &manifest = package->manifest();
  layers.reserve(manifest.layers.size());
  for (const LayerManifest &layer : manifest.layers)
    layers.emplace_back(device, layer, options.slots,
                        options.dense_fallback != 0);
  allocated.resize(layers.size());
  for (const LayerState &layer : layers)
    noteAllocation(layer);
  slots.resize(size_t(options.slots));
  freeSlots.reserve(slots.size());
  for (int32_t slot = options.slots; slot-- > 0;)
    freeSlots.push_back(slot);
  if (options.consolidation == SS_CONSOLIDATION_ASYNCHRONOUS ||
      options.consolidation == SS_CONSOLIDATION_DETERMINISTIC)
    consolidator = std::make_unique<Consolidator>(layers, options, counters);
}

void Engine::synchronize(Stream) {
  device.wait();
  if (consolidator)
    consolidator->drain();
}

void Engine::noteAllocation(const LayerState &layer) {
  int64_t &noted = allocated[size_t(&layer - layers.data())];
  int64_t now = layer.allocatedBytes();
  counters.allocated_bytes += now - noted;
  noted = now;
  counters.allocated_peak =
      std::max(counters.allocated_peak, counters.allocated_bytes);
}

const LayerState &Engine::checkedLayer(int32_t layer) const {
  if (layer < 0 || layer >= layerCount())
    fail(SS_INVALID_ARGUMENT, "layer ", layer, ", expected 0 to ",
         layerCount() - 1, " (the recurrent layers of model '",
         package->manifest().model, "')");
  return layers[size_t(layer)];
}

void Engine::checkSlot(int32_t slot) const {
  if (slot < 0 || size_t(slot) >= slots.size())
    fail(SS_INVALID_ARGUMENT, "slot ", slot, ", expected 0 to ",
         slots.size() - 1);
  if (!slots[size_t(slot)].inUse)
    fail(SS_INVALID_ARGUMENT, "slot ", slot,
         " has no owner, expected a slot from ss_slot_alloc");
}

void Engine::resetStates(int32_t slot) {
  for (LayerState &layer : layers) {
    layer.reset(slot);
    noteAllocation(layer);
  }
  slots[size_t(slot)].position = 0;
  slots[size_t(slot)].stepTokens = Slot::kNone;
}

int32_t Engine::allocateSlot(Stream) {
  if (freeSlots.empty())
    fail(SS_SLOTS_EXHAUSTED, "all ", slots.size(),
         " slots have owners: free one first or create the engine with more");
  int32_t slot = freeSlots.back();
  freeSlots.pop_back();
  resetStates(slot);
  slots[size_t(slot)].inUse = true;
  return slot;
}

void Engine::freeSlot(int32_t slot) {
  checkSlot(slot);
  resetStates(slot);
  slots[size_t(slot)].inUse = false;
  freeSlots.push_back(slot);
}

void Engine::resetSlot(int32_t slot, Stream) {
  checkSlot(slot);
  resetStates(slot);
}

void Engine::endStep(std::span<const int32_t> batch, Stream) {
  ++batches;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    checkSlot(slot);
    if (slots[size_t(slot)].lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", slot,
           " appears twice in the step, expected every slot once");
    slots[size_t(slot)].lastBatch = batches;
  }
  for (int32_t slot : batch)
    if (slot >= 0)
      slots[size_t(slot)].endStep();
}

void Engine::layerInfo(int32_t index, ss_layer_info &info) const {
  describeLayer(checkedLayer(index).manifest(), info);
}

void Engine::densify(int32_t index, int32_t slot, float *out) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  checkSlot(slot);
  const LayerManifest &sizes = layer.manifest();
  const int64_t floats = layer.layout().denseFloats;
  const int64_t first = layer.firstState(slot);
  if (sizes.denseForm) {
    device.wait();
    device.copy(out, layer.dense.data() + first * floats,
                size_t(layer.heads() * floats) * sizeof(float));
    return;
  }
  States work;
  std::vector<int64_t> outBase;
  for (int64_t head = 0; head < layer.heads(); ++head) {
    work.push_back(int32_t(first + head));
    outBase.push_back(head * floats);
  }
  std::vector<float> columns(size_t(layer.heads() * floats));
  launchDensify(layer, work, columns.data(), outBase);
  device.wait();
  // Kernels write column after column of H.
  for (int64_t head = 0; head < layer.heads(); ++head)
    for (int64_t v = 0; v < sizes.dv; ++v)
      for (int64_t k = 0; k < sizes.dk; ++k)
        out[head * floats + v * sizes.dk + k] =
            columns[size_t(head * floats + k * sizes.dv + v)];
}

void Engine::ranks(int32_t index, int32_t slot, int32_t *ranks) const {
  const LayerState &layer = checkedLayer(index);
  checkSlot(slot);
  for (int64_t head = 0; head < layer.heads(); ++head)
    ranks[head] = layer.manifest().denseForm
                      ? -1
                      : layer.rank[layer.firstState(slot) + head];
}

void Engine::status(int32_t index, int32_t slot, int32_t *status) const {
  const LayerState &layer = checkedLayer(index);
  checkSlot(slot);
  for (int64_t head = 0; head < layer.heads(); ++head)
    status[head] = layer.manifest().denseForm
                       ? 0
                       : layer.status[layer.firstState(slot) + head];
}

void Engine::statistics(ss_statistics &out) const {
  uint32_t structSize = out.struct_size;
  out = counters;
  out.struct_size = structSize;
  for (const LayerState &layer : layers)
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (!slots[slot].inUse)
        continue;
      int64_t first = layer.firstState(int32_t(slot));
      for (int64_t state = first; state < first + layer.heads(); ++state) {
        bool denseForm = layer.manifest().denseForm;
        out.dense_bytes += layer.layout().denseFloats * 4;
        out.live_bytes +=
            layer.layout().liveBytes(denseForm ? -1 : layer.rank[state]);
      }
    }
}

void *Engine::allocateMemory(size_t bytes) { return ::operator new(bytes); }

void Engine::freeMemory(void *memory) { ::operator delete(memory); }

void Engine::copyIn(void *to, const void *from, size_t bytes, Stream) {
  device.copy(to, from, bytes);
}

void Engine::copyOut(void *to, const void *from, size_t bytes, Stream) {
  device.wait();
  device.copy(to, from, bytes);
}

} // namespace sinkstate::runtime
