//===- ExpressionTest.cpp - printed expressions mean what the IR means --------------===//
//
// Random scalar expressions in three ways: folded by MLIR, printed with their parts
// nested as the printer likes and compiled by the host. A lost pair of parentheses, a
// wrong operator or a literal of the wrong type shows as a different value.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "dialect/ssk/SSKDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;
using namespace mlir;

namespace {

/// A value and what MLIR's folders say it is.
struct Known {
  Value value;
  TypedAttr attr;
};

/// Builds random operations at a builder; every operation is folded as it is built.
class ExpressionMaker {
public:
  ExpressionMaker(OpBuilder &builder, unsigned seed) : b(builder), generator(seed) {}

  Known make(Type type, int depth) {
    if (depth == 0 || pick(8) == 0)
      return leaf(type);
    if (type.isF32() || type.isF64())
      return makeFloat(type, depth - 1);
    if (type.isInteger(1))
      return makeBool(depth - 1);
    return makeInteger(type, depth - 1);
  }

private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(generator); }
  Location loc() { return b.getUnknownLoc(); }

  Known leaf(Type type) {
    TypedAttr attr;
    if (isa<FloatType>(type))
      attr = b.getFloatAttr(type, (pick(4001) - 2000) / 64.0);
    else if (type.isInteger(1))
      attr = b.getBoolAttr(pick(2));
    else
      attr = b.getIntegerAttr(type, pick(41) - 20);
    return {arith::ConstantOp::create(b, loc(), attr), attr};
  }

  /// The operation with its folded value, or a leaf of the type where MLIR does not
  /// fold it: division by zero, overflow, values without a bound.
  template <typename OpTy, typename... Extra>
  Known build(Type type, ArrayRef<Known> operands, Extra... extra) {
    SmallVector<Value> values;
    SmallVector<Attribute> attrs;
    for (const Known &operand : operands) {
      values.push_back(operand.value);
      attrs.push_back(operand.attr);
    }
    auto op = create<OpTy>(values, extra...);
    SmallVector<OpFoldResult> results;
    if (succeeded(op->fold(attrs, results)) && !results.empty())
      if (auto attr = dyn_cast_or_null<TypedAttr>(dyn_cast<Attribute>(results[0]));
          attr && isModest(attr))
        return {op->getResult(0), attr};
    // A fold to one of the operands is a value that is known too.
    if (!results.empty())
      if (auto value = dyn_cast<Value>(results[0]))
        for (const Known &operand : operands)
          if (operand.value == value)
            return {op->getResult(0), operand.attr};
    op->erase();
    return leaf(type);
  }

  template <typename OpTy> Operation *create(ArrayRef<Value> values) {
    return OpTy::create(b, loc(), values[0].getType(), ValueRange(values)).getOperation();
  }
  template <typename OpTy> Operation *create(ArrayRef<Value> values, Type type) {
    return OpTy::create(b, loc(), type, values[0]).getOperation();
  }
  template <typename OpTy, typename Predicate>
  Operation *create(ArrayRef<Value> values, Predicate predicate) {
    return OpTy::create(b, loc(), predicate, values[0], values[1]).getOperation();
  }

  /// Kernels do not overflow; C++ would be undefined.
  bool isModest(TypedAttr attr) {
    if (auto real = dyn_cast<FloatAttr>(attr))
      return std::isfinite(real.getValueAsDouble()) && std::abs(real.getValueAsDouble()) < 1e9;
    return std::abs(cast<IntegerAttr>(attr).getValue().getSExtValue()) < (1 << 20);
  }

  Known makeFloat(Type type, int depth) {
    auto part = [&] { return make(type, depth); };
    switch (pick(12)) {
    case 0:
    case 1:
      return build<arith::AddFOp>(type, {part(), part()});
    case 2:
    case 3:
      return build<arith::SubFOp>(type, {part(), part()});
    case 4:
    case 5:
      return build<arith::MulFOp>(type, {part(), part()});
    case 6:
      return build<arith::DivFOp>(type, {part(), part()});
    case 7:
      return build<arith::NegFOp>(type, {part()});
    case 8:
      return pick(2) ? build<arith::MaximumFOp>(type, {part(), part()})
                     : build<arith::MinNumFOp>(type, {part(), part()});
    case 9:
      return pick(2) ? build<math::AbsFOp>(type, {part()}) : build<math::FloorOp>(type, {part()});
    case 10:
      return build<arith::SIToFPOp>(type, {make(b.getI32Type(), depth)}, type);
    default:
      return select(type, depth);
    }
  }

  Known makeInteger(Type type, int depth) {
    auto part = [&] { return make(type, depth); };
    auto shift = [&] {
      TypedAttr attr = b.getIntegerAttr(type, pick(5));
      return Known{arith::ConstantOp::create(b, loc(), attr), attr};
    };
    switch (pick(18)) {
    case 0:
      return build<arith::AddIOp>(type, {part(), part()});
    case 1:
    case 2:
      return build<arith::SubIOp>(type, {part(), part()});
    case 3:
    case 4:
      return build<arith::MulIOp>(type, {part(), part()});
    case 5:
      return build<arith::DivSIOp>(type, {part(), part()});
    case 6:
      return build<arith::RemSIOp>(type, {part(), part()});
    case 7:
      return build<arith::AndIOp>(type, {part(), part()});
    case 8:
      return build<arith::OrIOp>(type, {part(), part()});
    case 9:
      return build<arith::XOrIOp>(type, {part(), part()});
    case 10:
      return build<arith::ShLIOp>(type, {part(), shift()});
    case 11:
      return build<arith::ShRSIOp>(type, {part(), shift()});
    case 12:
      return pick(2) ? build<arith::MinSIOp>(type, {part(), part()})
                     : build<arith::MaxSIOp>(type, {part(), part()});
    case 13:
      return pick(2) ? build<arith::DivUIOp>(type, {part(), part()})
                     : build<arith::RemUIOp>(type, {part(), part()});
    case 14:
      return pick(2) ? build<arith::CeilDivSIOp>(type, {part(), part()})
                     : build<arith::FloorDivSIOp>(type, {part(), part()});
    case 15:
      return type.isInteger(64)
                 ? build<arith::ExtSIOp>(type, {make(b.getI32Type(), depth)}, type)
                 : build<arith::TruncIOp>(type, {make(b.getI64Type(), depth)}, type);
    case 16:
      return build<arith::ExtUIOp>(type, {make(b.getI1Type(), depth)}, type);
    default:
      return select(type, depth);
    }
  }

  Known makeBool(int depth) {
    Type type = b.getI1Type();
    switch (pick(6)) {
    case 0:
      return build<arith::AndIOp>(type, {make(type, depth), make(type, depth)});
    case 1:
      return build<arith::OrIOp>(type, {make(type, depth), make(type, depth)});
    case 2:
      return build<arith::XOrIOp>(type, {make(type, depth), make(type, depth)});
    case 3: {
      Type of = pick(2) ? Type(b.getF32Type()) : Type(b.getF64Type());
      return build<arith::CmpFOp>(type, {make(of, depth), make(of, depth)},
                                  arith::CmpFPredicate(pick(16)));
    }
    default: {
      Type of = pick(2) ? Type(b.getI32Type()) : Type(b.getI64Type());
      return build<arith::CmpIOp>(type, {make(of, depth), make(of, depth)},
                                  arith::CmpIPredicate(pick(10)));
    }
    }
  }

  Known select(Type type, int depth) {
    Known condition = make(b.getI1Type(), depth);
    Known yes = make(type, depth), no = make(type, depth);
    Value value = arith::SelectOp::create(b, loc(), condition.value, yes.value, no.value);
    bool isTrue = !cast<IntegerAttr>(condition.attr).getValue().isZero();
    return {value, isTrue ? yes.attr : no.attr};
  }

  OpBuilder &b;
  std::mt19937 generator;
};

constexpr int kExpressions = 150;

/// Adds `count` writes of random expressions of one type to a kernel; returns the
/// values that MLIR expects.
std::vector<TypedAttr> addExpressions(ssk::KernelOp kernel, unsigned argument, Type type,
                                      int count, unsigned seed) {
  OpBuilder b(kernel.getBody().front().getTerminator());
  ExpressionMaker maker(b, seed);
  std::vector<TypedAttr> expected;
  for (int i = 0; i < count; ++i) {
    Known known = maker.make(type, 5);
    Value at = arith::ConstantIndexOp::create(b, b.getUnknownLoc(), i);
    ssk::WriteOp::create(b, b.getUnknownLoc(), known.value, kernel.getBody().getArgument(argument),
                         ValueRange(at));
    expected.push_back(known.attr);
  }
  return expected;
}

TEST(PrintedExpressions, HaveTheValueThatMlirFolds) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  PreparedModule module(R"mlir(
ssk.kernel @expressions(%f: !ssk.global<f32> {ssk.name = "f"}, %d: !ssk.global<f64> {ssk.name = "d"},
                        %i: !ssk.global<i32> {ssk.name = "i"}, %l: !ssk.global<i64> {ssk.name = "l"}) {
  ssk.return
}
)mlir");
  ASSERT_TRUE(module);
  auto kernel = *module.get().getOps<ssk::KernelOp>().begin();
  Builder b(module.get().getContext());
  auto f = addExpressions(kernel, 0, b.getF32Type(), kExpressions, 1);
  auto d = addExpressions(kernel, 1, b.getF64Type(), kExpressions, 2);
  auto i = addExpressions(kernel, 2, b.getI32Type(), kExpressions, 3);
  auto l = addExpressions(kernel, 3, b.getI64Type(), kExpressions, 4);
  std::string text = module.printCuda();
  // The expressions are nested, not one variable an operation.
  int64_t operations = 0;
  kernel.walk([&](Operation *) { ++operations; });
  EXPECT_LT(3 * std::count(text.begin(), text.end(), '\n'), operations);

  EmulatedKernels emulated(module);
  std::vector<float> floats(kExpressions);
  std::vector<double> doubles(kExpressions);
  std::vector<int32_t> ints(kExpressions);
  std::vector<int64_t> longs(kExpressions);
  float *pf = floats.data();
  double *pd = doubles.data();
  int32_t *pi = ints.data();
  int64_t *pl = longs.data();
  const void *args[] = {&pf, &pd, &pi, &pl};
  emulated.run("expressions", args, 1);
  for (int e = 0; e < kExpressions; ++e) {
    EXPECT_EQ(double(floats[e]), cast<FloatAttr>(f[e]).getValueAsDouble()) << "f" << e;
    EXPECT_EQ(doubles[e], cast<FloatAttr>(d[e]).getValueAsDouble()) << "d" << e;
    EXPECT_EQ(ints[e], cast<IntegerAttr>(i[e]).getInt()) << "i" << e;
    EXPECT_EQ(longs[e], cast<IntegerAttr>(l[e]).getInt()) << "l" << e;
  }
}

} // namespace
