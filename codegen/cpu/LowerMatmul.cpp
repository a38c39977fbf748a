//===- LowerMatmul.cpp - products of matrices in scratch ------------------===//
//
// c = op(a) op(b) in f64, k ascending in every element. The columns of c are
// cut into panels of a few vectors; a panel of op(b) is brought into f64 and
// row-major order once, and blocks of rows of c are accumulated in registers
// while k runs. Elements of a are broadcast from memory, for which an f32
// factor is first converted to f64 as a whole. A factor that is c itself is
// copied: a as a whole, b panel by panel.
//
// The Gram matrix of a's rows is computed up to its diagonal, and mirrored. Both
// factors then come from one copy, the columns of a as rows.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

namespace {

/// A matrix of f64 or f32 in memory: element (i, j) at i * row + j * column.
struct Matrix {
  Value pointer;
  Type elementType;
  int64_t rowStride, columnStride;
};

class MatmulEmitter {
public:
  MatmulEmitter(KernelLowering &lowering, ssk::MatmulOp op);
  void emit();

  /// Elements of scratch that the product needs.
  int64_t getFactorSize() const { return isGram ? 1 : m * k; }
  int64_t getPanelSize() const { return (isGram ? n : panelWidth) * k; }
  void setScratch(Value factor, Value panel) {
    factorScratch = factor;
    panelScratch = panel;
  }

private:
  void emitGram();
  void mirror(const Chunk &chunk);
  void convertFactor();
  void emitPanel(Value column, int64_t width);
  Matrix packPanel(Value column, ArrayRef<Chunk> chunks, int64_t width);
  void packRows(Value column, ArrayRef<Chunk> chunks, int64_t width);
  void packTransposed(Value column, const Chunk &chunk, int64_t width);
  void packTransposedTail(Value column, const Chunk &chunk, int64_t width,
                          int64_t begin);
  void emitBlock(const Matrix &panel, Value row, int64_t rows, Value column,
                 ArrayRef<Chunk> chunks);
  SmallVector<Value> beginBlock(Value row, int64_t rows, Value column,
                                ArrayRef<Chunk> chunks);
  void emitRows(int64_t end, llvm::function_ref<void(Value)> body);
  void storeBlock(ArrayRef<Value> sums, Value row, int64_t rows, Value column,
                  ArrayRef<Chunk> chunks);
  SmallVector<Value> transpose(SmallVector<Value> vectors);
  Value extend(Value value);
  Type vectorOf(int64_t width, Type element);
  Value elementPointer(const Matrix &matrix, Value i, Value j);

  KernelLowering &lowering;
  OpBuilder &b;
  Location loc;
  int64_t m, n, k;
  Matrix lhs, rhs, output;
  bool overwritesLhs, overwritesRhs;
  bool isGram; ///< a a^T
  bool accumulates;
  Value limit; ///< i64, the rows of c that are wanted, or null
  int64_t width;     ///< f64 elements of a vector
  int64_t blockRows; ///< rows of c in registers
  int64_t panelWidth;
  Value factorScratch, panelScratch;
};

} // namespace

static Matrix getMatrix(KernelLowering &lowering, Value memory,
                        bool transposed) {
  auto type = cast<ssk::SharedType>(memory.getType());
  int64_t stride = type.getShape()[1];
  return {lowering.getMemory(memory), type.getElementType(),
          transposed ? 1 : stride, transposed ? stride : 1};
}

MatmulEmitter::MatmulEmitter(KernelLowering &lowering, ssk::MatmulOp op)
    : lowering(lowering), b(lowering.getBuilder()), loc(lowering.getLoc()),
      m(op.getM()), n(op.getN()), k(op.getK()),
      lhs(getMatrix(lowering, op.getLhs(), op.getTransposeA())),
      rhs(getMatrix(lowering, op.getRhs(), op.getTransposeB())),
      output(getMatrix(lowering, op.getOutput(), false)),
      overwritesLhs(op.getOutput() == op.getLhs()),
      overwritesRhs(op.getOutput() == op.getRhs()),
      isGram(op.getLhs() == op.getRhs() && !op.getTransposeA() &&
             op.getTransposeB() && !op.getAccumulate() && !op.getLimit()),
      accumulates(op.getAccumulate()) {
  if (op.getLimit())
    limit = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                       lowering.getScalar(op.getLimit()));
  width = lowering.getVectorWidth() / 2;
  // 16 accumulators of 32 registers, or 8 of 16.
  blockRows = width >= 8 ? 8 : 4;
  panelWidth = std::min(n, 2 * width);
}

Type MatmulEmitter::vectorOf(int64_t count, Type element) {
  return count == 1 ? element : VectorType::get({count}, element);
}

Value MatmulEmitter::extend(Value value) {
  if (getElementTypeOrSelf(value.getType()).isF64())
    return value;
  Type type = b.getF64Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(vector.getShape(), type);
  return arith::ExtFOp::create(b, loc, type, value);
}

Value MatmulEmitter::elementPointer(const Matrix &matrix, Value i, Value j) {
  Value offset = lowering.createAdd(lowering.createMul(i, matrix.rowStride),
                                    lowering.createMul(j, matrix.columnStride));
  return lowering.createGep(matrix.elementType, matrix.pointer, offset);
}

void MatmulEmitter::convertFactor() {
  if (lhs.elementType.isF64() && !overwritesLhs)
    return;
  int64_t count = m * k, bulk = count - count % width;
  auto convert = [&](Value index, int64_t length) {
    Value loaded = lowering.createLoad(
        vectorOf(length, lhs.elementType),
        lowering.createGep(lhs.elementType, lhs.pointer, index));
    lowering.createStore(
        extend(loaded),
        lowering.createGep(b.getF64Type(), factorScratch, index));
  };
  lowering.createLoop(bulk, width, [&](Value index) { convert(index, width); });
  for (const Chunk &chunk : splitIntoChunks(count - bulk, width))
    convert(lowering.createI64(bulk + chunk.offset), chunk.width);
  lhs.pointer = factorScratch;
  lhs.elementType = b.getF64Type();
}

/// Rows of b run along the panel: convert them.
void MatmulEmitter::packRows(Value column, ArrayRef<Chunk> chunks,
                             int64_t panelStride) {
  lowering.createLoop(k, 1, [&](Value index) {
    Value source = elementPointer(rhs, index, column);
    Value target = lowering.createGep(b.getF64Type(), panelScratch,
                                      lowering.createMul(index, panelStride));
    for (const Chunk &chunk : chunks) {
      Value loaded = lowering.createLoad(
          vectorOf(chunk.width, rhs.elementType),
          lowering.createGep(rhs.elementType, source, chunk.offset));
      lowering.createStore(
          extend(loaded),
          lowering.createGep(b.getF64Type(), target, chunk.offset));
    }
  });
}

/// Exchanges blocks of half, a quarter, ... of the vectors' length.
SmallVector<Value> MatmulEmitter::transpose(SmallVector<Value> vectors) {
  int64_t count = vectors.size();
  for (int64_t half = count / 2; half >= 1; half /= 2)
    for (int64_t i = 0; i < count; ++i) {
      if (i & half)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t c = 0; c < count; ++c) {
        low.push_back(c & half ? count + c - half : c);
        high.push_back(c & half ? count + c : c + half);
      }
      Value first = vectors[i], second = vectors[i + half];
      vectors[i] = vector::ShuffleOp::create(b, loc, first, second, low);
      vectors[i + half] =
          vector::ShuffleOp::create(b, loc, first, second, high);
    }
  return vectors;
}

/// Columns of b run along the panel: transpose square blocks in registers.
void MatmulEmitter::packTransposed(Value column, const Chunk &chunk,
                                   int64_t panelStride) {
  int64_t size = chunk.width, bulk = k - k % size;
  lowering.createLoop(bulk, size, [&](Value index) {
    SmallVector<Value> vectors;
    Value source = elementPointer(rhs, index, column);
    for (int64_t j = 0; j < size; ++j)
      vectors.push_back(lowering.createLoad(
          vectorOf(size, rhs.elementType),
          lowering.createGep(rhs.elementType, source,
                             (chunk.offset + j) * rhs.columnStride)));
    vectors = transpose(std::move(vectors));
    Value target = lowering.createGep(b.getF64Type(), panelScratch,
                                      lowering.createMul(index, panelStride));
    for (int64_t i = 0; i < size; ++i)
      lowering.createStore(extend(vectors[i]),
                           lowering.createGep(b.getF64Type(), target,
                                              i * panelStride + chunk.offset));
  });
  packTransposedTail(column, chunk, panelStride, bulk);
}

void MatmulEmitter::packTransposedTail(Value column, const Chunk &chunk,
                                       int64_t panelStride, int64_t begin) {
  for (int64_t i = begin; i < k; ++i)
    for (int64_t j = chunk.offset; j < chunk.offset + chunk.width; ++j) {
      Value source = elementPointer(rhs, lowering.createI64(i), column);
      Value loaded = lowering.createLoad(
          rhs.elementType,
          lowering.createGep(rhs.elementType, source, j * rhs.columnStride));
      lowering.createStore(extend(loaded),
                           lowering.createGep(b.getF64Type(), panelScratch,
                                              i * panelStride + j));
    }
}

Matrix MatmulEmitter::packPanel(Value column, ArrayRef<Chunk> chunks,
                                int64_t panelStride) {
  bool transposed = rhs.columnStride != 1;
  if (!transposed && rhs.elementType.isF64() && !overwritesRhs)
    return {lowering.createGep(b.getF64Type(), rhs.pointer, column),
            b.getF64Type(), rhs.rowStride, 1};
  if (transposed)
    for (const Chunk &chunk : chunks)
      packTransposed(column, chunk, panelStride);
  else
    packRows(column, chunks, panelStride);
  return {panelScratch, b.getF64Type(), panelStride, 1};
}

void MatmulEmitter::storeBlock(ArrayRef<Value> sums, Value row, int64_t rows,
                               Value column, ArrayRef<Chunk> chunks) {
  for (int64_t i = 0; i < rows; ++i) {
    Value at = lowering.createAdd(row, lowering.createI64(i));
    Value target = elementPointer(output, at, column);
    for (auto [index, chunk] : llvm::enumerate(chunks)) {
      Value sum = sums[i * chunks.size() + index];
      if (!output.elementType.isF64())
        sum = arith::TruncFOp::create(
            b, loc, vectorOf(chunk.width, output.elementType), sum);
      lowering.createStore(
          sum, lowering.createGep(output.elementType, target, chunk.offset));
    }
  }
}

/// What the sums of a block begin with.
SmallVector<Value> MatmulEmitter::beginBlock(Value row, int64_t rows,
                                             Value column,
                                             ArrayRef<Chunk> chunks) {
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i) {
    Value source;
    if (accumulates)
      source = elementPointer(
          output, lowering.createAdd(row, lowering.createI64(i)), column);
    for (const Chunk &chunk : chunks) {
      if (accumulates)
        sums.push_back(extend(lowering.createLoad(
            vectorOf(chunk.width, output.elementType),
            lowering.createGep(output.elementType, source, chunk.offset))));
      else
        sums.push_back(arith::ConstantOp::create(
            b, loc, b.getZeroAttr(vectorOf(chunk.width, b.getF64Type()))));
    }
  }
  return sums;
}

/// `rows` rows of c from `row` on, one panel wide, in registers.
void MatmulEmitter::emitBlock(const Matrix &panel, Value row, int64_t rows,
                              Value column, ArrayRef<Chunk> chunks) {
  SmallVector<Value> begin = beginBlock(row, rows, column, chunks);
  auto loop =
      scf::ForOp::create(b, loc, lowering.createI64(0), lowering.createI64(k),
                         lowering.createI64(1), begin);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value index = loop.getInductionVar();
    SmallVector<Value> sums(loop.getRegionIterArgs());
    Value source =
        lowering.createGep(b.getF64Type(), panel.pointer,
                           lowering.createMul(index, panel.rowStride));
    SmallVector<Value> right;
    for (const Chunk &chunk : chunks)
      right.push_back(lowering.createLoad(
          vectorOf(chunk.width, b.getF64Type()),
          lowering.createGep(b.getF64Type(), source, chunk.offset)));
    Value left = elementPointer(lhs, row, index);
    for (int64_t i = 0; i < rows; ++i) {
      Value element = lowering.createLoad(
          b.getF64Type(),
          lowering.createGep(b.getF64Type(), left, i * lhs.rowStride));
      for (size_t c = 0; c < chunks.size(); ++c) {
        Value &sum = sums[i * chunks.size() + c];
        sum = lowering.createFma(
            lowering.createBroadcast(right[c].getType(), element), right[c],
            sum);
      }
    }
    scf::YieldOp::create(b, loc, sums);
  }
  storeBlock(SmallVector<Value>(loop.getResults()), row, rows, column, chunks);
}

/// Blocks of rows up to `end`, a multiple of theirs; those that begin at the limit
/// or behind it are left out.
void MatmulEmitter::emitRows(int64_t end, function_ref<void(Value)> body) {
  if (!limit)
    return lowering.createLoop(end, blockRows, body);
  Value last = arith::MinSIOp::create(b, loc, limit, lowering.createI64(end));
  auto loop = scf::ForOp::create(b, loc, lowering.createI64(0), last,
                                 lowering.createI64(blockRows));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void MatmulEmitter::emitPanel(Value column, int64_t columns) {
  SmallVector<Chunk> chunks = splitIntoChunks(columns, width);
  Matrix panel = packPanel(column, chunks, columns);
  int64_t bulk = m - m % blockRows;
  emitRows(bulk, [&](Value row) {
    emitBlock(panel, row, blockRows, column, chunks);
  });
  if (bulk < m)
    emitBlock(panel, lowering.createI64(bulk), m - bulk, column, chunks);
}

/// Copies what is above the diagonal's square in these columns to below it.
void MatmulEmitter::mirror(const Chunk &chunk) {
  const int64_t size = chunk.width;
  Type vector = vectorOf(size, output.elementType);
  auto at = [&](int64_t row, int64_t column) {
    return elementPointer(output, lowering.createI64(row),
                          lowering.createI64(column));
  };
  for (int64_t row = 0; row < chunk.offset; row += size) {
    SmallVector<Value> square;
    for (int64_t i = 0; i < size; ++i)
      square.push_back(lowering.createLoad(vector, at(row + i, chunk.offset)));
    if (size > 1)
      square = transpose(std::move(square));
    for (int64_t i = 0; i < size; ++i)
      lowering.createStore(square[i], at(chunk.offset + i, row));
  }
}

void MatmulEmitter::emitGram() {
  // A product takes one vector and an element in memory: most registers sum.
  const int64_t mostRows = width >= 8 ? 24 : 8;
  SmallVector<Chunk> chunks = splitIntoChunks(n, width);
  Matrix columns = packPanel(lowering.createI64(0), chunks, n);
  lhs = {columns.pointer, b.getF64Type(), 1, n};
  for (const Chunk &chunk : chunks) {
    Matrix panel = columns;
    panel.pointer =
        lowering.createGep(b.getF64Type(), columns.pointer, chunk.offset);
    const int64_t end = chunk.offset + chunk.width;
    for (int64_t row = 0; row < end; row += mostRows)
      emitBlock(panel, lowering.createI64(row), std::min(mostRows, end - row),
                lowering.createI64(chunk.offset), Chunk{0, chunk.width});
  }
  for (const Chunk &chunk : chunks)
    mirror(chunk);
}

void MatmulEmitter::emit() {
  if (isGram)
    return emitGram();
  convertFactor();
  int64_t bulk = n - n % panelWidth;
  lowering.createLoop(bulk, panelWidth,
                      [&](Value column) { emitPanel(column, panelWidth); });
  if (bulk < n)
    emitPanel(lowering.createI64(bulk), n - bulk);
}

/// Makes the array at `pointer` at least `count` elements long.
static void growScratch(Value pointer, int64_t count) {
  auto alloca = pointer.getDefiningOp<LLVM::AllocaOp>();
  auto size = alloca.getArraySize().getDefiningOp<arith::ConstantOp>();
  auto old = cast<IntegerAttr>(size.getValue());
  if (count > old.getInt())
    size.setValueAttr(IntegerAttr::get(old.getType(), count));
}

void KernelLowering::lowerMatmul(ssk::MatmulOp op) {
  MatmulEmitter emitter(*this, op);
  if (!matmulFactor) {
    matmulFactor = createScratch(builder.getF64Type(), 1);
    matmulPanel = createScratch(builder.getF64Type(), 1);
  }
  growScratch(matmulFactor, emitter.getFactorSize());
  growScratch(matmulPanel, emitter.getPanelSize());
  emitter.setScratch(matmulFactor, matmulPanel);
  emitter.emit();
}
