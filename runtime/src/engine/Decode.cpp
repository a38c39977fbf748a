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
  }
}

std::vector<int32_t>
Engine::dueSlots(const LayerState &layer,
                 std::span<const int32_t> batch) const {
  std::vector<int32_t> due;
  const LayerManifest &manifest = layer.manifest();
  if (manifest.denseForm)
    return due;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    int64_t next = slots[size_t(slot)].position + 1;
    // The request's own position decides, so that its bits do not depend on
    // when it joined.
    bool scheduled = next % manifest.buffer == manifest.phase;
    bool full = layer.count[slot] + 1 >= manifest.buffer;
    if (scheduled || full)
      due.push_back(slot);
  }
  return due;
}

void Engine::reserveRows(LayerState &layer, std::span<const int32_t> due) {
  // Compaction works in the state's own block: room for what is stored and for
  // the whole buffer. Taken before anything changes, so that running out of
  // memory leaves every state as it was.
  for (int32_t slot : due) {
    const int64_t pairs = layer.count[slot] + 1;
    const int64_t first = layer.firstState(slot);
    for (int64_t state = first; state < first + layer.heads(); ++state)
      if (!layer.isDense(state))
        layer.ensureRows(state, std::min<int64_t>(layer.rank[state] + pairs,
                                                  layer.manifest().rank));
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
  const std::vector<int32_t> due = dueSlots(layer, batch);
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
  if (!due.empty())
    compactSlots(layer, due);
}

} // namespace sinkstate::runtime
