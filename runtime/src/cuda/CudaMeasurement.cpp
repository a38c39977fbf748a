//===- CudaMeasurement.cpp - States that come back ------------------------===//

#include "cuda/CudaEngine.h"

namespace sinkstate::runtime::cuda {

static CUstream asStream(Stream stream) {
  return static_cast<CUstream>(stream);
}

void CudaEngine::launchDecodes(std::span<const int32_t> slots,
                               std::span<const ss_decode_args> args,
                               Stream stream) {
  CurrentContext current(*context);
  beginAfter(asStream(stream));
  stepOrdered = hasOrder(int32_t(slots.size()));
  if (stepOrdered)
    bookkeeping->order(schedule(), slots, asStream(stream));
  stepBatch = int32_t(slots.size());
  for (size_t layer = 0; layer < args.size(); ++layer)
    launchDecode(int32_t(layer), args[layer]);
  stepBatch = 0;
}

std::vector<int64_t> CudaEngine::giveBlocks(int32_t layer,
                                            std::span<const int32_t> states,
                                            std::span<const int32_t> rows,
                                            Stream stream) {
  CurrentContext current(*context);
  return placeRows(layer, states, rows, asStream(stream));
}

std::vector<RowPools::Span> CudaEngine::keepTables() {
  std::vector<RowPools::Span> spans;
  auto add = [&](int64_t offset, int64_t count, size_t elementBytes) {
    spans.push_back({addressOf(offset), size_t(count) * elementBytes});
  };
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerPlaces &places = layout.layers[i];
    const int64_t states = places.sizes.states;
    if (manifest.layers[i].hasBuffer())
      add(places.count, slotCount, sizeof(int32_t));
    if (manifest.layers[i].denseForm)
      continue;
    for (int64_t table : {places.rank, places.status, places.rowCapacity})
      add(table, states, sizeof(int32_t));
    add(places.rowBase, states, sizeof(int64_t));
    if (!pools)
      continue;
    for (int64_t table : {places.folds, places.noted, places.last})
      add(table, states, sizeof(int32_t));
    add(places.lastCount, 1, sizeof(int32_t));
  }
  add(layout.position, slotCount, sizeof(int64_t));
  if (pools)
    for (const RowPools::Span &span : pools->keepTables())
      spans.push_back(span);
  return spans;
}

void CudaEngine::tablesCameBack(Stream stream) const {
  CurrentContext current(*context);
  for (int32_t slot = 0; slot < slotCount; ++slot)
    if (inUse[size_t(slot)])
      noteNewRows(slot, asStream(stream));
}

void CudaEngine::reportRoom(Stream stream) const {
  if (!pools)
    return;
  CurrentContext current(*context);
  pools->report(asStream(stream));
  synchronizeStream(asStream(stream));
}

void CudaEngine::copyPieces(const ss::Piece *pieces, int64_t count,
                            Stream stream) const {
  CurrentContext current(*context);
  handOver->copyPieces(pieces, count, asStream(stream));
}

} // namespace sinkstate::runtime::cuda
