//===- LowerCompute.cpp - arithmetic on tiles -----------------------------===//
//
// Every reduction is a fixed tree, written out: chunk by chunk into one
// accumulator per row, then halves of the accumulator down to one element.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/KernelLowering.h"
#include "codegen/cpu/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

void KernelLowering::bindTile(Value tile, Parts parts) {
  tiles[tile] = std::move(parts);
}

void KernelLowering::lowerSplat(ssk::SplatOp op) {
  TileLayout layout(op.getResult().getType(), vectorWidth);
  Value scalar = values.lookup(op.getValue());
  Parts row, parts;
  for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk)
    row.push_back(createBroadcast(layout.getPartType(chunk), scalar));
  for (int64_t i = 0; i < layout.rows; ++i)
    llvm::append_range(parts, row);
  bindTile(op.getResult(), std::move(parts));
}

void KernelLowering::lowerIota(ssk::IotaOp op) {
  TileLayout layout(op.getResult().getType(), vectorWidth);
  Parts parts;
  for (int64_t row = 0; row < layout.rows; ++row)
    for (auto [index, chunk] : llvm::enumerate(layout.chunks)) {
      const int64_t first = layout.getCoordinates(row, chunk.offset).front();
      auto type = dyn_cast<VectorType>(layout.getPartType(index));
      if (!type) {
        parts.push_back(createI32(int32_t(first)));
        continue;
      }
      SmallVector<int32_t> numbers;
      for (int64_t i = 0; i < chunk.width; ++i)
        numbers.push_back(int32_t(first + i));
      parts.push_back(arith::ConstantOp::create(
          builder, loc, DenseIntElementsAttr::get(type, numbers)));
    }
  bindTile(op.getResult(), std::move(parts));
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

Value KernelLowering::getMapInput(ssk::MapOp op, unsigned input,
                                  const TileLayout &result, int64_t row,
                                  size_t chunk) {
  Value tile = op.getInputs()[input];
  TileLayout layout(cast<ssk::TileType>(tile.getType()), vectorWidth);
  const Parts &parts = tiles[tile];
  SmallVector<int64_t> dims = op.getInputDims(input);
  SmallVector<int64_t, 2> at = result.getCoordinates(row, 0);
  if (layout.type.hasLanes()) {
    // The same chunk; its row is the coordinate that is not over the lanes.
    int64_t inputRow = layout.type.getRank() == 2 ? row : 0;
    return parts[layout.partIndex(inputRow, chunk)];
  }
  int64_t element = at[dims[0]];
  if (dims.size() == 2)
    element = element * layout.type.getShape()[1] + at[dims[1]];
  Value scalar = parts[element];
  // Operands may have another element type than the result.
  auto vector = dyn_cast<VectorType>(result.getPartType(chunk));
  return vector ? createBroadcast(VectorType::get(vector.getShape(),
                                                  scalar.getType()),
                                  scalar)
                : scalar;
}

LogicalResult KernelLowering::lowerMapBody(ssk::MapOp op, Type partType,
                                           ArrayRef<Value> inputs,
                                           Value &result) {
  Block &body = op.getBody().front();
  IRMapping mapping;
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    mapping.map(argument, input);
  auto lookup = [&](Value value) {
    Value found = mapping.lookupOrNull(value);
    return found ? found : values.lookupOrNull(value);
  };
  auto widen = [&](Value value) -> Value {
    if (!isa<VectorType>(partType) || isa<VectorType>(value.getType()))
      return value;
    auto type =
        VectorType::get(cast<VectorType>(partType).getShape(), value.getType());
    return createBroadcast(type, value);
  };
  for (Operation &inner : body.without_terminator()) {
    SmallVector<Value> operands;
    bool isVector = false;
    for (Value operand : inner.getOperands()) {
      operands.push_back(lookup(operand));
      isVector |= isa<VectorType>(operands.back().getType());
    }
    Type type = getCpuElementType(inner.getResult(0).getType());
    if (isVector) {
      type = VectorType::get(cast<VectorType>(partType).getShape(), type);
      for (Value &operand : operands)
        operand = widen(operand);
    }
    Value value;
    if (failed(createElementwise(builder, inner, operands, type, convertsHalf(),
                                 value)))
      return failure();
    mapping.map(inner.getResult(0), value);
  }
  result = widen(lookup(op.getYielded()));
  return success();
}

LogicalResult KernelLowering::lowerMap(ssk::MapOp op) {
  TileLayout layout(op.getResult().getType(), vectorWidth);
  Parts parts;
  for (int64_t row = 0; row < layout.rows; ++row)
    for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk) {
      SmallVector<Value> inputs;
      for (unsigned input = 0; input < op.getInputs().size(); ++input)
        inputs.push_back(getMapInput(op, input, layout, row, chunk));
      Value result;
      if (failed(lowerMapBody(op, layout.getPartType(chunk), inputs, result)))
        return failure();
      parts.push_back(result);
    }
  bindTile(op.getResult(), std::move(parts));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value KernelLowering::combine(ssk::ReduceKind kind, Value lhs, Value rhs) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(lhs.getType()));
  switch (kind) {
  case ssk::ReduceKind::Add:
    if (isFloat)
      return arith::AddFOp::create(builder, loc, lhs, rhs);
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  case ssk::ReduceKind::Max:
    if (isFloat)
      return arith::MaxNumFOp::create(builder, loc, lhs, rhs);
    return arith::MaxSIOp::create(builder, loc, lhs, rhs);
  case ssk::ReduceKind::Min:
    if (isFloat)
      return arith::MinNumFOp::create(builder, loc, lhs, rhs);
    return arith::MinSIOp::create(builder, loc, lhs, rhs);
  }
  return Value();
}

Value KernelLowering::foldHalf(ssk::ReduceKind kind, Value vector) {
  int64_t half = cast<VectorType>(vector.getType()).getDimSize(0) / 2;
  if (half == 1)
    return combine(kind, vector::ExtractOp::create(builder, loc, vector, 0),
                   vector::ExtractOp::create(builder, loc, vector, 1));
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < half; ++i) {
    low.push_back(i);
    high.push_back(i + half);
  }
  return combine(kind,
                 vector::ShuffleOp::create(builder, loc, vector, vector, low),
                 vector::ShuffleOp::create(builder, loc, vector, vector, high));
}

/// The elements of the low or high halves of the segments of a vector pair;
/// a vector of `width` elements holds segments of `segment` elements.
static SmallVector<int64_t> selectHalves(int64_t width, int64_t segment,
                                         int64_t vectors, bool high) {
  SmallVector<int64_t> mask;
  for (int64_t start = 0; start < width * vectors; start += segment)
    for (int64_t i = 0; i < segment / 2; ++i)
      mask.push_back(start + i + (high ? segment / 2 : 0));
  return mask;
}

/// Folds a power of two of vectors at the same time: each step halves the
/// segment that belongs to a vector and packs two vectors into one, so that
/// four vectors of 16 take 10 shuffles and not 16. Each result is the same as
/// that of folding its vector alone by halves.
KernelLowering::Parts KernelLowering::foldGroup(ssk::ReduceKind kind,
                                                ArrayRef<Value> group) {
  Parts vectors(group);
  int64_t width = cast<VectorType>(group[0].getType()).getDimSize(0);
  int64_t segment = width;
  auto fold = [&](Value first, Value second, int64_t count) {
    int64_t held = cast<VectorType>(first.getType()).getDimSize(0);
    return combine(
        kind,
        vector::ShuffleOp::create(builder, loc, first, second,
                                  selectHalves(held, segment, count, false)),
        vector::ShuffleOp::create(builder, loc, first, second,
                                  selectHalves(held, segment, count, true)));
  };
  while (vectors.size() > 1) {
    Parts packed;
    for (size_t i = 0; i < vectors.size(); i += 2)
      packed.push_back(fold(vectors[i], vectors[i + 1], 2));
    vectors = packed;
    segment /= 2;
  }
  Value last = vectors[0];
  if (group.size() == 1) {
    while (isa<VectorType>(last.getType()))
      last = foldHalf(kind, last);
    return {last};
  }
  for (; segment > 1; segment /= 2)
    last = fold(last, last, 1);
  Parts scalars;
  for (size_t i = 0; i < group.size(); ++i)
    scalars.push_back(vector::ExtractOp::create(builder, loc, last, i));
  return scalars;
}

KernelLowering::Parts KernelLowering::foldVectors(ssk::ReduceKind kind,
                                                  ArrayRef<Value> vectors) {
  auto type = dyn_cast<VectorType>(vectors[0].getType());
  if (!type)
    return Parts(vectors);
  Parts scalars;
  while (!vectors.empty()) {
    size_t group = type.getDimSize(0);
    while (group > vectors.size())
      group /= 2;
    llvm::append_range(scalars, foldGroup(kind, vectors.take_front(group)));
    vectors = vectors.drop_front(group);
  }
  return scalars;
}

KernelLowering::Parts KernelLowering::reduceLanes(const TileLayout &layout,
                                                  ArrayRef<Value> parts,
                                                  ssk::ReduceKind kind) {
  Parts accumulators(layout.rows);
  for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk)
    for (int64_t row = 0; row < layout.rows; ++row) {
      Value part = parts[layout.partIndex(row, chunk)];
      Value &accumulator = accumulators[row];
      if (!accumulator) {
        accumulator = part;
        continue;
      }
      while (accumulator.getType() != part.getType())
        accumulator = foldHalf(kind, accumulator);
      accumulator = combine(kind, accumulator, part);
    }
  return foldVectors(kind, accumulators);
}

KernelLowering::Parts KernelLowering::reduceRows(const TileLayout &layout,
                                                 ArrayRef<Value> parts,
                                                 ssk::ReduceKind kind) {
  Parts result(parts.take_front(layout.chunks.size()));
  for (int64_t row = 1; row < layout.rows; ++row)
    for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk)
      result[chunk] =
          combine(kind, result[chunk], parts[layout.partIndex(row, chunk)]);
  return result;
}

/// A tile without lanes: elements one by one, in ascending order.
static SmallVector<SmallVector<int64_t>> getScalarGroups(ssk::TileType tile,
                                                         int64_t axis) {
  int64_t rows = tile.getRank() == 2 ? tile.getShape()[0] : 1;
  int64_t columns = tile.getShape().back();
  bool alongColumns = tile.getRank() == 1 || axis == 1;
  SmallVector<SmallVector<int64_t>> groups(alongColumns ? rows : columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      groups[alongColumns ? i : j].push_back(i * columns + j);
  return groups;
}

void KernelLowering::lowerReduce(ssk::ReduceOp op) {
  TileLayout layout(op.getInput().getType(), vectorWidth);
  const Parts &parts = tiles[op.getInput()];
  Parts result;
  if (!layout.type.hasLanes()) {
    for (ArrayRef<int64_t> group : getScalarGroups(layout.type, op.getAxis())) {
      Value accumulator = parts[group.front()];
      for (int64_t element : group.drop_front())
        accumulator = combine(op.getKind(), accumulator, parts[element]);
      result.push_back(accumulator);
    }
  } else if (int64_t(op.getAxis()) == layout.type.getLanes()) {
    result = reduceLanes(layout, parts, op.getKind());
  } else {
    result = reduceRows(layout, parts, op.getKind());
  }
  if (isa<ssk::TileType>(op.getResult().getType()))
    bindTile(op.getResult(), std::move(result));
  else
    values.map(op.getResult(), result.front());
}

void KernelLowering::lowerDot(ssk::DotOp op) {
  TileLayout layout(op.getLhs().getType(), vectorWidth);
  const Parts &lhs = tiles[op.getLhs()];
  const Parts &rhs = tiles[op.getRhs()];
  // Chunk by chunk over all rows: the rows' chains are independent.
  Parts accumulators(layout.rows);
  for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk)
    for (int64_t row = 0; row < layout.rows; ++row) {
      Value a = lhs[layout.partIndex(row, chunk)], b = rhs[chunk];
      Value &accumulator = accumulators[row];
      if (!accumulator) {
        accumulator = arith::MulFOp::create(builder, loc, a, b);
        continue;
      }
      while (accumulator.getType() != a.getType())
        accumulator = foldHalf(ssk::ReduceKind::Add, accumulator);
      accumulator = createFma(a, b, accumulator);
    }
  Parts result = foldVectors(ssk::ReduceKind::Add, accumulators);
  if (isa<ssk::TileType>(op.getResult().getType()))
    bindTile(op.getResult(), std::move(result));
  else
    values.map(op.getResult(), result.front());
}

void KernelLowering::lowerAccumulate(ssk::AccumulateOp op) {
  TileLayout layout(op.getRows().getType(), vectorWidth);
  Parts accumulators = tiles[op.getAcc()];
  const Parts &coefficients = tiles[op.getCoef()];
  const Parts &rows = tiles[op.getRows()];
  for (int64_t row = 0; row < layout.rows; ++row)
    for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk) {
      Value coefficient =
          createBroadcast(layout.getPartType(chunk), coefficients[row]);
      accumulators[chunk] = createFma(
          coefficient, rows[layout.partIndex(row, chunk)], accumulators[chunk]);
    }
  bindTile(op.getResult(), std::move(accumulators));
}
