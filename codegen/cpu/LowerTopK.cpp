//===- LowerTopK.cpp - indices of the largest values ----------------------===//
//
// An insertion into a short sorted list. Floats are compared as integers of
// the same order: NaN above everything, -0 equal to 0.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

/// The place of a float in the order, as i32; above the smallest i32.
static Value createOrderKey(KernelLowering &lowering, Value x) {
  OpBuilder &b = lowering.getBuilder();
  Location loc = lowering.getLoc();
  Type i32 = b.getI32Type();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  // -0 + 0 is 0.
  Value bits = arith::BitcastOp::create(b, loc, i32,
                                        arith::AddFOp::create(b, loc, x, zero));
  Value sign = arith::ShRSIOp::create(b, loc, bits, lowering.createI32(31));
  Value flip =
      arith::AndIOp::create(b, loc, sign, lowering.createI32(0x7fffffff));
  Value key = arith::XOrIOp::create(b, loc, bits, flip);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  return arith::SelectOp::create(
      b, loc, isNaN, lowering.createI32(std::numeric_limits<int32_t>::max()),
      key);
}

namespace {
/// The sorted list: `keys[0]` is a sentinel that nothing passes, `keys[s]`
/// belongs to `indices[s - 1]`.
struct SortedList {
  Value keys, indices;
  int64_t length;
};
} // namespace

static void createEmpty(KernelLowering &lowering, const SortedList &list) {
  Type i32 = lowering.getBuilder().getI32Type();
  Value smallest = lowering.createI32(std::numeric_limits<int32_t>::min());
  lowering.createStore(lowering.createI32(std::numeric_limits<int32_t>::max()),
                       list.keys);
  lowering.createLoop(list.length, 1, [&](Value slot) {
    Value next = lowering.createAdd(slot, lowering.createI64(1));
    lowering.createStore(smallest, lowering.createGep(i32, list.keys, next));
    lowering.createStore(lowering.createI32(-1),
                         lowering.createGep(i32, list.indices, slot));
  });
}

/// Moves smaller keys down by one place, from the end, and puts (key, index)
/// where they stop: behind equal keys, whose index is lower.
static void createInsertion(KernelLowering &lowering, const SortedList &list,
                            Value key, Value index) {
  OpBuilder &b = lowering.getBuilder();
  Location loc = lowering.getLoc();
  Type i32 = b.getI32Type();
  Value one = lowering.createI64(1);
  auto below = [&](Value slot) {
    return arith::SubIOp::create(b, loc, slot, one).getResult();
  };
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{b.getI64Type()},
      ValueRange{lowering.createI64(list.length)},
      [&](OpBuilder &, Location, ValueRange slot) {
        Value other = lowering.createLoad(
            i32, lowering.createGep(i32, list.keys, below(slot[0])));
        Value smaller = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                              other, key);
        scf::ConditionOp::create(b, loc, smaller, slot);
      },
      [&](OpBuilder &, Location, ValueRange slot) {
        Value above = below(slot[0]);
        Value movedKey =
            lowering.createLoad(i32, lowering.createGep(i32, list.keys, above));
        lowering.createStore(movedKey,
                             lowering.createGep(i32, list.keys, slot[0]));
        Value movedIndex = lowering.createLoad(
            i32, lowering.createGep(i32, list.indices, below(above)));
        lowering.createStore(movedIndex,
                             lowering.createGep(i32, list.indices, above));
        scf::YieldOp::create(b, loc, above);
      });
  Value slot = loop.getResult(0);
  lowering.createStore(key, lowering.createGep(i32, list.keys, slot));
  lowering.createStore(index,
                       lowering.createGep(i32, list.indices, below(slot)));
}

void KernelLowering::lowerTopK(ssk::TopKOp op) {
  Type i32 = builder.getI32Type();
  SortedList list;
  list.length = op.getIndices().getType().getNumElements();
  list.indices = values.lookup(op.getIndices());
  list.keys = createScratch(i32, list.length + 1);
  createEmpty(*this, list);
  Value weights = values.lookup(op.getValues());
  Value count = createToI64(values.lookup(op.getCount()));
  count = arith::MinSIOp::create(
      builder, loc, count,
      createI64(op.getValues().getType().getNumElements()));
  auto loop =
      scf::ForOp::create(builder, loc, createI64(0), count, createI64(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar();
  Value x = createLoad(builder.getF32Type(),
                       createGep(builder.getF32Type(), weights, index));
  Value key = createOrderKey(*this, x);
  Value last = createLoad(i32, createGep(i32, list.keys, list.length));
  Value enters =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, key, last);
  auto insertion = scf::IfOp::create(builder, loc, enters,
                                     /*withElseRegion=*/false);
  builder.setInsertionPointToStart(&insertion.getThenRegion().front());
  Value number = arith::TruncIOp::create(builder, loc, i32, index);
  createInsertion(*this, list, key, number);
}
