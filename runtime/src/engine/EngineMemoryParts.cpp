//===- EngineMemoryParts.cpp - What the memory of the CPU's engine is for -===//

#include "engine/Engine.h"

#include <set>

namespace sinkstate::runtime {

MemoryParts Engine::memoryParts() const {
  MemoryParts parts;
  for (const LayerState &layer : layers) {
    const LayerLayout &sizes = layer.layout();
    constexpr int64_t kFloat = sizeof(float);
    const int64_t rowBytes = sizes.rowBytes() + kFloat;
    const int64_t dense = sizes.denseFormFloats * elementBytes(sizes.storage);
    int64_t stored = 0, blocks = 0;
    std::set<int64_t> counted; // first rows of blocks that forks share
    for (int64_t state = 0; !layer.manifest().denseForm && state < sizes.states;
         ++state) {
      if (layer.owners(state) > 1 && !counted.insert(layer.rowBase[state]).second)
        continue;
      blocks += layer.capacityOf(state) * rowBytes;
      if (slots[size_t(state / layer.heads())].inUse)
        stored += layer.rowBytes(state);
    }
    const int64_t buffers = (sizes.bufferKFloats + sizes.bufferUFloats +
                             sizes.bufferGFloats) * kFloat;
    parts.add(purpose::kComponents, stored + dense);
    parts.add(purpose::kKeys, sizes.bufferKFloats * kFloat);
    parts.add(purpose::kValues, sizes.bufferUFloats * kFloat);
    parts.add(purpose::kDecays, sizes.bufferGFloats * kFloat);
    parts.add(purpose::kCapacities, blocks - stored);
    // Whole pages, and what is kept to be used again.
    parts.add(purpose::kFreeBlocks,
              layer.allocatedBytes() - layer.tableBytes() - blocks);
    parts.add(purpose::kTables, layer.tableBytes() - buffers - dense);
  }
  return parts;
}

} // namespace sinkstate::runtime
