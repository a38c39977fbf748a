//===- CudaTypes.cpp - Tiles and scratch in CUDA C++ ----------------------===//

#include "codegen/cuda/CudaTypes.h"
#include "codegen/common/CppExpr.h"
#include "passes/ssk/LaneLayout.h"

using namespace mlir;
using namespace sinkstate;

SmallVector<int64_t> cuda::getRegisterShape(ssk::TileType type) {
  SmallVector<int64_t> shape(type.getShape());
  if (type.hasLanes())
    shape[type.getLanes()] = ssk::getLaneSize(shape[type.getLanes()]);
  return shape;
}

std::string cuda::getExtents(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += "[" + std::to_string(extent) + "]";
  return text;
}

int64_t cuda::getElementBytes(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

StringRef cuda::getAccessType(Type element, int64_t count) {
  int64_t bytes = getElementBytes(element) * count;
  if (count == 1)
    return codegen::getCppScalarType(element);
  if (element.isF32())
    return bytes == 16 ? "float4" : "float2";
  if (element.isF64())
    return "double2";
  if (element.isInteger(64))
    return "longlong2";
  if (element.isInteger(32))
    return bytes == 16 ? "int4" : "int2";
  return bytes == 16  ? "uint4"
         : bytes == 8 ? "uint2"
         : bytes == 4 ? "uint32_t"
                      : "uint16_t";
}
