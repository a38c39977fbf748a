//===- SSKMemoryOps.cpp - verifiers and canonical forms of accesses -------===//
#include "dialect/ssk/SSKDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sinkstate::ssk;

/// A global has one index, scratch one per dimension.
static LogicalResult verifyIndexCount(Operation *op, Type memory,
                                      size_t indices) {
  auto shared = dyn_cast<SharedType>(memory);
  size_t expected = shared ? shared.getRank() : 1;
  if (indices == expected)
    return success();
  return op->emitOpError("has ")
         << indices << " indices for " << memory << ", expected " << expected;
}

int64_t AllocOp::getRowPitch() {
  auto type = cast<SharedType>(getResult().getType());
  return getPitch().value_or(type.getShape().back());
}

LogicalResult AllocOp::verify() {
  std::optional<int64_t> pitch = getPitch();
  if (!pitch)
    return success();
  auto type = cast<SharedType>(getResult().getType());
  if (type.getRank() != 2)
    return emitOpError("has a pitch, expected it only for two dimensions, not ")
           << type;
  if (*pitch < type.getShape().back())
    return emitOpError("has a pitch of ")
           << *pitch << ", expected at least the " << type.getShape().back()
           << " elements of a row";
  return success();
}

void ReadOp::build(OpBuilder &builder, OperationState &state, Value memory,
                   ValueRange indices) {
  build(builder, state, getMemoryElementType(memory.getType()), memory,
        indices);
}

LogicalResult ReadOp::verify() {
  return verifyIndexCount(*this, getMemory().getType(), getIndices().size());
}

LogicalResult WriteOp::verify() {
  return verifyIndexCount(*this, getMemory().getType(), getIndices().size());
}

/// What loads and stores have in common.
template <typename AccessOp>
static LogicalResult verifyAccess(AccessOp op, TileType tile) {
  Type memory = op.getMemory().getType();
  if (failed(verifyIndexCount(op, memory, op.getIndices().size())))
    return failure();
  if (getMemoryElementType(memory) != tile.getElementType())
    return op.emitOpError("moves elements of ")
           << tile.getElementType() << " and " << getMemoryElementType(memory)
           << ", expected the same element type: convert with ssk.map";
  if (op.getStride() && (!isa<GlobalType>(memory) || tile.getRank() != 2))
    return op.emitOpError("has a stride, expected it only for a tile of two "
                          "dimensions in a global");
  if (auto shared = dyn_cast<SharedType>(memory)) {
    if (tile.getRank() > shared.getRank())
      return op.emitOpError("has a tile of two dimensions in scratch of one, "
                            "expected scratch of two dimensions");
    for (int64_t d = 1; d <= tile.getRank(); ++d)
      if (tile.getShape()[tile.getRank() - d] >
          shared.getShape()[shared.getRank() - d])
        return op.emitOpError("has a tile ")
               << tile << " larger than the scratch " << shared;
  }
  if (std::optional<int64_t> vector = op.getVector())
    if (*vector < 1 || *vector > 16 || !llvm::isPowerOf2_64(*vector))
      return op.emitOpError("vector is ")
             << *vector << ", expected 1, 2, 4, 8 or 16";
  return success();
}

/// Drops a constant limit that excludes nothing.
template <typename AccessOp>
static LogicalResult dropLimit(AccessOp op, TileType tile,
                               PatternRewriter &rewriter) {
  llvm::APInt limit;
  if (!op.getLimit() || !matchPattern(op.getLimit(), m_ConstantInt(&limit)) ||
      limit.slt(tile.getShape()[0]))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getLimitMutable().clear(); });
  return success();
}

void LoadOp::build(OpBuilder &builder, OperationState &state, Type result,
                   Value memory, ValueRange indices, Value stride,
                   Value limit) {
  build(builder, state, result, memory, indices, stride, limit, IntegerAttr());
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getResult().getType());
}

LogicalResult LoadOp::canonicalize(LoadOp op, PatternRewriter &rewriter) {
  return dropLimit(op, op.getResult().getType(), rewriter);
}

void StoreOp::build(OpBuilder &builder, OperationState &state, Value value,
                    Value memory, ValueRange indices, Value stride,
                    Value limit) {
  build(builder, state, value, memory, indices, stride, limit, IntegerAttr());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getValue().getType());
}

LogicalResult StoreOp::canonicalize(StoreOp op, PatternRewriter &rewriter) {
  return dropLimit(op, op.getValue().getType(), rewriter);
}

LogicalResult CopyOp::verify() {
  auto target = cast<SharedType>(getTarget().getType());
  Type element = getMemoryElementType(getSource().getType());
  if (element != target.getElementType())
    return emitOpError("copies elements of ")
           << element << " to " << target << ", expected the same element type";
  if (bool(getRow()) != (target.getRank() == 2))
    return emitOpError(getRow() ? "has a row of " : "has no row of ")
           << target << ", expected one exactly for two dimensions";
  if (std::optional<int64_t> vector = getVector())
    if (*vector < 1 || *vector > 4 || !llvm::isPowerOf2_64(*vector))
      return emitOpError("vector is ") << *vector << ", expected 1, 2 or 4";
  return success();
}
