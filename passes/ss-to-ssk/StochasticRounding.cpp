//===- StochasticRounding.cpp - random bits and what they round -----------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// Bits of an element are a hash of its place, and every step of the rounding is
// exact in f32: back ends agree bit for bit.
//
//===----------------------------------------------------------------------===//
#include "RandomBits.h"
#include "StateTables.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

StochasticRounding::StochasticRounding(KernelBuilder &k, ss::Storage storage,
                                       Value key)
    : k(k), scale(1), low(k.lowHalf(key)), high(k.highHalf(key)) {
  switch (storage) {
  case ss::Storage::f32: // verifiers refuse it
  case ss::Storage::bf16:
    lostBits = 16;
    smallest = 0;
    break;
  case ss::Storage::f16:
    lostBits = 13;
    smallest = 0x1p-14;
    break;
  case ss::Storage::fp8:
    lostBits = 20;
    smallest = 0x1p-6;
    scale = kByteScale;
    break;
  }
}

Value StochasticRounding::mixKey(KernelBuilder &k, Value request,
                                 Value position, Value layer, Value head) {
  Value z = splitmix64(k, request);
  z = splitmix64(k, k.bitXor(z, position));
  // Both below 2^31.
  Value place = k.add(k.mul(k.toI64(k.toIndex(layer)), k.integer64(1ull << 31)),
                      k.toI64(head));
  return splitmix64(k, k.bitXor(z, place));
}

Value StochasticRounding::keyOfRow(Value row) {
  return k.add(hash32(k, k.bitXor(low, k.mul(row, k.integer(int32_t(0x9e3779b9))))),
               high);
}

/// Adds random bits below the storage's last one and cuts them off. Below its
/// smallest normal number the storage has steps of one length, which are those
/// of f32 just above that number: it is added before and subtracted after.
Value StochasticRounding::roundElement(Value x, Value random) {
  Value bits = k.bitcast(k.i32(), x);
  Value magnitude = k.bitAnd(bits, k.integer(0x7fffffff));
  const int32_t lost = (1 << lostBits) - 1;
  Value size = k.bitcast(k.f32(), magnitude), offset;
  if (smallest > 0) {
    offset = k.select(k.less(size, k.real(smallest)), k.real(smallest),
                      k.real(0));
    size = k.add(size, offset);
  }
  Value sum = k.add(k.bitcast(k.i32(), size),
                    k.bitAnd(random, k.integer(lost)));
  Value rounded = k.bitcast(k.f32(), k.bitAnd(sum, k.integer(~lost)));
  if (offset)
    rounded = k.sub(rounded, offset);
  Value sign = k.bitAnd(bits, k.integer(INT32_MIN));
  Value result = k.bitcast(k.f32(), k.bitOr(k.bitcast(k.i32(), rounded), sign));
  Value isFinite = k.less(magnitude, k.integer(0x7f800000));
  return k.select(isFinite, result, x);
}

Value StochasticRounding::round(Value tile, Value row, int64_t column) {
  auto type = cast<ssk::TileType>(tile.getType());
  const bool twoD = type.getRank() == 2;
  const int64_t columns = type.getShape().back();
  auto numbersOf = [&](int64_t count, bool overLanes) {
    return k.iota(overLanes ? k.lanes({count}, k.i32())
                            : k.replicated({count}, k.i32()));
  };
  Value elements = k.name(
      "elements", numbersOf(columns, type.getLanes() == type.getRank() - 1));
  Values inputs = {tile, elements};
  SmallVector<SmallVector<int64_t>> dims = {{0}, {0}};
  Value rowKey, first = k.toI32(row);
  if (twoD) {
    const int64_t rows = type.getShape().front();
    Value keys = k.map(k.replicated({rows}, k.i32()), numbersOf(rows, false),
                       [&](ValueRange e) {
                         return keyOfRow(k.add(e[0], first));
                       });
    inputs.push_back(k.name("row_keys", keys));
    dims = {{0, 1}, {1}, {0}};
  } else {
    rowKey = k.name("row_key", keyOfRow(first));
  }
  return k.name(
      "randomly_rounded", k.map(type, inputs, dims, [&](ValueRange e) {
        Value element = k.add(e[1], k.integer(int32_t(column)));
        Value random = hash32(
            k, k.bitXor(placeBits(k, element), twoD ? e[2] : rowKey));
        Value x = scale == 1 ? e[0] : k.mul(e[0], k.constant("row_scale", scale));
        Value rounded = roundElement(x, random);
        return scale == 1 ? rounded : k.mul(rounded, k.constant("row_unit", 1 / scale));
      }));
}

} // namespace sinkstate
