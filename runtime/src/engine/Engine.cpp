//===- Engine.cpp - Slots and inspection ----------------------------------===//

#include "engine/Engine.h"
#include "engine/FirstHead.h"
#include "engine/Sinks.h"

#include "capi/Failure.h"
#include "engine/HostRowConverter.h"
#include "state/DeferredState.h"

#include <algorithm>
#include <set>

namespace sinkstate::runtime {

Engine::Engine(std::shared_ptr<const Package> loaded,
               const ss_engine_options &options)
    : package(std::move(loaded)), options(options), device(options.threads) {
  const Manifest &manifest = package->manifest();
  budget.limit = options.state_bytes_limit;
  checkLimit();
  checkMemory();
  layers.reserve(manifest.layers.size());
  for (const LayerManifest &layer : manifest.layers)
    layers.emplace_back(device, layer, options.slots,
                        options.dense_fallback != 0, &budget);
  allocated.resize(layers.size());
  for (const LayerState &layer : layers)
    noteAllocation(layer);
  slots.resize(size_t(options.slots));
  requestKeys.resize(size_t(options.slots));
  for (const LayerManifest &layer : manifest.layers)
    sinks.push_back(LayerSinks::of(layer));
  firstHeads.resize(layers.size());
  freeSlots.reserve(slots.size());
  for (int32_t slot = options.slots; slot-- > options.reserved_slots;)
    freeSlots.push_back(slot);
  if (options.consolidation == SS_CONSOLIDATION_ASYNCHRONOUS ||
      options.consolidation == SS_CONSOLIDATION_DETERMINISTIC)
    consolidator = std::make_unique<Consolidator>(layers, options, counters);
}

void Engine::checkLimit() const {
  if (budget.limit == 0)
    return;
  int64_t fixed = 0;
  for (const LayerManifest &layer : package->manifest().layers)
    fixed += LayerLayout(layer, options.slots, options.dense_fallback != 0)
                 .fixedBytes(device);
  if (fixed > budget.limit)
    fail(SS_OUT_OF_MEMORY, "options.state_bytes_limit is ", budget.limit,
         ", expected more than the ", fixed,
         " bytes that buffers and tables of ", options.slots,
         " slots take: use fewer slots");
}

/// Before anything is touched: pages that are committed may not exist, and who
/// touches more of them than there are is killed and not told. Slots beyond this have
/// no use, as not all of them can be in use at a time.
void Engine::checkMemory() const {
  int64_t least = options.slots * int64_t(sizeof(Slot) + sizeof(uint64_t) + sizeof(int32_t));
  for (const LayerManifest &layer : package->manifest().layers)
    if (__builtin_add_overflow(least,
                               LayerState::leastBytes(device, layer, options.slots,
                                                      options.dense_fallback != 0),
                               &least))
      least = INT64_MAX;
  if (const int64_t physical = device.physicalBytes(); least > physical)
    fail(SS_OUT_OF_MEMORY, "buffers, tables and first rows of ", options.slots,
         " slots take ", least, " bytes, and the machine has ", physical,
         ": create the engine with fewer slots");
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
    layer.noteLive(slot, slots[size_t(slot)].inUse);
    noteAllocation(layer);
  }
  slots[size_t(slot)].position = 0;
  slots[size_t(slot)].stepTokens = Slot::kNone;
  slots[size_t(slot)].isLeft = false;
  requestKeys[size_t(slot)] = 0;
}

void Engine::setRoundingKey(int32_t slot, uint64_t key, Stream) {
  checkSlot(slot);
  requestKeys[size_t(slot)] = key;
}

void Engine::setSink(int32_t index, std::span<const float> means) {
  const LayerManifest &layer = checkedLayer(index).manifest();
  for (size_t slot = 0; slot < slots.size(); ++slot)
    checkSinks(layer, means, slots[slot].inUse ? int32_t(slot) : -1);
  LayerSinks &ofLayer = sinks[size_t(index)];
  ofLayer.set(means);
  std::vector<bool> ofHeads(ofLayer.hashes.size());
  for (size_t head = 0; head < ofHeads.size(); ++head)
    ofHeads[head] = ofLayer.hasSink(int64_t(head));
  layers[size_t(index)].setSinks(std::move(ofHeads));
}

void Engine::setFirstHead(int32_t index, int32_t head) {
  const LayerManifest &layer = checkedLayer(index).manifest();
  for (size_t slot = 0; slot < slots.size(); ++slot)
    checkFirstHead(layer, head, slots[slot].inUse ? int32_t(slot) : -1);
  firstHeads[size_t(index)] = head;
}

uint64_t Engine::roundingKey(int32_t slot) const {
  checkSlot(slot);
  return requestKeys[size_t(slot)];
}

int32_t Engine::allocateSlot(Stream) {
  if (freeSlots.empty())
    fail(SS_SLOTS_EXHAUSTED, "all ", slots.size(),
         " slots have owners: free one first or create the engine with more");
  int32_t slot = freeSlots.back();
  freeSlots.pop_back();
  slots[size_t(slot)].inUse = true;
  resetStates(slot);
  return slot;
}

void Engine::freeSlot(int32_t slot) {
  checkSlot(slot);
  slots[size_t(slot)].inUse = false;
  resetStates(slot);
  freeSlots.push_back(slot);
}

void Engine::resetSlot(int32_t slot, Stream) {
  checkSlot(slot);
  resetStates(slot);
}

/// Throws where a layer has not taken all tokens of the slot's step.
void Engine::checkStepEnds(int32_t slot) const {
  const Slot &owner = slots[size_t(slot)];
  const int32_t tokens = owner.tokens();
  for (const LayerState &layer : layers) {
    const int64_t taken = layer.decodedTokens[size_t(slot)] - owner.position;
    if (taken < tokens)
      fail(SS_INVALID_ARGUMENT, "the step of slot ", slot,
           " ends without layer '", layer.manifest().name, "' (", taken, " of ",
           tokens, " tokens are decoded), expected every layer to decode them");
  }
}

void Engine::checkNotLeft(int32_t slot) const {
  if (slots[size_t(slot)].isLeft)
    failForLeftSlot(slot);
}

void Engine::leaveStep(Stream) {
  for (Slot &slot : slots)
    slot.leaveStep();
}

/// Steps of other slots may be under way beside this one.
void Engine::beginStep(std::span<const int32_t> batch, Stream) {
  for (int32_t slot : batch)
    if (slot >= 0 && size_t(slot) < slots.size())
      slots[size_t(slot)].leaveStep();
}

void Engine::endStep(std::span<const int32_t> batch, Stream) {
  ++batches;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    checkSlot(slot);
    checkNotLeft(slot);
    if (slots[size_t(slot)].lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", slot,
           " appears twice in the step, expected every slot once");
    slots[size_t(slot)].lastBatch = batches;
  }
  for (int32_t slot : batch)
    if (slot >= 0)
      checkStepEnds(slot);
  for (int32_t slot : batch)
    if (slot >= 0)
      slots[size_t(slot)].endStep();
  ++counters.steps;
  for (size_t i = 0; i < layers.size(); ++i) {
    allocatedSum += double(allocated[i]);
    liveSum += double(layers[i].liveBytes());
  }
}

void Engine::layerInfo(int32_t index, ss_layer_info &info) const {
  describeLayer(checkedLayer(index).manifest(), info);
}

static DeferredPairs deferredPairsOf(const LayerState &layer, int32_t slot) {
  const LayerLayout &layout = layer.layout();
  const int64_t slots = layout.states / layer.heads();
  return {layer.count[slot],
          layer.bufferK.data() + slot * (layout.bufferKFloats / slots),
          layer.bufferU.data() + slot * (layout.bufferUFloats / slots),
          layer.bufferG.data() + slot * (layout.bufferGFloats / slots)};
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
    loadElements(layer.layout().storage, out, layer.denseOf(first),
                 layer.heads() * floats);
    if (sizes.deferred)
      addDeferredPairs(sizes, deferredPairsOf(layer, slot), out);
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
  out.allocated_bytes = 0; // now, not as last noted: slots may have been freed
  for (const LayerState &layer : layers) {
    out.allocated_bytes += layer.allocatedBytes();
    out.live_bytes += layer.liveBytes();
    out.used_bytes += layer.tableBytes();
    std::set<int64_t> counted; // first rows of blocks that forks share
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (!slots[slot].inUse)
        continue;
      out.dense_bytes += layer.heads() * layer.layout().denseFloats * 4;
      if (layer.manifest().denseForm)
        continue;
      const int64_t first = layer.firstState(int32_t(slot));
      for (int64_t state = first; state < first + layer.heads(); ++state) {
        const bool own = layer.owners(state) <= 1 ||
                         counted.insert(layer.rowBase[state]).second;
        (own ? out.used_bytes : out.shared_bytes) += layer.rowBytes(state);
      }
    }
  }
  out.allocated_peak = std::max(out.allocated_peak, out.allocated_bytes);
  if (out.steps > 0) {
    out.mean_allocated_bytes = allocatedSum / double(out.steps);
    out.mean_live_bytes = liveSum / double(out.steps);
  }
}

void Engine::layerStatistics(int32_t index, ss_layer_statistics &out) const {
  const LayerState &layer = checkedLayer(index);
  const bool denseForm = layer.manifest().denseForm;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots[slot].inUse)
      continue;
    const int64_t first = layer.firstState(int32_t(slot));
    out.states += layer.heads();
    if (!denseForm)
      out.buffered_max = std::max(out.buffered_max, layer.count[int64_t(slot)]);
    for (int64_t state = first; state < first + layer.heads(); ++state) {
      if (denseForm || layer.isDense(state)) {
        ++out.dense_states;
      } else {
        out.rank_sum += layer.rank[state];
        out.rank_max = std::max(out.rank_max, layer.rank[state]);
      }
      out.status |= denseForm ? 0 : layer.status[state];
    }
  }
  out.dense_bytes = out.states * layer.layout().denseFloats * 4;
  out.live_bytes = layer.liveBytes();
  out.allocated_bytes = layer.allocatedBytes();
}

std::unique_ptr<RowConverter> Engine::makeRowConverter(int64_t stagingBytes) {
  return std::make_unique<HostRowConverter>(stagingBytes);
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
