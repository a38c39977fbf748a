//===- TileLayout.cpp - how a tile is spread over SIMD vectors ------------===//
#include "codegen/cpu/TileLayout.h"

using namespace mlir;
using namespace sinkstate::cpu;

SmallVector<Chunk> sinkstate::cpu::splitIntoChunks(int64_t extent,
                                                   int64_t vectorWidth) {
  SmallVector<Chunk> chunks;
  int64_t offset = 0;
  for (int64_t width = vectorWidth; width >= 1; width /= 2)
    for (; extent - offset >= width; offset += width)
      chunks.push_back({offset, width});
  return chunks;
}

Type sinkstate::cpu::getCpuElementType(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8)
    return IntegerType::get(element.getContext(), 8);
  return element;
}

TileLayout::TileLayout(ssk::TileType type, int64_t vectorWidth) : type(type) {
  if (!type.hasLanes()) {
    rows = type.getNumElements();
    chunks.push_back({0, 1});
    return;
  }
  int64_t extent = type.getShape()[type.getLanes()];
  rows = type.getNumElements() / extent;
  chunks = splitIntoChunks(extent, vectorWidth);
}

Type TileLayout::getPartType(size_t chunk) const {
  Type element = getCpuElementType(type.getElementType());
  int64_t width = chunks[chunk].width;
  return width == 1 ? element : VectorType::get({width}, element);
}

SmallVector<int64_t, 2> TileLayout::getCoordinates(int64_t row,
                                                   int64_t lane) const {
  if (!type.hasLanes()) {
    if (type.getRank() == 1)
      return {row};
    int64_t columns = type.getShape()[1];
    return {row / columns, row % columns};
  }
  if (type.getRank() == 1)
    return {lane};
  if (type.getLanes() == 1)
    return {row, lane};
  return {lane, row};
}
