//===- Compaction.cpp - The work of a full buffer -------------------------===//

#include "engine/Engine.h"

#include "capi/Failure.h"
#include "engine/ReturnAttempts.h"
#include "engine/Stopwatch.h"
#include "observe/Log.h"
#include "observe/Nvtx.h"

#include <algorithm>
#include <cstdint>
#include <new>

namespace sinkstate::runtime {
namespace {
/// States that go dense at once.
constexpr size_t kDensePerThread = 4;
} // namespace

float *storedOut(LayerState &layer) {
  return layer.layout().storage == Storage::F32
             ? reinterpret_cast<float *>(layer.pool().rows())
             : nullptr;
}

int64_t storedPlace(const LayerLayout &layout, int64_t row) {
  const int64_t element = row * layout.rowFloats;
  return layout.storage == Storage::F32 ? element : -1 - element;
}

void Engine::bindState(LayerState &layer) {
  values.setPointer(Argument::Rows, layer.pool().rows());
  values.setPointer(Argument::Weights, layer.pool().weights());
  values.setPointer(Argument::RowBase, layer.rowBase.data());
  values.setPointer(Argument::Rank, layer.rank.data());
  values.setPointer(Argument::Status, layer.status.data());
  bindBuffers(layer);
}

void Engine::bindBuffers(LayerState &layer) {
  values.setPointer(Argument::Count, layer.count.data());
  values.setPointer(Argument::BufferK, layer.bufferK.data());
  values.setPointer(Argument::BufferU, layer.bufferU.data());
  values.setPointer(Argument::BufferG, layer.bufferG.data());
  bindRounding(layer);
}

/// Rounded is what has been decoded: the position of the newest token and one.
void Engine::bindRounding(const LayerState &layer) {
  values.setPointer(Argument::Positions, layer.decodedTokens.data());
  values.setPointer(Argument::RequestKeys, requestKeys.data());
  values.setI32(Argument::Layer, layer.manifest().index);
  values.setI32(Argument::FirstHead, firstHeads[size_t(indexOf(layer))]);
}

void Engine::launchDensify(LayerState &layer, std::span<const int32_t> work,
                           float *out, std::span<const int64_t> outBase) {
  bindState(layer);
  launchBoundDensify(layer, work, out, outBase);
}

void Engine::launchBoundDensify(const LayerState &layer,
                                std::span<const int32_t> work, float *out,
                                std::span<const int64_t> outBase) {
  workCount = int32_t(work.size());
  values.setPointer(Argument::Work, work.data());
  values.setPointer(Argument::WorkCount, &workCount);
  values.setI32(Argument::CountAhead, 0); // decodeLayer has advanced count
  values.setPointer(Argument::Out, out);
  values.setPointer(Argument::OutBase, outBase.data());
  device.launch({*package, layer.manifest().densify, values, workCount});
}

void Engine::launchCompact(LayerState &layer, const States &work) {
  if (work.empty())
    return;
  bindState(layer);
  workCount = int32_t(work.size());
  values.setPointer(Argument::Work, work.data());
  values.setPointer(Argument::WorkCount, &workCount);
  values.setI32(Argument::CountAhead, 0); // decodeLayer has advanced count
  values.setF32(Argument::PolicyValue, layer.layout().policyValue);
  values.setI32(Argument::MaxRank, layer.layout().maxRank);
  values.setPointer(Argument::RowCapacity, layer.rowCapacity.data());
  values.setPointer(Argument::Sink, sinks[size_t(indexOf(layer))].directions.data());
  device.launch({*package, layer.manifest().compact, values, workCount});
  device.wait();
  counters.compactions += int64_t(work.size());
}

/// Compacts the factored states. Limited ones have no memory for more rows, and
/// keep the largest components that fit those they have.
void Engine::compactWithin(LayerState &layer, const DueWork &due) {
  const States &limited = due.limited;
  for (int32_t state : limited) {
    layer.status[state] &= ~SS_STATUS_TIGHTENED;
    layer.rowCapacity[state] = int32_t(layer.capacityOf(state));
  }
  launchCompact(layer, due.factored);
  for (size_t i = 0; i < limited.size(); ++i) {
    const int32_t state = limited[i];
    counters.tightened += (layer.status[state] & SS_STATUS_TIGHTENED) != 0;
    layer.status[state] |= due.limitedStatus[i];
    layer.rowCapacity[state] = INT32_MAX;
  }
  if (!limited.empty())
    writeLog(SS_LOG_WARNING, "memory", limited.size(), " states of layer '",
             layer.manifest().name,
             "' were compacted within the rows they have");
}

void Engine::goDense(LayerState &layer, const States &work) {
  // In parts, which bounds the memory on the way.
  const size_t most = kDensePerThread * size_t(device.threads());
  try {
    for (size_t begin = 0; begin < work.size(); begin += most)
      goDenseAtOnce(layer, {work.data() + begin,
                            std::min(most, work.size() - begin)});
  } catch (const std::bad_alloc &) {
    // The rest stays in factors, which is as exact, and is tried again at its
    // next compaction.
  }
  noteAllocation(layer);
}

/// Each within its block, which reserveRows made large enough: the kernel reads
/// copies of their factors, and writes beside those.
void Engine::goDenseAtOnce(LayerState &layer, std::span<const int32_t> work) {
  const LayerLayout &layout = layer.layout();
  States going;
  int64_t rows = 0;
  for (int32_t state : work) {
    try {
      layer.ensureRows(state, layout.denseRows);
    } catch (const std::exception &) {
      continue; // tightened: it has less
    }
    going.push_back(state);
    rows += layer.rank[state] + layout.denseRows;
  }
  if (going.empty())
    return;
  constexpr size_t kAlignment = 64;
  std::vector<std::byte> memory(size_t(rows * layout.rowBytes()) + kAlignment);
  std::vector<float> weights(size_t(rows), 0.0f);
  std::vector<int64_t> places, outBase, ownBase;
  for (auto *table : {&places, &outBase, &ownBase})
    table->reserve(going.size());
  std::byte *const copies =
      memory.data() +
      -reinterpret_cast<uintptr_t>(memory.data()) % kAlignment;
  int64_t next = 0;
  for (int32_t state : going) {
    const int32_t rank = layer.rank[state];
    std::copy_n(layer.rowsOf(state), rank * layout.rowBytes(),
                copies + next * layout.rowBytes());
    std::copy_n(layer.weightsOf(state), rank, weights.data() + next);
    ownBase.push_back(layer.rowBase[state]);
    layer.rowBase[state] = next;
    places.push_back(next + rank);
    outBase.push_back(storedPlace(layout, next + rank));
    next += rank + layout.denseRows;
  }
  bindState(layer);
  values.setPointer(Argument::Rows, copies);
  values.setPointer(Argument::Weights, weights.data());
  launchBoundDensify(layer, going,
                     layout.storage == Storage::F32
                         ? reinterpret_cast<float *>(copies)
                         : nullptr,
                     outBase);
  device.wait();
  for (size_t i = 0; i < going.size(); ++i) {
    const int32_t state = going[i];
    layer.rowBase[state] = ownBase[i];
    const std::byte *matrix = copies + places[i] * layout.rowBytes();
    if (!isInRange(layout, matrix))
      continue;
    ++counters.went_dense;
    device.copy(layer.rowsOf(state), matrix, size_t(layout.denseStateBytes()));
    layer.rank[state] = -1;
    layer.folds[size_t(state)] = 0;
    layer.svdDue[size_t(state)] = 0;
  }
}

void Engine::compact(LayerState &layer, const DueWork &due) {
  const NvtxRange range("sinkstate compact", layer.manifest().name);
  fitIntoBound(layer, due.atBound);
  {
    Stopwatch time(counters.compact_seconds);
    compactWithin(layer, due);
    if (!due.dense.empty())
      fold(layer, due);
    device.wait();
  }
  for (int32_t slot : due.slots) {
    layer.count[slot] = 0;
    layer.noteChange(slot);
  }
  try {
    settle(layer, due);
    if (consolidator)
      consolidator->compacted(indexOf(layer), due.slots);
  } catch (const std::bad_alloc &) {
    // States are complete without it; it is tried again next time.
  }
  for (int32_t slot : due.slots)
    layer.noteLive(slot, true);
  noteAllocation(layer);
}

void Engine::settle(LayerState &layer, const DueWork &due) {
  const LayerLayout &layout = layer.layout();
  const LayerManifest &manifest = layer.manifest();
  const uint32_t every = uint32_t(options.consolidate_every);
  States consolidated, growing, attempts;
  for (int32_t state : due.factored) {
    uint32_t number = ++layer.compactions[size_t(state)];
    if (every > 0 && !layout.fixedRank && number % every == 0)
      consolidated.push_back(state);
  }
  for (int32_t state : due.dense)
    if (layer.isDense(state) && triesFactors(++layer.folds[size_t(state)]))
      attempts.push_back(state);
  if (consolidator) {
    if (options.consolidation == SS_CONSOLIDATION_DETERMINISTIC)
      consolidateAtBreakEven(layer, consolidated);
    for (const States *states : {&consolidated, &attempts})
      for (int32_t state : *states)
        layer.svdDue[size_t(state)] =
            layer.isDense(state) || layer.rank[state] > manifest.active;
  } else {
    consolidate(layer, consolidated);
    returnToFactors(layer, attempts);
  }

  Stopwatch time(counters.compact_seconds);
  for (int32_t state : due.factored)
    if (layout.denseFallback && layer.rank[state] >= layout.breakEvenRank)
      growing.push_back(state);
  goDense(layer, growing);
  // Two buffers of room before a block is called too large: a rank that moves
  // by a few does not move its rows every time.
  for (const States *states : {&due.factored, &due.dense})
    for (int32_t state : *states)
      layer.shrinkRows(state,
                       layer.isDense(state)
                           ? layout.denseRows
                           : std::min<int64_t>(layer.rank[state] +
                                                   2 * manifest.buffer,
                                               manifest.rank));
}

} // namespace sinkstate::runtime
