//===- Decode.cpp - One token in one layer --------------------------------===//

#include "engine/Engine.h"

#include "capi/Failure.h"
#include "engine/DecodeArguments.h"
#include "engine/Stopwatch.h"
#include "state/DeferredState.h"

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
    checkNotLeft(slot);
    Slot &owner = slots[size_t(slot)];
    if (owner.lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", slot,
           " appears twice in the batch, expected every slot once");
    owner.lastBatch = batches;
    if (layer.decodedTokens[size_t(slot)] > owner.position)
      fail(SS_BUFFER_FULL, "layer '", layer.manifest().name,
           "' has decoded position ", owner.position, " of slot ", slot,
           " already, expected one token per step: call ss_end_step first");
    // Where a layer compacts before its tokens, that comes first.
    const LayerManifest &manifest = layer.manifest();
    if (!manifest.denseForm && !manifest.compactsBefore &&
        layer.count[slot] >= manifest.buffer)
      fail(SS_INTERNAL, "layer '", manifest.name, "' of slot ", slot,
           " has a full buffer that was not compacted: report it");
  }
}

/// Whether the layer compacts after token `token` of the step.
bool Engine::isDue(const LayerState &layer, int32_t slot,
                   int32_t token) const {
  const LayerManifest &manifest = layer.manifest();
  // The request's own position decides, so that its bits do not depend on
  // when it joined.
  const int64_t next = slots[size_t(slot)].position + token + 1;
  return next % manifest.buffer == manifest.phase ||
         layer.count[slot] + 1 >= manifest.buffer;
}

void Engine::addDue(const LayerState &layer, int32_t slot, int32_t ahead,
                    DueWork &due) const {
  due.slots.push_back(slot);
  const int32_t pairs = layer.count[slot] + ahead;
  const int64_t first = layer.firstState(slot);
  for (int64_t state = first; state < first + layer.heads(); ++state) {
    if (layer.isDense(state)) {
      due.dense.push_back(int32_t(state));
      due.foldBase.push_back(0); // in reserveRows: the rows may move
      continue;
    }
    due.factored.push_back(int32_t(state));
    if (layer.rank[state] + pairs > layer.manifest().rank)
      due.atBound.push_back(int32_t(state));
  }
}

Engine::DueWork Engine::dueWork(const LayerState &layer,
                                std::span<const int32_t> batch,
                                int32_t token) const {
  DueWork due;
  if (layer.manifest().denseForm || layer.manifest().compactsBefore)
    return due; // see compactBefore
  for (int32_t slot : batch)
    if (slot >= 0 && isDue(layer, slot, token))
      addDue(layer, slot, 1, due);
  return due;
}

/// Rows that a factored state needs for its compaction.
int64_t Engine::rowsToCompact(const LayerState &layer, int32_t state,
                              int32_t ahead) const {
  const int64_t pairs = layer.count[state / layer.heads()] + ahead;
  const int64_t sink = layer.manifest().sinkForm && layer.rank[state] == 0;
  return std::min<int64_t>(layer.rank[state] + pairs + sink,
                           layer.manifest().rank);
}

/// `take`, and once more without the blocks that are kept for reuse, of
/// whatever layer.
template <typename Take> void Engine::withMemory(const Take &take) {
  try {
    take();
    return;
  } catch (const std::exception &) {
    for (LayerState &other : layers)
      if (!other.manifest().denseForm)
        other.pool().releaseKept();
  }
  take();
}

/// Rows for a state, or, at the limit of memory, what the options say.
void Engine::growRows(LayerState &layer, DueWork &due, int32_t state,
                      int64_t rows) {
  const LayerLayout &layout = layer.layout();
  // It may go dense, which it does within its block.
  const int64_t wanted = layout.denseFallback && rows >= layout.breakEvenRank
                             ? std::max(rows, layout.denseRows)
                             : rows;
  withMemory([&] { layer.prepareWrite(state, wanted); });
  try {
    withMemory([&] { layer.ensureRows(state, wanted); });
  } catch (const std::exception &) {
    if (options.exhaustion != SS_EXHAUSTION_TIGHTEN ||
        layer.capacityOf(state) == 0)
      throw;
    if (layer.capacityOf(state) >= rows)
      return;
    due.limited.push_back(state);
    due.limitedStatus.push_back(layer.status[state]);
  }
}

void Engine::reserveRows(LayerState &layer, DueWork &due, int32_t ahead) {
  // Compaction works in the state's own block: room for what is stored, for the
  // whole buffer, for a sink that is not stored yet, and for the matrix that it
  // may become. Taken before anything changes, so that running out of memory
  // leaves every state as it was.
  try {
    for (size_t i = 0; i < due.dense.size(); ++i) {
      withMemory([&] { layer.prepareWrite(due.dense[i]); });
      due.foldBase[i] =
          storedPlace(layer.layout(), layer.rowBase[due.dense[i]]);
    }
    for (int32_t state : due.factored)
      growRows(layer, due, state, rowsToCompact(layer, state, ahead));
  } catch (...) {
    ++counters.refused;
    noteAllocation(layer);
    throw;
  }
  noteAllocation(layer);
}

/// Takes over the results of consolidation that are there, or due.
void Engine::landResults(LayerState &layer, std::span<const int32_t> batch,
                         std::span<const int32_t> compacting) {
  if (!consolidator)
    return;
  try {
    consolidator->beforeDecode(indexOf(layer), batch, compacting);
  } catch (...) {
    ++counters.refused;
    noteAllocation(layer);
    throw;
  }
}

void Engine::launchDecode(LayerState &layer, const ss_decode_args &args) {
  if (layer.manifest().denseForm) {
    values.setPointer(Argument::Dense, layer.dense.data());
    bindRounding(layer);
  } else {
    bindState(layer);
  }
  if (layer.manifest().deferred)
    bindBuffers(layer);
  bindDecodeArguments(layer.manifest(), args, values);
  device.launch({*package, layer.manifest().decode, values,
                 int64_t(args.batch) * layer.heads()});
}

/// Token `token` of the step, whose arrays `args` names.
void Engine::decodeToken(LayerState &layer, const ss_decode_args &args,
                         int32_t token) {
  const std::span<const int32_t> batch(args.slots, size_t(args.batch));
  DueWork due = dueWork(layer, batch, token);
  if (consolidator) {
    landResults(layer, batch, due.slots);
    due = dueWork(layer, batch, token); // ranks and forms may have changed
  }
  {
    Stopwatch time(counters.decode_seconds);
    reserveRows(layer, due, 1);
    launchDecode(layer, args);
    device.wait();
  }
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    layer.decodedTokens[size_t(slot)] =
        slots[size_t(slot)].position + token + 1;
    if (layer.manifest().deferred)
      layer.count[slot] =
          nextDeferredCount(layer.count[slot], layer.manifest().buffer);
    else if (!layer.manifest().denseForm)
      ++layer.count[slot];
  }
  if (!due.slots.empty())
    compact(layer, due);
}

void Engine::decodeLayer(int32_t index, const ss_decode_args &args) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  checkDecode(layer, args);
  const std::span<const int32_t> batch(args.slots, size_t(args.batch));
  const std::vector<int32_t> one(batch.size(), 1);
  checkStepTokens(layer, batch, one);
  compactBefore(layer, batch, 0);
  decodeToken(layer, args, 0);
  noteStepTokens(batch, one);
}

} // namespace sinkstate::runtime
