//===- CudaExchange.cpp - Slots of a GPU in and out -----------------------===//
//
// A fork copies on the device: a slot is some megabytes, which is a few
// microseconds of its bandwidth, and compactions rewrite every state of a slot
// within one buffer of tokens anyway.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"
#include "state/DeferredState.h"

#include <algorithm>
#include <numeric>

namespace sinkstate::runtime::cuda {

using HostPiece = PieceMover::HostPiece;

namespace {

std::byte *bytesOf(const void *memory) {
  return static_cast<std::byte *>(const_cast<void *>(memory));
}

/// The pairs of a slot in one layer's buffers, piece by piece, and where they
/// are in an image.
void addBuffered(std::vector<HostPiece> &pieces, CUdeviceptr buffer,
              int64_t firstOwner, int64_t owners, int64_t capacity,
              int64_t count, int64_t width, const std::vector<float> &image) {
  const int64_t bytes = count * width * 4;
  for (int64_t i = 0; i < owners; ++i)
    pieces.push_back(
        {buffer + CUdeviceptr((firstOwner + i) * capacity * width * 4),
         bytesOf(image.data()) + i * bytes, bytes});
}

/// ss::FrozenLayer::since of a slot with these states: the heads of a GPU's layer
/// are consolidated together.
int32_t sinceOf(const LayerImage &image, int32_t active) {
  constexpr uint32_t kMost = 1 << 24; // of a snapshot that counted further
  uint32_t compactions = 0;
  bool missing = false;
  for (const HeadImage &head : image.heads) {
    compactions = std::max(compactions, std::min(head.compactions, kMost));
    missing |= head.svdDue && head.rank > active;
  }
  return int32_t(2 * compactions + missing);
}

} // namespace

/// Blocks of at least `rows[i]` rows for states[i]; what they held is lost.
/// Returns their first rows. Whatever replaces the rows of a state from outside
/// a step gets them here.
std::vector<int64_t> CudaEngine::takeRows(int32_t index,
                                          std::span<const int32_t> states,
                                          std::span<const int64_t> rows,
                                          CUstream stream) {
  if (pools)
    return placeRows(index, states,
                     std::vector<int32_t>(rows.begin(), rows.end()), stream);
  const LayerPlaces &places = layout.layers[size_t(index)];
  std::vector<int64_t> bases;
  for (size_t i = 0; i < states.size(); ++i) {
    if (rows[i] > places.capacity)
      fail(SS_OUT_OF_MEMORY, rows[i], " rows for a state of layer '",
           manifest.layers[size_t(index)].name, "', expected at most ",
           places.capacity, ": create the engine with a larger row_capacity");
    bases.push_back(int64_t(states[i]) * places.capacity);
  }
  return bases;
}

/// Where consolidation keeps a slot's cadence in a layer; 0: nowhere.
CUdeviceptr CudaEngine::cadenceOf(size_t layer, int32_t slot) const {
  return consolidator ? consolidator->cadenceOf(layer, slot) : 0;
}

/// The tables of a slot in every layer, after everything that `stream` has.
std::vector<CudaEngine::SlotTables> CudaEngine::tablesOf(int32_t slot,
                                                         CUstream stream) {
  std::vector<SlotTables> tables(layout.layers.size());
  std::vector<HostPiece> pieces;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (manifest.layers[i].denseForm)
      continue;
    const LayerPlaces &places = layout.layers[i];
    const int64_t heads = manifest.layers[i].heads;
    auto add = [&](int64_t offset, auto &to, int64_t count) {
      to.resize(size_t(count));
      const int64_t bytes = count * int64_t(sizeof to[0]);
      pieces.push_back(
          {addressOf(offset + slot * bytes), bytesOf(to.data()), bytes});
    };
    add(places.rank, tables[i].rank, heads);
    add(places.status, tables[i].status, heads);
    if (layout.pooled)
      add(places.folds, tables[i].folds, heads);
    else
      tables[i].folds.resize(size_t(heads));
    add(places.rowBase, tables[i].rowBase, heads);
    add(places.count, tables[i].count, 1);
    tables[i].since.resize(1);
    if (const CUdeviceptr cadence = cadenceOf(i, slot))
      pieces.push_back({cadence, bytesOf(tables[i].since.data()),
                        int64_t(sizeof(int32_t))});
  }
  mover->download(pieces, stream);
  return tables;
}

/// Device memory of everything of one layer of a slot, and where an image has
/// it. `rowBase`: of the image's heads, which begin at `firstHead`; `stored`:
/// its rows or its dense form, as the device has them.
std::vector<HostPiece> CudaEngine::piecesOf(
    int32_t index, int32_t slot, const LayerImage &image, int64_t firstHead,
    int64_t firstKeyHead, std::span<const int64_t> rowBase,
    const std::byte *stored) const {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  const LayerShape &shape = image.shape;
  const int64_t first = int64_t(slot) * layer.heads + firstHead;
  const int64_t element = elementBytes(places.sizes.storage);
  std::vector<HostPiece> pieces;
  if (shape.denseForm) {
    const int64_t bytes = places.sizes.denseStateBytes();
    pieces.push_back({addressOf(places.dense + first * bytes),
                      bytesOf(stored), shape.heads * bytes});
    return pieces;
  }
  const float *weights = image.weights.data();
  for (size_t i = 0; i < image.heads.size(); ++i) {
    const HeadImage &head = image.heads[i];
    const int64_t bytes = head.storedFloats(shape) * element;
    pieces.push_back(
        {addressOf(places.rows + rowBase[i] * places.sizes.rowBytes()),
         bytesOf(stored), bytes});
    pieces.push_back({addressOf(places.weights + rowBase[i] * 4),
                      bytesOf(weights), head.components() * 4});
    stored += bytes;
    weights += head.components();
  }
  const int64_t capacity = layer.buffer + layer.draft;
  addBuffered(pieces, addressOf(places.bufferU), first, shape.heads, capacity,
           image.count, shape.dv, image.bufferU);
  addBuffered(pieces, addressOf(places.bufferG), first, shape.heads, capacity,
           image.count, shape.decayFloats(), image.bufferG);
  addBuffered(pieces, addressOf(places.bufferK),
           int64_t(slot) * layer.keyHeads + firstKeyHead, shape.keyHeads,
           capacity, image.count, shape.dk, image.bufferK);
  return pieces;
}

SlotImage CudaEngine::exportSlot(int32_t slot, bool contents, Stream given) {
  const auto stream = static_cast<CUstream>(given);
  checkNoCapture(stream);
  checkBetweenSteps(slot);
  CurrentContext current(*context);
  const std::vector<SlotTables> tables = tablesOf(slot, stream);
  SlotImage image;
  image.roundingKey = requestKeys[size_t(slot)];
  image.fingerprint = manifest.fingerprint;
  std::vector<std::vector<std::byte>> stored(tables.size());
  std::vector<HostPiece> pieces = {
      {addressOf(layout.position + slot * int64_t(sizeof(int64_t))),
       bytesOf(&image.position), sizeof image.position}};
  for (size_t i = 0; i < tables.size(); ++i) {
    refuseDeferred(manifest.layers[i]);
    LayerImage &out = image.layers.emplace_back();
    out.shape = LayerShape::of(manifest.layers[i]);
    out.storage = layout.layers[i].sizes.storage;
    if (!out.shape.denseForm)
      out.count = tables[i].count[0];
    for (size_t head = 0; head < tables[i].rank.size(); ++head) {
      const int32_t rank = tables[i].rank[head], since = tables[i].since[0];
      out.heads.push_back({rank, tables[i].status[head], uint32_t(since / 2),
                           uint32_t(tables[i].folds[head]),
                           since % 2 != 0 && rank > manifest.layers[i].active});
    }
    out.noteSinks(sinks[i]);
    if (!contents)
      continue;
    const LayerShape &shape = out.shape;
    const int64_t floats = shape.denseForm
                               ? shape.heads * shape.denseFloats()
                               : out.storedFloats();
    stored[i].resize(size_t(
        floats * elementBytes(layout.layers[i].sizes.storage)));
    out.weights.resize(size_t(out.components()));
    out.bufferK.resize(size_t(shape.keyHeads * out.count * shape.dk));
    out.bufferU.resize(size_t(shape.heads * out.count * shape.dv));
    out.bufferG.resize(size_t(shape.heads * out.count * shape.decayFloats()));
    const auto some = piecesOf(int32_t(i), slot, out, 0, 0, tables[i].rowBase,
                               stored[i].data());
    pieces.insert(pieces.end(), some.begin(), some.end());
  }
  mover->download(pieces, stream);
  for (size_t i = 0; contents && i < tables.size(); ++i) {
    const Storage storage = layout.layers[i].sizes.storage;
    LayerImage &out = image.layers[i];
    std::vector<float> &to = out.shape.denseForm ? out.dense : out.rows;
    to.resize(stored[i].size() / size_t(elementBytes(storage)));
    loadElements(storage, to.data(), stored[i].data(), int64_t(to.size()));
  }
  return image;
}

/// Blocks for states of these ranks (-1: dense), with room for the buffer.
std::vector<int64_t> CudaEngine::rowsFor(int32_t index,
                                         std::span<const int32_t> states,
                                         std::span<const int32_t> rank,
                                         CUstream stream) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  std::vector<int64_t> rows;
  for (int64_t stored : rank) {
    const int64_t wanted = std::min<int64_t>(
        stored + layer.buffer + layer.draft, places.capacity);
    rows.push_back(stored < 0 ? places.sizes.denseRows
                              : std::max(wanted, stored));
  }
  return takeRows(index, states, rows, stream);
}

/// The states of a layer from `first` on.
static std::vector<int32_t> statesFrom(int64_t first, size_t count) {
  std::vector<int32_t> states(count);
  std::iota(states.begin(), states.end(), int32_t(first));
  return states;
}

void CudaEngine::importSlot(int32_t slot, int64_t position,
                            std::span<const PlacedLayer> placed,
                            Stream given) {
  const auto stream = static_cast<CUstream>(given);
  checkBetweenSteps(slot);
  CurrentContext current(*context);
  for (const LayerManifest &layer : manifest.layers)
    refuseDeferred(layer);
  noteNewRows(slot, stream);
  std::vector<std::vector<std::byte>> stored(placed.size());
  std::vector<SlotTables> tables(placed.size());
  std::vector<HostPiece> pieces = {
      {addressOf(layout.position + slot * int64_t(sizeof(int64_t))),
       bytesOf(&position), sizeof position}};
  for (size_t i = 0; i < placed.size(); ++i) {
    const LayerPlaces &places = layout.layers[i];
    const LayerImage &image = placed[i].image;
    SlotTables &table = tables[i];
    const int64_t first =
        int64_t(slot) * manifest.layers[i].heads + placed[i].firstHead;
    const std::vector<float> &floats =
        image.shape.denseForm ? image.dense : image.rows;
    stored[i].resize(floats.size() *
                     size_t(elementBytes(places.sizes.storage)));
    storeElements(places.sizes.storage, stored[i].data(), floats.data(),
                  int64_t(floats.size()));
    for (const HeadImage &head : image.heads) {
      table.rank.push_back(head.rank);
      table.status.push_back(head.status);
      table.folds.push_back(int32_t(head.folds));
    }
    table.count = {image.count};
    table.since = {sinceOf(image, manifest.layers[i].active)};
    if (!image.shape.denseForm) {
      table.rowBase = rowsFor(
          int32_t(i), statesFrom(first, table.rank.size()), table.rank,
          stream);
      const int64_t bytes = int64_t(table.rank.size()) * 4;
      pieces.push_back({addressOf(places.rank + first * 4),
                        bytesOf(table.rank.data()), bytes});
      pieces.push_back({addressOf(places.status + first * 4),
                        bytesOf(table.status.data()), bytes});
      if (layout.pooled)
        pieces.push_back({addressOf(places.folds + first * 4),
                          bytesOf(table.folds.data()), bytes});
      pieces.push_back({addressOf(places.count + slot * 4),
                        bytesOf(table.count.data()), 4});
      if (const CUdeviceptr cadence = cadenceOf(i, slot))
        pieces.push_back({cadence, bytesOf(table.since.data()), 4});
    }
    const auto some =
        piecesOf(int32_t(i), slot, image, placed[i].firstHead,
                 placed[i].firstKeyHead, table.rowBase, stored[i].data());
    pieces.insert(pieces.end(), some.begin(), some.end());
  }
  mover->upload(pieces, stream);
}

/// Everything of a slot's layer that does not depend on where rows are.
void CudaEngine::addForkedTables(size_t index, int32_t from, int32_t to,
                                 std::vector<PieceMover::Copy> &pieces) const {
  const LayerManifest &layer = manifest.layers[index];
  const LayerPlaces &places = layout.layers[index];
  auto add = [&](int64_t offset, int64_t bytes) {
    pieces.push_back({addressOf(offset + from * bytes),
                      addressOf(offset + to * bytes), bytes});
  };
  if (layer.denseForm) {
    add(places.dense, layer.heads * places.sizes.denseStateBytes());
    if (!layer.deferred)
      return;
  } else {
    add(places.rank, layer.heads * 4);
    add(places.status, layer.heads * 4);
    if (layout.pooled)
      add(places.folds, layer.heads * 4);
    if (const CUdeviceptr cadence = cadenceOf(index, from))
      pieces.push_back({cadence, cadenceOf(index, to), 4});
  }
  add(places.count, 4);
  const int64_t slots = places.sizes.states / layer.heads;
  add(places.bufferK, places.sizes.bufferKFloats / slots * 4);
  add(places.bufferU, places.sizes.bufferUFloats / slots * 4);
  add(places.bufferG, places.sizes.bufferGFloats / slots * 4);
}

void CudaEngine::fork(int32_t from, int32_t to, Stream given) {
  const auto stream = static_cast<CUstream>(given);
  checkNoCapture(stream);
  checkBetweenSteps(from);
  checkBetweenSteps(to);
  if (from == to)
    fail(SS_INVALID_ARGUMENT, "slot ", from,
         " is forked to itself, expected another slot");
  CurrentContext current(*context);
  const std::vector<SlotTables> tables = tablesOf(from, stream);
  resetStates(to, stream);
  try {
    copySlot(from, to, tables, stream);
  } catch (const Failure &) {
    resetStates(to, stream);
    throw;
  }
}

void CudaEngine::copySlot(int32_t from, int32_t to,
                          const std::vector<SlotTables> &tables,
                          CUstream stream) {
  std::vector<PieceMover::Copy> pieces;
  for (int64_t table : {layout.position, layout.requestKeys})
    pieces.push_back({addressOf(table + from * int64_t(sizeof(int64_t))),
                      addressOf(table + to * int64_t(sizeof(int64_t))),
                      sizeof(int64_t)});
  for (size_t i = 0; i < tables.size(); ++i) {
    addForkedTables(i, from, to, pieces);
    const LayerManifest &layer = manifest.layers[i];
    const LayerPlaces &places = layout.layers[i];
    if (layer.denseForm)
      continue;
    const std::vector<int64_t> bases =
        rowsFor(int32_t(i),
                statesFrom(int64_t(to) * layer.heads, tables[i].rank.size()),
                tables[i].rank, stream);
    for (size_t head = 0; head < bases.size(); ++head) {
      const int64_t rank = tables[i].rank[head];
      const int64_t rowBytes = places.sizes.rowBytes();
      const int64_t there = tables[i].rowBase[head], here = bases[head];
      pieces.push_back({addressOf(places.rows + there * rowBytes),
                        addressOf(places.rows + here * rowBytes),
                        rank < 0 ? places.sizes.denseStateBytes()
                                 : rank * rowBytes});
      pieces.push_back({addressOf(places.weights + there * 4),
                        addressOf(places.weights + here * 4),
                        std::max<int64_t>(rank, 0) * 4});
    }
  }
  mover->copy(pieces, stream);
  requestKeys[size_t(to)] = requestKeys[size_t(from)];
}

} // namespace sinkstate::runtime::cuda
