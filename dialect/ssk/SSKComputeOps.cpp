//===- SSKComputeOps.cpp - verifiers of arithmetic on tiles ---------------===//
#include "dialect/ssk/SSKDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sinkstate::ssk;

LogicalResult SplatOp::verify() {
  if (getValue().getType() == getResult().getType().getElementType())
    return success();
  return emitOpError("spreads ")
         << getValue().getType() << " over " << getResult().getType()
         << ", expected the tile's element type";
}

LogicalResult IotaOp::verify() {
  TileType type = getResult().getType();
  if (type.getRank() == 1 && type.getElementType().isInteger(32))
    return success();
  return emitOpError("numbers the elements of ")
         << type << ", expected a tile of one dimension of i32";
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

using MapBody = function_ref<Value(OpBuilder &, Location, ValueRange)>;

void MapOp::build(OpBuilder &builder, OperationState &state, Type result,
                  ValueRange inputs, ArrayRef<SmallVector<int64_t>> dims,
                  MapBody body) {
  SmallVector<Attribute> lists;
  for (ArrayRef<int64_t> list : dims)
    lists.push_back(builder.getI64ArrayAttr(list));
  state.addOperands(inputs);
  state.addTypes(result);
  state.getOrAddProperties<Properties>().dims = builder.getArrayAttr(lists);
  Block &block = state.addRegion()->emplaceBlock();
  for (Value input : inputs)
    block.addArgument(cast<TileType>(input.getType()).getElementType(),
                      input.getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  Value yielded = body(builder, state.location, block.getArguments());
  YieldOp::create(builder, state.location, yielded);
}

void MapOp::build(OpBuilder &builder, OperationState &state, Type result,
                  ValueRange inputs, MapBody body) {
  SmallVector<int64_t> all;
  for (int64_t d = 0; d < cast<TileType>(result).getRank(); ++d)
    all.push_back(d);
  SmallVector<SmallVector<int64_t>> dims(inputs.size(), all);
  build(builder, state, result, inputs, dims, body);
}

SmallVector<int64_t> MapOp::getInputDims(unsigned index) {
  SmallVector<int64_t> dims;
  for (Attribute attribute : cast<ArrayAttr>(getDims()[index]))
    dims.push_back(cast<IntegerAttr>(attribute).getInt());
  return dims;
}

/// One operand against the result dimensions it covers.
static LogicalResult verifyMapInput(MapOp op, unsigned index) {
  auto input = cast<TileType>(op.getInputs()[index].getType());
  TileType result = op.getResult().getType();
  SmallVector<int64_t> dims = op.getInputDims(index);
  if (int64_t(dims.size()) != input.getRank())
    return op.emitOpError("operand ")
           << index << " has " << input.getRank() << " dimensions and dims "
           << "lists " << dims.size() << ", expected one for each";
  for (auto [d, target] : llvm::enumerate(dims)) {
    if (target < 0 || target >= result.getRank() ||
        (d > 0 && target <= dims[d - 1]))
      return op.emitOpError("operand ")
             << index << " covers dimension " << target
             << ", expected dimensions of the result in ascending order";
    if (input.getShape()[d] != result.getShape()[target])
      return op.emitOpError("operand ")
             << index << " has " << input.getShape()[d]
             << " elements along result dimension " << target << ", expected "
             << result.getShape()[target];
    bool lanes = input.getLanes() == int64_t(d);
    if (lanes != (result.getLanes() == target))
      return op.emitOpError("operand ")
             << index << " of type " << input << " and the result " << result
             << " disagree about the lanes of result dimension " << target;
  }
  return success();
}

LogicalResult MapOp::verify() {
  if (getDims().size() != getInputs().size())
    return emitOpError("has ")
           << getInputs().size() << " operands and " << getDims().size()
           << " lists in dims, expected one for each";
  for (unsigned index = 0; index < getInputs().size(); ++index)
    if (failed(verifyMapInput(*this, index)))
      return failure();
  return success();
}

LogicalResult MapOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size())
    return emitOpError("has a body of ")
           << block.getNumArguments() << " arguments, expected "
           << getInputs().size();
  for (auto [argument, input] : llvm::zip(block.getArguments(), getInputs()))
    if (argument.getType() != cast<TileType>(input.getType()).getElementType())
      return emitOpError("body argument ")
             << argument.getArgNumber() << " is " << argument.getType()
             << ", expected the operand's element type "
             << cast<TileType>(input.getType()).getElementType();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError(
        "has a body without 'ssk.yield', expected it at the end");
  if (yield.getValue().getType() != getResult().getType().getElementType())
    return emitOpError("yields ")
           << yield.getValue().getType() << ", expected the result's element "
           << "type " << getResult().getType().getElementType();
  for (Operation &op : block.without_terminator()) {
    StringRef dialect = op.getName().getDialectNamespace();
    if (dialect != "arith" && dialect != "math")
      return op.emitError("'")
             << op.getName() << "' in the body of ssk.map, expected "
             << "operations of arith and math";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind,
                     Value input, int64_t axis) {
  build(builder, state, cast<TileType>(input.getType()).dropAxis(axis), kind,
        input, axis);
}

LogicalResult ReduceOp::verify() {
  TileType input = getInput().getType();
  int64_t axis = getAxis();
  if (axis < 0 || axis >= input.getRank())
    return emitOpError("axis is ") << axis << ", expected one of the tile's "
                                   << input.getRank() << " dimensions";
  Type element = input.getElementType();
  if (isNarrowFloat(element))
    return emitOpError("reduces ")
           << element
           << ", expected f32, f64, i32 or i64: convert with ssk.map";
  Type expected = input.dropAxis(axis);
  if (getResult().getType() != expected)
    return emitOpError("has result ")
           << getResult().getType() << ", expected " << expected;
  return success();
}

void DotOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                  Value rhs) {
  auto tile = cast<TileType>(lhs.getType());
  build(builder, state, tile.dropAxis(tile.getRank() - 1), lhs, rhs);
}

/// True for a tile of f32 or f64 whose last dimension is spread over lanes.
static bool isLaneFloatTile(TileType tile) {
  return (tile.getElementType().isF32() || tile.getElementType().isF64()) &&
         tile.getLanes() == tile.getRank() - 1;
}

LogicalResult DotOp::verify() {
  TileType lhs = getLhs().getType(), rhs = getRhs().getType();
  if (!isLaneFloatTile(lhs) || !isLaneFloatTile(rhs) || rhs.getRank() != 1 ||
      lhs.getShape().back() != rhs.getShape().back() ||
      lhs.getElementType() != rhs.getElementType())
    return emitOpError("has operands ")
           << lhs << " and " << rhs
           << ", expected f32 or f64 tiles whose last dimension is the lane "
              "axis, of equal length, the second without rows";
  Type expected = lhs.dropAxis(lhs.getRank() - 1);
  if (getResult().getType() != expected)
    return emitOpError("has result ")
           << getResult().getType() << ", expected " << expected;
  return success();
}

void AccumulateOp::build(OpBuilder &builder, OperationState &state, Value acc,
                         Value coef, Value rows) {
  build(builder, state, acc.getType(), acc, coef, rows);
}

LogicalResult AccumulateOp::verify() {
  TileType acc = getAcc().getType(), coef = getCoef().getType(),
           rows = getRows().getType();
  bool fits = rows.getRank() == 2 && rows.getLanes() == 1 &&
              isLaneFloatTile(rows) && acc == rows.dropAxis(0) &&
              coef == rows.dropAxis(1);
  if (fits)
    return success();
  return emitOpError("has operands ")
         << acc << ", " << coef << " and " << rows
         << ", expected tile<N, lanes = 0>, tile<R> and tile<RxN, lanes = 1> "
            "of f32 or f64";
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, Value output, bool transposeA,
                     bool transposeB, bool accumulate, Value limit) {
  auto flag = [&](bool set) {
    return set ? builder.getUnitAttr() : UnitAttr();
  };
  build(builder, state, lhs, rhs, output, limit, flag(transposeA),
        flag(transposeB), flag(accumulate));
}

void MatmulOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getLhsMutable());
  effects.emplace_back(MemoryEffects::Read::get(), &getRhsMutable());
  if (getAccumulate())
    effects.emplace_back(MemoryEffects::Read::get(), &getOutputMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getOutputMutable());
}

int64_t MatmulOp::getM() { return getOutput().getType().getShape()[0]; }
int64_t MatmulOp::getN() { return getOutput().getType().getShape()[1]; }
int64_t MatmulOp::getK() {
  return getLhs().getType().getShape()[getTransposeA() ? 0 : 1];
}

LogicalResult MatmulOp::verify() {
  SharedType lhs = getLhs().getType(), rhs = getRhs().getType(),
             output = getOutput().getType();
  for (SharedType type : {lhs, rhs, output})
    if (type.getRank() != 2 ||
        !(type.getElementType().isF32() || type.getElementType().isF64()))
      return emitOpError("has an operand ")
             << type << ", expected two dimensions of f32 or f64";
  bool ta = getTransposeA(), tb = getTransposeB();
  int64_t n = rhs.getShape()[tb ? 0 : 1], kb = rhs.getShape()[tb ? 1 : 0];
  // Of the rows of a factor that has more, a limit takes the first.
  const int64_t rows = lhs.getShape()[ta ? 1 : 0];
  if ((getLimit() ? rows < getM() : rows != getM()) || n != getN() ||
      kb != getK())
    return emitOpError("multiplies ")
           << lhs << (ta ? " transposed" : "") << " by " << rhs
           << (tb ? " transposed" : "") << " into " << output
           << ", expected shapes m x k, k x n and m x n";
  bool intoLhs = getOutput() == getLhs(), intoRhs = getOutput() == getRhs();
  if ((intoLhs && intoRhs) || (intoLhs && ta) || (intoRhs && tb))
    return emitOpError("writes to a factor that is transposed or is both "
                       "factors, expected other scratch");
  if (isInPlace() && (getAccumulate() || getLimit()))
    return emitOpError("writes to a factor and ")
           << (getAccumulate() ? "accumulates" : "has a limit")
           << ", expected other scratch";
  return success();
}

LogicalResult TopKOp::verify() {
  SharedType values = getValues().getType(), indices = getIndices().getType();
  if (values.getRank() != 1 || !values.getElementType().isF32())
    return emitOpError("has values ")
           << values << ", expected f32 of one dimension";
  if (indices.getRank() != 1 || !indices.getElementType().isInteger(32))
    return emitOpError("has indices ")
           << indices << ", expected i32 of one dimension";
  if (indices.getNumElements() > values.getNumElements())
    return emitOpError("selects ")
           << indices.getNumElements() << " of " << values.getNumElements()
           << " values, expected at most all of them";
  return success();
}
