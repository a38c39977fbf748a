//===- Decode.cpp - One token in one layer --------------------------------===//

#include "engine/Engine.h"

#include "capi/Failure.h"
#include "engine/DecodeArguments.h"
#include "engine/Stopwatch.h"

namespace sinkstate::runtime {

void Engine::checkDecode(const LayerState &layer, const ss_decode_args &args) {
  checkDecodeArguments(layer.manifest(), args);
  checkBatchSlots(layer, {args.slots, size_t(args.batch)});
}

void Engine::checkBatchSlots(const LayerState &layer,
                             std::span<const int32_t> batch) {
  ++batches;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    checkSlot(slot);
    Slot &owner = slots[size_t(slot)];
    if (owner.lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", slot,
           " appears twice in the batch, expected every slot once");
    owner.lastBatch = batches;
    if (layer.decodedTokens[size_t(slot)] > owner.position)
      fail(SS_BUFFER_FULL, "layer '", layer.manifest().name,
           "' has decoded position ", owner.position, " of slot ", slot,
           " already, expected one token per step: call ss_end_step first");
    if (!layer.manifest().denseForm &&
        layer.count[slot] >= layer.manifest().buffer + layer.manifest().draft)
      fail(SS_INTERNAL, "layer '", layer.manifest().name, "' of slot ", slot,
           " has a full buffer that was not compacted: report it");
  }
}

Engine::DueWork Engine::dueWork(const LayerState &layer,
                                std::span<const int32_t> batch) const {
  DueWork due;
  const LayerManifest &manifest = layer.manifest();
  if (manifest.denseForm)
    return due;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    // The request's own position decides, so that its bits do not depend on
    // when it joined.
    const int64_t next = slots[size_t(slot)].position + 1;
    const int32_t pairs = layer.count[slot] + 1;
    if (next % manifest.buffer != manifest.phase && pairs < manifest.buffer)
      continue;
    due.slots.push_back(slot);
    const int64_t first = layer.firstState(slot);
    for (int64_t state = first; state < first + layer.heads(); ++state) {
      if (layer.isDense(state)) {
        due.dense.push_back(int32_t(state));
        due.foldBase.push_back(layer.rowBase[state] *
                               layer.layout().rowFloats);
        continue;
      }
      due.factored.push_back(int32_t(state));
      if (layer.rank[state] + pairs > manifest.rank)
        due.atBound.push_back(int32_t(state));
    }
  }
  return due;
}

void Engine::reserveRows(LayerState &layer, const DueWork &due) {
  // Compaction works in the state's own block: room for what is stored and for
  // the whole buffer. Taken before anything changes, so that running out of
  // memory leaves every state as it was.
  try {
    for (int32_t state : due.factored) {
      const int64_t pairs = layer.count[state / layer.heads()] + 1;
      layer.ensureRows(state, std::min<int64_t>(layer.rank[state] + pairs,
                                                layer.manifest().rank));
    }
  } catch (...) {
    noteAllocation(layer);
    throw;
  }
  noteAllocation(layer);
}

void Engine::launchDecode(LayerState &layer, const ss_decode_args &args) {
  if (layer.manifest().denseForm)
    values.setPointer(Argument::Dense, layer.dense.data());
  else
    bindState(layer);
  bindDecodeArguments(layer.manifest(), args, values);
  device.launch({*package, layer.manifest().decode, values,
                 int64_t(args.batch) * layer.heads()});
}

void Engine::decodeLayer(int32_t index, const ss_decode_args &args) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  checkDecode(layer, args);
  const std::span<const int32_t> batch(args.slots, size_t(args.batch));
  const DueWork due = dueWork(layer, batch);
  {
    Stopwatch time(counters.decode_seconds);
    reserveRows(layer, due);
    launchDecode(layer, args);
    device.wait();
  }
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    layer.decodedTokens[size_t(slot)] = slots[size_t(slot)].position + 1;
    if (!layer.manifest().denseForm)
      ++layer.count[slot];
  }
  if (!due.slots.empty())
    compact(layer, due);
}

} // namespace sinkstate::runtime
