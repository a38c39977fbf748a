//===- LayerShape.cpp - sizes of a layer's states -------------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "LayerShape.h"
#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>

namespace sinkstate {

LayerShape LayerShape::of(ss::StateType type) {
  const ss::LayerTypeInfo &info = type.getInfo();
  LayerShape shape;
  shape.heads = type.getHeads();
  shape.keyHeads = type.getKeyHeads();
  shape.dv = type.getDv();
  shape.dk = type.getDk();
  shape.active = type.getActive();
  shape.capacity = type.getBufferRows();
  shape.rankBound = type.getRank();
  shape.channelDecay = info.channelDecay;
  shape.delta = info.theta != 0;
  shape.hasBeta = info.hasBeta;
  shape.form = type.getForm();
  shape.storage = type.getStorage();
  shape.sink = type.isSink();
  shape.stochastic = type.getRounding() == ss::Rounding::stochastic;
  return shape;
}

mlir::Type LayerShape::storageType(mlir::MLIRContext *context) const {
  switch (storage) {
  case ss::Storage::f32:
    return mlir::Float32Type::get(context);
  case ss::Storage::f16:
    return mlir::Float16Type::get(context);
  case ss::Storage::bf16:
    return mlir::BFloat16Type::get(context);
  case ss::Storage::fp8:
    return mlir::Float8E4M3FNType::get(context);
  }
  llvm_unreachable("every storage is handled");
}

int64_t largestDivisor(int64_t size, int64_t wanted) {
  int64_t divisor = std::min(size, wanted);
  while (size % divisor != 0)
    --divisor;
  return divisor;
}

} // namespace sinkstate
