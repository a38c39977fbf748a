//===- LayerState.cpp - The states of one layer ---------------------------===//

#include "state/LayerState.h"

#include "capi/Failure.h"

#include <algorithm>
#include <thread>

namespace sinkstate::runtime {

LayerState::LayerState(Device &device, const LayerManifest &manifest,
                       int32_t slots, bool denseFallback,
                       MemoryBudget *budget)
    : device(&device), layer(&manifest),
      sizes(manifest, slots, denseFallback),
      fixedBytes(sizes.fixedBytes(device)) {
  decodedTokens.resize(size_t(slots), 0);
  epochs.resize(size_t(slots), 0);
  slotLive.resize(size_t(slots), 0);
  tables = Reservation(device, size_t(fixedBytes));
  device.commit(tables.begin(), tables.bytes());
  device.allowLargePages(tables.begin(), tables.bytes());
  if (budget)
    budget->held += fixedBytes;
  std::byte *next = tables.begin();
  if (manifest.denseForm) {
    dense = DeviceArray<std::byte>(
        next, sizes.denseFormFloats * elementBytes(sizes.storage));
    if (manifest.deferred)
      takeBuffers(next, slots);
    return;
  }
  rowBase = DeviceArray<int64_t>(next, sizes.states);
  rank = DeviceArray<int32_t>(next, sizes.states);
  status = DeviceArray<int32_t>(next, sizes.states);
  rowCapacity = DeviceArray<int32_t>(next, sizes.states);
  std::fill_n(rowCapacity.data(), sizes.states, INT32_MAX);
  takeBuffers(next, slots);
  rowPool = std::make_unique<RowPool>(device, sizes.states, sizes.classes,
                                      sizes.rowBytes(), budget);
  blocks.resize(size_t(sizes.states));
  compactions.resize(size_t(sizes.states));
  folds.resize(size_t(sizes.states));
  svdDue.resize(size_t(sizes.states));
  readers.resize(size_t(sizes.states));
}

int64_t LayerState::leastBytes(const Device &device, const LayerManifest &manifest,
                               int32_t slots, bool denseFallback) {
  const LayerLayout sizes(manifest, slots, denseFallback);
  constexpr int64_t kEachSlot =
      sizeof(decodedTokens[0]) + sizeof(epochs[0]) + sizeof(slotLive[0]);
  constexpr int64_t kEachState = sizeof(blocks[0]) + sizeof(compactions[0]) +
                                 sizeof(folds[0]) + sizeof(svdDue[0]) +
                                 sizeof(readers[0]);
  int64_t bytes = sizes.fixedBytes(device) + slots * kEachSlot;
  if (!manifest.denseForm)
    bytes += sizes.states * (kEachState + sizes.classes.front() *
                                              (sizes.rowBytes() + int64_t(sizeof(float))));
  return bytes;
}

void LayerState::takeBuffers(std::byte *&next, int32_t slots) {
  count = DeviceArray<int32_t>(next, slots);
  bufferK = DeviceArray<float>(next, sizes.bufferKFloats);
  bufferU = DeviceArray<float>(next, sizes.bufferUFloats);
  bufferG = DeviceArray<float>(next, sizes.bufferGFloats);
}

void LayerState::reset(int32_t slot) {
  decodedTokens[size_t(slot)] = 0;
  const int64_t first = firstState(slot);
  if (layer->deferred)
    count[slot] = 0;
  if (layer->denseForm) {
    device->zero(denseOf(first), size_t(heads() * sizes.denseStateBytes()));
    return;
  }
  count[slot] = 0;
  for (int64_t state = first; state < first + heads(); ++state) {
    replaceBlock(state, RowBlock());
    rank[state] = 0;
    status[state] = 0;
    compactions[size_t(state)] = 0;
    folds[size_t(state)] = 0;
    svdDue[size_t(state)] = 0;
  }
}

void LayerState::beginRead(int64_t state, ReaderStage stage) {
  // A place for every block that may have to be parked: replaceBlock() cannot
  // fail.
  parked.reserve(parked.size() + readerCount + 1);
  readers[size_t(state)] = std::move(stage);
  ++readerCount;
}

void LayerState::endRead(int64_t state, const ReaderStage &stage) noexcept {
  if (readers[size_t(state)] == stage) {
    readers[size_t(state)] = nullptr;
    --readerCount;
  }
  freeParked();
}

bool LayerState::stopReading(int64_t state) noexcept {
  ReaderStage &reader = readers[size_t(state)];
  if (!reader)
    return true;
  ReadStage found = ReadStage::pending;
  const bool stopped =
      reader->compare_exchange_strong(found, ReadStage::cancelled) ||
      found != ReadStage::copying;
  if (stopped) {
    reader = nullptr;
    --readerCount;
  }
  return stopped;
}

void LayerState::freeParked() noexcept {
  std::erase_if(parked, [&](const Parked &p) {
    if (*p.stage == ReadStage::copying)
      return false;
    rowPool->free(p.block);
    return true;
  });
}

void LayerState::prepareWrite(int64_t state, int64_t rows) {
  if (owners(state) > 1 || (readers[size_t(state)] && !stopReading(state))) {
    try {
      moveRows(state, std::max(rows, capacityOf(state)));
    } catch (const std::exception &) {
      if (owners(state) > 1)
        throw;
      while (!stopReading(state)) // the copy of one state
        std::this_thread::yield();
    }
  }
  if (!parked.empty())
    freeParked();
}

void LayerState::fork(int32_t from, int32_t to) noexcept {
  const int64_t first = firstState(from), target = firstState(to);
  decodedTokens[size_t(to)] = decodedTokens[size_t(from)];
  if (layer->denseForm) {
    device->copy(denseOf(target), denseOf(first),
                 size_t(heads() * sizes.denseStateBytes()));
    if (!layer->deferred)
      return;
  }
  const auto slots = int64_t(decodedTokens.size());
  auto copySlot = [&](DeviceArray<float> &array, int64_t floats) {
    const int64_t each = floats / slots;
    device->copy(array.data() + to * each, array.data() + from * each,
                 size_t(each) * sizeof(float));
  };
  copySlot(bufferK, sizes.bufferKFloats);
  copySlot(bufferU, sizes.bufferUFloats);
  copySlot(bufferG, sizes.bufferGFloats);
  count[to] = count[from];
  if (layer->denseForm)
    return;
  for (int64_t i = 0; i < heads(); ++i) {
    const RowBlock block = blocks[size_t(first + i)];
    rowPool->share(block);
    replaceBlock(target + i, block);
    rank[target + i] = rank[first + i];
    status[target + i] = status[first + i];
    compactions[size_t(target + i)] = compactions[size_t(first + i)];
    folds[size_t(target + i)] = folds[size_t(first + i)];
    svdDue[size_t(target + i)] = svdDue[size_t(first + i)];
  }
}

void LayerState::replaceBlock(int64_t state, RowBlock block) noexcept {
  noteChange(int32_t(state / heads()));
  if (!parked.empty())
    freeParked();
  if (stopReading(state)) {
    rowPool->free(blocks[size_t(state)]);
  } else {
    parked.push_back({std::move(readers[size_t(state)]), blocks[size_t(state)]});
    --readerCount;
  }
  blocks[size_t(state)] = block;
  rowBase[state] = rowPool->base(block);
}

void LayerState::moveRows(int64_t state, int64_t rows) {
  RowBlock block = rowPool->allocate(rows);
  const int64_t base = rowPool->base(block);
  const int64_t weights = std::max(0, rank[state]);
  const int64_t bytes = isDense(state) ? sizes.denseStateBytes()
                                       : weights * sizes.rowBytes();
  device->copy(rowPool->rows() + base * sizes.rowBytes(), rowsOf(state),
               size_t(bytes));
  device->copy(rowPool->weights() + base, weightsOf(state),
               size_t(weights) * sizeof(float));
  replaceBlock(state, block);
}

void LayerState::ensureRows(int64_t state, int64_t rows) {
  if (rows > capacityOf(state))
    moveRows(state, rows);
}

void LayerState::shrinkRows(int64_t state, int64_t rows) noexcept {
  if (!blocks[size_t(state)].valid() ||
      rowPool->classFor(rows) >= blocks[size_t(state)].sizeClass)
    return;
  try {
    moveRows(state, rows);
    return;
  } catch (const std::exception &) {
    rowPool->releaseKept();
  }
  try {
    moveRows(state, rows);
  } catch (const std::exception &) {
    // No memory for the smaller block: the larger one serves as well.
  }
}

void LayerState::renewBlock(int64_t state, int64_t rows) noexcept {
  try {
    replaceBlock(state, rowPool->allocate(rows));
  } catch (const std::exception &) {
    // No memory for two blocks at a time.
  }
}

int64_t LayerState::liveBytes(int32_t slot) const {
  if (layer->denseForm)
    return heads() * sizes.liveBytes(-1, false);
  int64_t bytes = 0;
  const int64_t first = firstState(slot);
  for (int64_t state = first; state < first + heads(); ++state)
    bytes += sizes.liveBytes(
        rank[state], !hasSink.empty() && hasSink[size_t(state - first)]);
  return bytes;
}

void LayerState::noteLive(int32_t slot, bool inUse) noexcept {
  int64_t &noted = slotLive[size_t(slot)];
  const int64_t now = inUse ? liveBytes(slot) : 0;
  liveSum += now - noted;
  noted = now;
}

int64_t LayerState::allocatedBytes() const {
  return fixedBytes + (rowPool ? rowPool->heldBytes() : 0);
}

} // namespace sinkstate::runtime
