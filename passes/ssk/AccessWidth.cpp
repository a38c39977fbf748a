//===- AccessWidth.cpp - How wide a load or store can be ------------------===//

#include "passes/ssk/AccessWidth.h"
#include "passes/ssk/LaneLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace sinkstate::ssk;

static constexpr int64_t kMaxDivisor = 16;
static constexpr int64_t kMaxAccessBytes = 16;
static constexpr unsigned kMaxDepth = 12;

/// The largest power of two that divides `value`; zero is divided by all.
static int64_t getPowerOfTwo(int64_t value) {
  return value == 0 ? kMaxDivisor : std::min(value & -value, kMaxDivisor);
}

static int64_t getKnownDivisor(Value value, unsigned depth);

static int64_t getDivisorOfArgument(BlockArgument argument, unsigned depth) {
  Operation *parent = argument.getOwner()->getParentOp();
  // Of a global: what divides each of its elements.
  if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument == loop.getInductionVar())
    return std::min(getKnownDivisor(loop.getLowerBound(), depth),
                    getKnownDivisor(loop.getStep(), depth));
  auto kernel = dyn_cast<KernelOp>(parent);
  auto divisor = kernel ? kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                               SSKDialect::kDivisibleByAttr)
                        : IntegerAttr();
  return divisor ? getPowerOfTwo(divisor.getInt()) : 1;
}

static int64_t getKnownDivisor(Value value, unsigned depth) {
  if (depth == 0)
    return 1;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return getPowerOfTwo(constant.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getDivisorOfArgument(argument, depth - 1);
  auto of = [&](Value operand) { return getKnownDivisor(operand, depth - 1); };
  return llvm::TypeSwitch<Operation *, int64_t>(value.getDefiningOp())
      .Case<arith::MulIOp>([&](arith::MulIOp op) {
        return std::min(of(op.getLhs()) * of(op.getRhs()), kMaxDivisor);
      })
      .Case<arith::AddIOp, arith::SubIOp>(
          [&](auto op) { return std::min(of(op.getLhs()), of(op.getRhs())); })
      .Case<arith::RemSIOp, arith::RemUIOp>(
          [&](auto op) { return std::min(of(op.getLhs()), of(op.getRhs())); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(
          [&](auto op) { return of(op.getIn()); })
      .Case<arith::SelectOp>([&](arith::SelectOp op) {
        return std::min(of(op.getTrueValue()), of(op.getFalseValue()));
      })
      .Case<ReadOp>([&](ReadOp op) {
        return isa<GlobalType>(op.getMemory().getType()) ? of(op.getMemory()) : int64_t(1);
      })
      .Default([](Operation *) { return int64_t(1); });
}

int64_t sinkstate::ssk::getKnownDivisor(Value value) {
  return ::getKnownDivisor(value, kMaxDepth);
}

/// What a lane holds in a row of consecutive elements.
static int64_t getConsecutive(TileType tile) {
  int64_t last = tile.getRank() - 1;
  int64_t extent = tile.getShape()[last];
  if (tile.getLanes() == last)
    return getLaneWidth(extent);
  return getPowerOfTwo(extent);
}

template <typename AccessOp> static int64_t getWidth(AccessOp op, TileType tile) {
  int64_t width = std::min(getConsecutive(tile),
                           kMaxAccessBytes * 8 / tile.getElementType().getIntOrFloatBitWidth());
  // The address of the first element, and of the following rows.
  width = std::min(width, getKnownDivisor(op.getIndices().back()));
  if (auto shared = dyn_cast<SharedType>(op.getMemory().getType())) {
    if (shared.getRank() == 2)
      width = std::min(width, getPowerOfTwo(shared.getShape()[1]));
  } else if (tile.getRank() == 2) {
    width = std::min(width, op.getStride() ? getKnownDivisor(op.getStride())
                                           : getPowerOfTwo(tile.getShape()[1]));
  }
  // A limit inside a row must not cut an access.
  if (op.getLimit() && tile.getRank() == 1)
    width = std::min(width, getKnownDivisor(op.getLimit()));
  return width;
}

int64_t sinkstate::ssk::getAccessWidth(LoadOp load) {
  return getWidth(load, load.getResult().getType());
}

int64_t sinkstate::ssk::getAccessWidth(StoreOp store) {
  return getWidth(store, store.getValue().getType());
}

int64_t sinkstate::ssk::getAccessWidth(CopyOp copy) {
  auto target = cast<SharedType>(copy.getTarget().getType());
  int64_t bytes = target.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t width = std::min(kMaxAccessBytes / bytes, getPowerOfTwo(target.getShape().back()));
  width = std::min(width, getKnownDivisor(copy.getOffset()));
  return copy.getLimit() ? std::min(width, getKnownDivisor(copy.getLimit())) : width;
}
