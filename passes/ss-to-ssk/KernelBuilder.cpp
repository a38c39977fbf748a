//===- KernelBuilder.cpp - a short hand for writing ssk kernels -----------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "dialect/ssk/SSKNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sinkstate {

using Values = KernelBuilder::Values;

void KernelBuilder::note(StringRef text) {
  loc = NameLoc::get(b.getStringAttr(text), source);
}

Value KernelBuilder::name(StringRef text, Value value) {
  value.setLoc(NameLoc::get(b.getStringAttr(text), value.getLoc()));
  return value;
}

//===----------------------------------------------------------------------===//
// Types and scratch
//===----------------------------------------------------------------------===//

Type KernelBuilder::lanes(ArrayRef<int64_t> shape, Type element) {
  return ssk::TileType::get(shape, element ? element : f32(),
                            static_cast<int64_t>(shape.size()) - 1);
}

Type KernelBuilder::lanesOfRows(ArrayRef<int64_t> shape, Type element) {
  return ssk::TileType::get(b.getContext(), shape, element, 0);
}

Type KernelBuilder::replicated(ArrayRef<int64_t> shape, Type element) {
  return ssk::TileType::get(shape, element ? element : f32());
}

Value KernelBuilder::shared(ArrayRef<int64_t> shape, Type element) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  return ssk::AllocOp::create(b, loc, ssk::SharedType::get(shape, element));
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value KernelBuilder::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

Value KernelBuilder::wide(double value) {
  return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(value));
}

Value KernelBuilder::constant(StringRef called, double value) {
  Value made = real(value);
  made.getDefiningOp()->setAttr(ssk::kConstantNameAttr, b.getStringAttr(called));
  return made;
}

Value KernelBuilder::integer(int32_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

Value KernelBuilder::toIndex(Value i) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), i);
}

Value KernelBuilder::toI32(Value i) {
  return arith::IndexCastOp::create(b, loc, i32(), i);
}

Value KernelBuilder::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, loc, x, y);
  return arith::AddIOp::create(b, loc, x, y);
}

Value KernelBuilder::sub(Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(b, loc, x, y);
  return arith::SubIOp::create(b, loc, x, y);
}

Value KernelBuilder::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, loc, x, y);
  return arith::MulIOp::create(b, loc, x, y);
}

Value KernelBuilder::div(Value x, Value y) {
  if (isFloat(x))
    return arith::DivFOp::create(b, loc, x, y);
  return arith::DivSIOp::create(b, loc, x, y);
}

Value KernelBuilder::rem(Value x, Value y) {
  return arith::RemSIOp::create(b, loc, x, y);
}

Value KernelBuilder::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}

Value KernelBuilder::neg(Value x) { return arith::NegFOp::create(b, loc, x); }
Value KernelBuilder::exp(Value x) { return math::ExpOp::create(b, loc, x); }
Value KernelBuilder::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }

Value KernelBuilder::softplus(Value x) {
  Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x,
                                        constant("softplus_linear_from", 20));
  Value soft = math::Log1pOp::create(b, loc, exp(x));
  return select(isLarge, x, soft);
}

Value KernelBuilder::sigmoid(Value x) {
  // exp(-x) overflows to infinity below -88, and 1 / infinity is the right 0.
  return div(real(1), add(real(1), exp(neg(x))));
}

Value KernelBuilder::max(Value x, Value y) {
  // A NaN on either side is the result: nothing hides it.
  return arith::MaximumFOp::create(b, loc, x, y);
}

Value KernelBuilder::select(Value c, Value x, Value y) {
  return arith::SelectOp::create(b, loc, c, x, y);
}

Value KernelBuilder::less(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}

Value KernelBuilder::atLeast(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, y);
}

Value KernelBuilder::equal(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}

Value KernelBuilder::both(Value x, Value y) { return bitAnd(x, y); }
Value KernelBuilder::either(Value x, Value y) { return bitOr(x, y); }

Value KernelBuilder::bitAnd(Value x, Value y) {
  return arith::AndIOp::create(b, loc, x, y);
}

Value KernelBuilder::bitOr(Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}

Value KernelBuilder::bitXor(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}

Value KernelBuilder::shiftRight(Value x, int64_t bits) {
  Value amount = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(x.getType(), bits));
  return arith::ShRUIOp::create(b, loc, x, amount);
}

Value KernelBuilder::bitcast(Type type, Value x) {
  return arith::BitcastOp::create(b, loc, type, x);
}

Value KernelBuilder::integer64(uint64_t bits) {
  return arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(static_cast<int64_t>(bits)));
}

Value KernelBuilder::lowHalf(Value i) {
  return arith::TruncIOp::create(b, loc, i32(), i);
}

Value KernelBuilder::highHalf(Value i) { return lowHalf(shiftRight(i, 32)); }

Value KernelBuilder::toI64(Value i) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), i);
}

Value KernelBuilder::extend(Value x) {
  return arith::ExtFOp::create(b, loc, f64(), x);
}

Value KernelBuilder::narrow(Value x) {
  return arith::TruncFOp::create(b, loc, f32(), x);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::read(Value ref, ValueRange at) {
  return ssk::ReadOp::create(b, loc, ref, at);
}

void KernelBuilder::write(Value x, Value ref, ValueRange at) {
  ssk::WriteOp::create(b, loc, x, ref, at);
}

/// The tile's shape and lanes with another element type.
static ssk::TileType withElement(ssk::TileType tile, Type element) {
  return ssk::TileType::get(tile.getContext(), tile.getShape(), element,
                            tile.getLanes());
}

double KernelBuilder::scaleOf(Value ref) {
  return isa<Float8E4M3FNType>(ssk::getMemoryElementType(ref.getType()))
             ? kByteScale
             : 1;
}

Value KernelBuilder::loadScaled(Type tile, Value ref, ValueRange at,
                                Value stride, Value limit) {
  Type element = ssk::getMemoryElementType(ref.getType());
  auto type = cast<ssk::TileType>(tile);
  if (element == type.getElementType())
    return ssk::LoadOp::create(b, loc, tile, ref, at, stride, limit);
  Value stored =
      name("stored", ssk::LoadOp::create(b, loc, withElement(type, element),
                                         ref, at, stride, limit));
  return map(tile, stored, [&](ValueRange e) -> Value {
    return arith::ExtFOp::create(b, loc, type.getElementType(), e[0]);
  });
}

Value KernelBuilder::load(Type tile, Value ref, ValueRange at, Value stride,
                          Value limit) {
  Value loaded = loadScaled(tile, ref, at, stride, limit);
  double scale = scaleOf(ref);
  if (scale == 1)
    return loaded;
  return map(tile, loaded,
             [&](ValueRange e) { return mul(e[0], constant("row_unit", 1 / scale)); });
}

void KernelBuilder::store(Value tile, Value ref, ValueRange at, Value stride,
                          Value limit) {
  Type element = ssk::getMemoryElementType(ref.getType());
  auto type = cast<ssk::TileType>(tile.getType());
  if (element != type.getElementType()) {
    double scale = scaleOf(ref);
    tile = name("rounded", map(withElement(type, element), tile,
                               [&](ValueRange e) -> Value {
                                 Value x = e[0];
                                 if (scale != 1)
                                   x = mul(x, constant("row_scale", scale));
                                 return arith::TruncFOp::create(b, loc, element, x);
                               }));
  }
  ssk::StoreOp::create(b, loc, tile, ref, at, stride, limit);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value KernelBuilder::splat(Type tile, Value scalar) {
  return ssk::SplatOp::create(b, loc, tile, scalar);
}

Value KernelBuilder::iota(Type tile) {
  return ssk::IotaOp::create(b, loc, tile);
}

Value KernelBuilder::map(Type tile, ValueRange inputs, Dims dims,
                         MapBody body) {
  return ssk::MapOp::create(b, loc, tile, inputs, dims,
                            [&](OpBuilder &, Location, ValueRange elements) {
                              return body(elements);
                            });
}

Value KernelBuilder::map(Type tile, ValueRange inputs, MapBody body) {
  return ssk::MapOp::create(b, loc, tile, inputs,
                            [&](OpBuilder &, Location, ValueRange elements) {
                              return body(elements);
                            });
}

Value KernelBuilder::dot(Value a, Value x) {
  return ssk::DotOp::create(b, loc, a, x);
}

Value KernelBuilder::accumulate(Value acc, Value coef, Value rows) {
  return ssk::AccumulateOp::create(b, loc, acc, coef, rows);
}

Value KernelBuilder::reduceMax(Value tile) {
  return ssk::ReduceOp::create(b, loc, ssk::ReduceKind::Max, tile,
                               /*axis=*/0);
}

Value KernelBuilder::reduceAdd(Value tile, int64_t axis) {
  return ssk::ReduceOp::create(b, loc, ssk::ReduceKind::Add, tile, axis);
}

void KernelBuilder::copy(Value global, Value offset, Value scratch, Value row,
                         Value limit) {
  auto target = cast<ssk::SharedType>(scratch.getType());
  if (target.getElementType() !=
      ssk::getMemoryElementType(global.getType())) {
    Type whole = lanes(target.getShape().back(), target.getElementType());
    SmallVector<Value> at;
    if (row)
      at.push_back(row);
    at.push_back(index(0));
    return store(load(whole, global, offset, Value(), limit), scratch, at);
  }
  ssk::CopyOp::create(b, loc, global, offset, scratch, row, limit);
}

void KernelBuilder::waitCopies() { ssk::WaitCopiesOp::create(b, loc); }

void KernelBuilder::matmul(Value a, Value x, Value into, bool transposeA,
                           bool transposeB) {
  ssk::MatmulOp::create(b, loc, a, x, into, transposeA, transposeB);
}

void KernelBuilder::addMatmul(Value a, Value x, Value into, bool transposeA,
                              bool transposeB, Value limit) {
  ssk::MatmulOp::create(b, loc, a, x, into, transposeA, transposeB,
                        /*accumulate=*/true, limit);
}

void KernelBuilder::matmulRows(Value a, Value x, Value into, bool transposeA,
                               bool transposeB, Value limit) {
  ssk::MatmulOp::create(b, loc, a, x, into, transposeA, transposeB,
                        /*accumulate=*/false, limit);
}

void KernelBuilder::topK(Value weights, Value count, Value into) {
  ssk::TopKOp::create(b, loc, weights, count, into);
}

Value KernelBuilder::call(StringRef routine, ValueRange arguments,
                          ArrayRef<int64_t> reads, ArrayRef<int64_t> writes) {
  return ssk::CallOp::create(b, loc, routine, arguments, reads, writes);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

Values KernelBuilder::loop(Value from, Value to, int64_t step,
                           ValueRange carried, LoopBody body) {
  auto forOp = scf::ForOp::create(
      b, loc, from, to, index(step), carried,
      [&](OpBuilder &, Location, Value iv, ValueRange inside) {
        Location outer = loc;
        Values next = body(iv, inside);
        scf::YieldOp::create(b, loc, next);
        loc = outer;
      });
  return Values(forOp.getResults());
}

void KernelBuilder::loop(Value from, Value to, int64_t step,
                         llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value iv, ValueRange) -> Values {
    body(iv);
    return {};
  });
}

void KernelBuilder::independentLoop(int64_t to, int64_t step,
                                    llvm::function_ref<void(Value)> body) {
  Value end = index(to);
  loop(index(0), end, step, body);
  b.getInsertionBlock()->back().setAttr(ssk::SSKDialect::kIndependentAttr,
                                        b.getUnitAttr());
}

void KernelBuilder::overWarps(Value to,
                              llvm::function_ref<void(Value)> body) {
  loop(index(0), to, 1, body);
  auto forOp = cast<scf::ForOp>(*std::prev(b.getInsertionPoint()));
  forOp->setAttr(ssk::SSKDialect::kOverWarpsAttr, b.getUnitAttr());
}

Values KernelBuilder::parts(int64_t count, TypeRange sums,
                            llvm::function_ref<Values(Value)> body,
                            llvm::function_ref<Values(ValueRange)> last) {
  Location outer = loc;
  auto partsOp = ssk::PartsOp::create(b, loc, count, sums, body, last);
  loc = outer;
  return Values(partsOp.getResults());
}

Values KernelBuilder::choose(Value condition, llvm::function_ref<Values()> then,
                             llvm::function_ref<Values()> otherwise) {
  auto region = [&](llvm::function_ref<Values()> body) {
    return [this, body](OpBuilder &, Location) {
      Location outer = loc;
      Values results = body();
      scf::YieldOp::create(b, loc, results);
      loc = outer;
    };
  };
  auto ifOp = scf::IfOp::create(b, loc, condition, region(then),
                                region(otherwise));
  return Values(ifOp.getResults());
}

void KernelBuilder::branch(Value condition, llvm::function_ref<void()> then,
                           llvm::function_ref<void()> otherwise) {
  auto region = [&](llvm::function_ref<void()> body) {
    return [this, body](OpBuilder &, Location) {
      Location outer = loc;
      body();
      scf::YieldOp::create(b, loc);
      loc = outer;
    };
  };
  auto thenRegion = region(then);
  if (otherwise) {
    auto elseRegion = region(otherwise);
    scf::IfOp::create(b, loc, condition, thenRegion, elseRegion);
  } else {
    scf::IfOp::create(b, loc, condition, thenRegion);
  }
}

} // namespace sinkstate
