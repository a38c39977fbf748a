//===- CudaMemoryParts.cpp - What the memory on a GPU is for --------------===//

#include "cuda/CudaEngine.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {

/// The rows of a layer's states; `blockBytes`: of the blocks that they have.
void CudaEngine::addRows(MemoryParts &parts, size_t index,
                         int64_t &blockBytes) const {
  const LayerManifest &layer = manifest.layers[index];
  const LayerPlaces &places = layout.layers[index];
  const LayerLayout &sizes = places.sizes;
  const int64_t rowBytes = sizes.rowBytes() + int64_t(sizeof(float));
  const std::vector<int32_t> rank = wholeTable(places.rank, sizes.states),
                             capacity = wholeTable(places.rowCapacity, sizes.states);
  int64_t stored = 0, pairRows = 0, blocks = 0;
  for (int64_t state = 0; state < sizes.states; ++state) {
    const int64_t rows = capacity[size_t(state)], r = rank[size_t(state)];
    blocks += rows * rowBytes;
    if (!inUse[size_t(state / layer.heads)])
      continue;
    stored += sizes.storedBytes(r);
    // What the next compaction may leave, as far as there is room for it.
    const int64_t most = std::min<int64_t>(layer.rank, r + layer.buffer + layer.draft);
    if (r >= 0)
      pairRows += std::max<int64_t>(0, std::min(rows, most) - r) * rowBytes;
  }
  parts.add(purpose::kComponents, stored);
  if (!pools)
    return parts.add(purpose::kFixedRows, blocks - stored);
  parts.add(purpose::kPairRows, pairRows);
  parts.add(purpose::kCapacities, blocks - stored - pairRows);
  blockBytes += blocks;
}

MemoryParts CudaEngine::memoryParts() const {
  CurrentContext current(*context);
  waitForAll();
  MemoryParts parts;
  int64_t blocks = 0, ofStates = 0;
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerLayout &sizes = layout.layers[i].sizes;
    constexpr int64_t kFloat = sizeof(float);
    if (!manifest.layers[i].denseForm)
      addRows(parts, i, blocks);
    const int64_t dense =
        sizes.denseFormFloats * elementBytes(sizes.storage);
    parts.add(purpose::kComponents, dense);
    parts.add(purpose::kKeys, sizes.bufferKFloats * kFloat);
    parts.add(purpose::kValues, sizes.bufferUFloats * kFloat);
    parts.add(purpose::kDecays, sizes.bufferGFloats * kFloat);
    ofStates += dense + (sizes.bufferKFloats + sizes.bufferUFloats +
                         sizes.bufferGFloats) * kFloat;
    if (!pools && !manifest.layers[i].denseForm)
      ofStates += sizes.states * layout.layers[i].capacity * (sizes.rowBytes() + kFloat);
  }
  if (pools) {
    const RowPools::Usage usage = pools->usage();
    parts.add(purpose::kLeftBlocks, usage.blocks - blocks);
    parts.add(purpose::kFreeBlocks, usage.chunks - usage.blocks);
    parts.add(purpose::kToCome, usage.mapped - usage.chunks);
    parts.add(purpose::kUnits,
              pools->heldBytes() - pools->tableBytes() - usage.mapped);
    parts.add(purpose::kPoolTables, pools->tableBytes());
  }
  const int64_t inspection = layout.inspectionBytes();
  parts.add(purpose::kTables, layout.bytes - ofStates - inspection);
  parts.add(purpose::kInspection, inspection);
  if (consolidator)
    parts.add(purpose::kConsolidation, consolidator->bytes());
  return parts;
}

} // namespace sinkstate::runtime::cuda
