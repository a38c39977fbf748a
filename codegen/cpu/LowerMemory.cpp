//===- LowerMemory.cpp - scratch, elements and tiles in memory ------------===//
#include "codegen/cpu/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

void KernelLowering::lowerAlloc(ssk::AllocOp op) {
  ssk::SharedType type = op.getResult().getType();
  values.map(op.getResult(),
             createScratch(getCpuElementType(type.getElementType()),
                           type.getNumElements()));
}

void KernelLowering::lowerFill(ssk::FillOp op) {
  ssk::SharedType type = op.getMemory().getType();
  Type element = getCpuElementType(type.getElementType());
  Value memory = values.lookup(op.getMemory());
  Value value = values.lookup(op.getValue());
  int64_t count = type.getNumElements();
  int64_t bulk = count - count % vectorWidth;
  auto wide = VectorType::get({vectorWidth}, element);
  createLoop(bulk, vectorWidth, [&](Value index) {
    createStore(createBroadcast(wide, value),
                createGep(element, memory, index));
  });
  for (const Chunk &chunk : splitIntoChunks(count - bulk, vectorWidth)) {
    Type part = chunk.width == 1
                    ? element
                    : Type(VectorType::get({chunk.width}, element));
    createStore(createBroadcast(part, value),
                createGep(element, memory, bulk + chunk.offset));
  }
}

Value KernelLowering::createElementPointer(Value memory, OperandRange indices) {
  Value offset = createToI64(values.lookup(indices[0]));
  if (auto shared = dyn_cast<ssk::SharedType>(memory.getType()))
    if (shared.getRank() == 2)
      offset = createAdd(createMul(offset, shared.getShape()[1]),
                         createToI64(values.lookup(indices[1])));
  Type element = ssk::getMemoryElementType(memory.getType());
  return createGep(getCpuElementType(element), values.lookup(memory), offset);
}

void KernelLowering::lowerPrefetch(ssk::PrefetchOp op) {
  constexpr int64_t kLineBytes = 64;
  Type element = getCpuElementType(
      ssk::getMemoryElementType(op.getMemory().getType()));
  Value pointer = createGep(element, values.lookup(op.getMemory()),
                            createToI64(values.lookup(op.getOffset())));
  const int64_t bytes =
      op.getCount() * int64_t(element.getIntOrFloatBitWidth() / 8);
  for (int64_t at = 0; at < bytes; at += kLineBytes)
    LLVM::Prefetch::create(builder, loc,
                           createGep(builder.getI8Type(), pointer, at),
                           /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

void KernelLowering::lowerRead(ssk::ReadOp op) {
  Value pointer = createElementPointer(op.getMemory(), op.getIndices());
  values.map(op.getResult(),
             createLoad(getCpuElementType(op.getResult().getType()), pointer));
}

void KernelLowering::lowerWrite(ssk::WriteOp op) {
  Value pointer = createElementPointer(op.getMemory(), op.getIndices());
  createStore(values.lookup(op.getValue()), pointer);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

KernelLowering::Access KernelLowering::createAccess(ssk::TileType tile,
                                                    Value memory,
                                                    OperandRange indices,
                                                    Value stride, Value limit) {
  Access access;
  access.base = createElementPointer(memory, indices);
  access.elementType = getCpuElementType(tile.getElementType());
  if (tile.getRank() == 2) {
    if (stride)
      access.rowStride = createToI64(values.lookup(stride));
    else if (auto shared = dyn_cast<ssk::SharedType>(memory.getType()))
      access.rowStride = createI64(shared.getShape()[1]);
    else
      access.rowStride = createI64(tile.getShape()[1]);
  }
  if (limit)
    access.limit = createToI64(values.lookup(limit));
  return access;
}

Value KernelLowering::createRowPointer(const Access &access, int64_t row) {
  if (row == 0)
    return access.base;
  if (!access.rowStride)
    return createGep(access.elementType, access.base, row);
  return createGep(access.elementType, access.base,
                   createMul(access.rowStride, row));
}

Value KernelLowering::createInLimit(Value limit, int64_t index) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, limit,
                               createI64(index));
}

Value KernelLowering::createLimitMask(Value limit, const Chunk &chunk) {
  // Clamped to the chunk, the limit fits the vector's 32 bits.
  Value rest =
      arith::SubIOp::create(builder, loc, limit, createI64(chunk.offset));
  rest = arith::MaxSIOp::create(builder, loc, rest, createI64(0));
  rest = arith::MinSIOp::create(builder, loc, rest, createI64(chunk.width));
  rest = arith::TruncIOp::create(builder, loc, builder.getI32Type(), rest);
  SmallVector<int32_t> lanes;
  for (int64_t lane = 0; lane < chunk.width; ++lane)
    lanes.push_back(lane);
  auto type = VectorType::get({chunk.width}, builder.getI32Type());
  Value numbers = arith::ConstantOp::create(
      builder, loc, DenseIntElementsAttr::get(type, lanes));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, numbers,
                               createBroadcast(type, rest));
}

Value KernelLowering::selectOrZeros(Value condition, Value pointer,
                                    int64_t bytes) {
  zeroBytes = std::max<int64_t>(zeroBytes, llvm::alignTo(bytes, 64));
  Value zeros =
      LLVM::AddressOfOp::create(builder, loc, pointer.getType(), "ssk.zeros");
  return arith::SelectOp::create(builder, loc, condition, pointer, zeros);
}

/// What a masked access moves: LLVM takes those apart where a processor has none
/// for 16 bits, and would convert the floats on their way with a library's calls.
static Type getMovedType(Type type) {
  auto vector = cast<VectorType>(type);
  if (!isa<Float16Type, BFloat16Type>(vector.getElementType()))
    return type;
  return VectorType::get(vector.getShape(),
                         IntegerType::get(type.getContext(), 16));
}

/// Part of a tile whose lanes run along memory, or a single element.
Value KernelLowering::loadPart(const Access &access, const TileLayout &layout,
                               int64_t row, size_t chunkIndex,
                               Value rowPointer) {
  const Chunk &chunk = layout.chunks[chunkIndex];
  Type type = layout.getPartType(chunkIndex);
  Value pointer = createGep(access.elementType, rowPointer, chunk.offset);
  bool limited = access.limit && layout.type.getRank() == 1;
  if (!limited)
    return createLoad(type, pointer);
  int64_t bytes = access.elementType.getIntOrFloatBitWidth() / 8;
  if (chunk.width == 1) {
    int64_t element = layout.type.hasLanes() ? chunk.offset : row;
    return createLoad(type, selectOrZeros(createInLimit(access.limit, element),
                                          pointer, bytes));
  }
  Value mask = createLimitMask(access.limit, chunk);
  Type moved = getMovedType(type);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(moved));
  Value loaded =
      LLVM::MaskedLoadOp::create(builder, loc, moved, pointer, mask, zero,
                                 builder.getI32IntegerAttr(bytes));
  return moved == type ? loaded
                       : arith::BitcastOp::create(builder, loc, type, loaded);
}

/// Part of a tile whose lanes run along its rows: gathered one by one.
Value KernelLowering::loadColumn(const Access &access, const TileLayout &layout,
                                 int64_t row, size_t chunkIndex) {
  const Chunk &chunk = layout.chunks[chunkIndex];
  int64_t bytes = access.elementType.getIntOrFloatBitWidth() / 8;
  SmallVector<Value> elements;
  for (int64_t lane = chunk.offset; lane < chunk.offset + chunk.width; ++lane) {
    Value pointer =
        createGep(access.elementType, createRowPointer(access, lane), row);
    if (access.limit)
      pointer =
          selectOrZeros(createInLimit(access.limit, lane), pointer, bytes);
    elements.push_back(createLoad(access.elementType, pointer));
  }
  if (elements.size() == 1)
    return elements.front();
  return vector::FromElementsOp::create(
      builder, loc, cast<VectorType>(layout.getPartType(chunkIndex)), elements);
}

void KernelLowering::lowerLoad(ssk::LoadOp op) {
  TileLayout layout(op.getResult().getType(), vectorWidth);
  ssk::TileType tile = layout.type;
  Access access = createAccess(tile, op.getMemory(), op.getIndices(),
                               op.getStride(), op.getLimit());
  Parts parts;
  bool columns = tile.getRank() == 2 && tile.getLanes() == 0;
  int64_t lastRow = -1;
  Value rowPointer;
  for (int64_t row = 0; row < layout.rows; ++row)
    for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk) {
      if (columns) {
        parts.push_back(loadColumn(access, layout, row, chunk));
        continue;
      }
      SmallVector<int64_t, 2> at =
          layout.getCoordinates(row, layout.chunks[chunk].offset);
      int64_t memoryRow = tile.getRank() == 2 ? at[0] : 0;
      if (memoryRow != lastRow) {
        rowPointer = createRowPointer(access, memoryRow);
        if (access.limit && tile.getRank() == 2)
          rowPointer =
              selectOrZeros(createInLimit(access.limit, memoryRow), rowPointer,
                            tile.getShape()[1] *
                                access.elementType.getIntOrFloatBitWidth() / 8);
        lastRow = memoryRow;
      }
      // Without lanes each part is an element of its row.
      Value pointer = tile.hasLanes() ? rowPointer
                                      : createGep(access.elementType,
                                                  rowPointer, at.back());
      parts.push_back(loadPart(access, layout, row, chunk, pointer));
    }
  bindTile(op.getResult(), std::move(parts));
}

/// A copy is a load and a store of the row.
void KernelLowering::lowerCopy(ssk::CopyOp op) {
  auto target = cast<ssk::SharedType>(op.getTarget().getType());
  auto row = ssk::TileType::get(op.getContext(), {target.getShape().back()},
                                target.getElementType(), 0);
  OpBuilder before(op);
  Value first = arith::ConstantIndexOp::create(before, op.getLoc(), 0);
  (void)lowerScalar(*first.getDefiningOp());
  auto load = ssk::LoadOp::create(before, op.getLoc(), row, op.getSource(),
                                  op.getOffset(), Value(), op.getLimit());
  SmallVector<Value, 2> indices;
  if (op.getRow())
    indices.push_back(op.getRow());
  indices.push_back(first);
  auto store = ssk::StoreOp::create(before, op.getLoc(), load.getResult(),
                                    op.getTarget(), indices);
  lowerLoad(load);
  lowerStore(store);
}

/// Creates `if (condition)` around what `body` builds.
static void createGuarded(OpBuilder &builder, Location loc, Value condition,
                          function_ref<void()> body) {
  if (!condition)
    return body();
  auto guarded = scf::IfOp::create(builder, loc, condition,
                                   /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&guarded.getThenRegion().front());
  body();
}

void KernelLowering::storePart(const Access &access, const TileLayout &layout,
                               int64_t row, size_t chunkIndex, Value rowPointer,
                               Value value) {
  const Chunk &chunk = layout.chunks[chunkIndex];
  Value pointer = createGep(access.elementType, rowPointer, chunk.offset);
  if (!access.limit || layout.type.getRank() == 2)
    return createStore(value, pointer);
  if (chunk.width == 1) {
    int64_t element = layout.type.hasLanes() ? chunk.offset : row;
    return createGuarded(builder, loc, createInLimit(access.limit, element),
                         [&] { createStore(value, pointer); });
  }
  int64_t bytes = access.elementType.getIntOrFloatBitWidth() / 8;
  if (Type moved = getMovedType(value.getType()); moved != value.getType())
    value = arith::BitcastOp::create(builder, loc, moved, value);
  LLVM::MaskedStoreOp::create(builder, loc, value, pointer,
                              createLimitMask(access.limit, chunk),
                              builder.getI32IntegerAttr(bytes));
}

void KernelLowering::storeColumn(const Access &access, const TileLayout &layout,
                                 int64_t row, size_t chunkIndex, Value value) {
  const Chunk &chunk = layout.chunks[chunkIndex];
  for (int64_t i = 0; i < chunk.width; ++i) {
    int64_t lane = chunk.offset + i;
    Value element = value;
    if (chunk.width > 1)
      element = vector::ExtractOp::create(builder, loc, value, i);
    Value pointer =
        createGep(access.elementType, createRowPointer(access, lane), row);
    Value condition =
        access.limit ? createInLimit(access.limit, lane) : Value();
    createGuarded(builder, loc, condition,
                  [&] { createStore(element, pointer); });
  }
}

void KernelLowering::lowerStore(ssk::StoreOp op) {
  TileLayout layout(op.getValue().getType(), vectorWidth);
  ssk::TileType tile = layout.type;
  Access access = createAccess(tile, op.getMemory(), op.getIndices(),
                               op.getStride(), op.getLimit());
  const Parts &parts = tiles[op.getValue()];
  bool columns = tile.getRank() == 2 && tile.getLanes() == 0;
  for (int64_t row = 0; row < layout.rows; ++row) {
    SmallVector<int64_t, 2> at = layout.getCoordinates(row, 0);
    bool rowLimit = access.limit && tile.getRank() == 2 && !columns;
    Value condition = rowLimit ? createInLimit(access.limit, at[0]) : Value();
    createGuarded(builder, loc, condition, [&] {
      Value pointer;
      if (!columns) {
        pointer = createRowPointer(access, tile.getRank() == 2 ? at[0] : 0);
        if (!tile.hasLanes())
          pointer = createGep(access.elementType, pointer, at.back());
      }
      for (size_t chunk = 0; chunk < layout.chunks.size(); ++chunk) {
        Value part = parts[layout.partIndex(row, chunk)];
        if (columns)
          storeColumn(access, layout, row, chunk, part);
        else
          storePart(access, layout, row, chunk, pointer, part);
      }
    });
  }
}
