//===- ControlFlowTest.cpp - values that share variables through control flow -------===//
//
// Random kernels of nested loops and branches that carry scalars and tiles. The printer
// lets values share variables and updates them in place; a value that was overwritten too
// early shows as a difference from the CPU code, which keeps every value apart.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "dialect/ssk/SSKDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

#include <random>

using namespace sinkstate;
using namespace sinkstate::test;
using namespace mlir;

namespace {

/// Values that may be used at a place, by kind.
struct Visible {
  SmallVector<Value> scalars, tiles;
};

class KernelMaker {
public:
  KernelMaker(OpBuilder &b, Value memory, unsigned seed)
      : b(b), loc(b.getUnknownLoc()), memory(memory), generator(seed),
        tile(ssk::TileType::get({32}, b.getF32Type(), 0)) {}

  /// Fills the kernel at the builder: inputs, random statements, outputs.
  void make() {
    Visible visible;
    for (int i = 0; i < 2; ++i) {
      visible.scalars.push_back(ssk::ReadOp::create(b, loc, memory, ValueRange(index(i))));
      visible.tiles.push_back(
          ssk::LoadOp::create(b, loc, tile, memory, ValueRange(index(32 * (i + 1)))));
    }
    addStatements(visible, 7, 3);
    int64_t at = 128;
    for (Value scalar : visible.scalars)
      ssk::WriteOp::create(b, loc, scalar, memory, ValueRange(index(at++)));
    at = 192;
    for (Value value : visible.tiles) {
      ssk::StoreOp::create(b, loc, value, memory, ValueRange(index(at)));
      at += 32;
    }
  }

private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(generator); }
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }
  Value real(double x) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(x)));
  }
  Value any(ArrayRef<Value> values) { return values[pick(values.size())]; }

  /// 0.5 x - 0.25 y: stays small and depends on the order of its operands.
  Value mix(Value x, Value y) {
    Value half = arith::MulFOp::create(b, loc, x, real(0.5));
    Value quarter = arith::MulFOp::create(b, loc, y, real(0.25));
    return arith::SubFOp::create(b, loc, half, quarter);
  }

  void addStatements(Visible &visible, int count, int depth) {
    for (int i = 0; i < count; ++i)
      switch (pick(depth > 0 ? 6 : 4)) {
      case 0:
        visible.scalars.push_back(mix(any(visible.scalars), any(visible.scalars)));
        break;
      case 1:
        addMap(visible);
        break;
      case 2:
        addAccumulate(visible);
        break;
      case 3:
        visible.scalars.push_back(
            ssk::ReduceOp::create(b, loc, ssk::ReduceKind::Max, any(visible.tiles), 0));
        break;
      case 4:
        addLoop(visible, depth - 1);
        break;
      default:
        addBranch(visible, depth - 1);
      }
  }

  void addMap(Visible &visible) {
    Value scalar = any(visible.scalars);
    visible.tiles.push_back(ssk::MapOp::create(
        b, loc, tile, ValueRange{any(visible.tiles), any(visible.tiles)},
        [&](OpBuilder &, Location, ValueRange e) { return mix(mix(e[0], e[1]), scalar); }));
  }

  void addAccumulate(Visible &visible) {
    Value coefficient = ssk::SplatOp::create(b, loc, ssk::TileType::get({1}, b.getF32Type()),
                                             any(visible.scalars));
    Value row = ssk::LoadOp::create(b, loc, ssk::TileType::get({1, 32}, b.getF32Type(), 1), memory,
                                    ValueRange(index(32 * (1 + pick(2)))));
    // Half of what was there before, so that sums stay small.
    visible.tiles.push_back(
        ssk::AccumulateOp::create(b, loc, any(visible.tiles), coefficient, row));
  }

  SmallVector<Value> pickCarried(const Visible &visible) {
    SmallVector<Value> values;
    for (int i = 0, e = 1 + pick(2); i < e; ++i)
      values.push_back(any(visible.scalars));
    for (int i = 0, e = pick(3); i < e; ++i)
      values.push_back(any(visible.tiles));
    return values;
  }

  static void add(Visible &visible, ValueRange values) {
    for (Value value : values)
      (isa<ssk::TileType>(value.getType()) ? visible.tiles : visible.scalars).push_back(value);
  }

  /// Random visible values of the same types; the newest ones more often.
  SmallVector<Value> pickLike(const Visible &visible, TypeRange types) {
    SmallVector<Value> values;
    for (Type type : types) {
      ArrayRef<Value> pool = isa<ssk::TileType>(type) ? visible.tiles : visible.scalars;
      values.push_back(pick(2) ? pool.back() : any(pool));
    }
    return values;
  }

  void addLoop(Visible &visible, int depth) {
    SmallVector<Value> inits = pickCarried(visible);
    auto loop = scf::ForOp::create(b, loc, index(0), index(2 + pick(2)), index(1), inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Visible inside = visible;
    add(inside, loop.getRegionIterArgs());
    addStatements(inside, 3, depth);
    scf::YieldOp::create(b, loc, pickLike(inside, loop.getResultTypes()));
    add(visible, loop.getResults());
  }

  void addBranch(Visible &visible, int depth) {
    Value condition = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                            any(visible.scalars), real(0.05));
    SmallVector<Value> like = pickCarried(visible);
    SmallVector<Type> types(ValueRange(like).getTypes());
    auto branch = scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      Block &block = region->front();
      b.setInsertionPointToEnd(&block);
      Visible inside = visible;
      addStatements(inside, pick(3), depth);
      scf::YieldOp::create(b, loc, pickLike(inside, types));
    }
    add(visible, branch.getResults());
  }

  OpBuilder &b;
  Location loc;
  Value memory;
  std::mt19937 generator;
  Type tile;
};

constexpr int kKernels = 60;
constexpr size_t kElements = 4096;

TEST(ControlFlow, SharedVariablesKeepTheirValues) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  std::string text;
  for (int i = 0; i < kKernels; ++i)
    text += "ssk.kernel @kernel_" + std::to_string(i) +
            "(%x: !ssk.global<f32> {ssk.name = \"x\"}) attributes {programs_per_block = 1 : i64} "
            "{ ssk.return }\n";
  PreparedModule module(text, "builtin.module()");
  ASSERT_TRUE(module);
  unsigned seed = 0;
  int64_t shared = 0;
  for (auto kernel : module.get().getOps<ssk::KernelOp>()) {
    OpBuilder b(kernel.getBody().front().getTerminator());
    KernelMaker(b, kernel.getBody().getArgument(0), seed++).make();
    kernel.walk([&](scf::ForOp) { ++shared; });
  }
  ASSERT_GT(shared, 2 * kKernels) << "too few loops to mean anything";
  module.prepare();
  BothBackEnds both(module);
  for (int i = 0; i < kKernels; ++i) {
    SCOPED_TRACE("kernel " + std::to_string(i));
    std::mt19937 generator(i);
    std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
    std::vector<float> cpu(kElements);
    for (float &value : cpu)
      value = distribution(generator);
    std::vector<float> cuda = cpu;
    float *pCpu = cpu.data(), *pCuda = cuda.data();
    both.run("kernel_" + std::to_string(i), {&pCpu}, {&pCuda}, 1, i % 3);
    for (size_t e = 0; e < kElements; ++e)
      ASSERT_NEAR(cpu[e], cuda[e], 1e-5 * std::max(1.0f, std::abs(cpu[e]))) << "element " << e;
  }
}

/// The emulator sees a missing sync: without ssk-prepare a lane reads what another one has
/// not written yet.
TEST(ControlFlow, AMissingSyncIsSeen) {
  if (!EmulatedKernels::isAvailable())
    GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  const char *const text = R"mlir(
ssk.kernel @turn(%x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c31 = arith.constant 31 : index
  %s = ssk.alloc : !ssk.shared<32xf32>
  %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<32xf32, lanes = 0>
  ssk.store %t, %s[%c0] : !ssk.tile<32xf32, lanes = 0>, !ssk.shared<32xf32>
  %last = ssk.read %s[%c31] : !ssk.shared<32xf32>
  ssk.write %last, %x[%c0] : !ssk.global<f32>
  ssk.return
}
)mlir";
  for (bool prepared : {false, true}) {
    PreparedModule module(text, "builtin.module()");
    ASSERT_TRUE(module);
    if (prepared)
      module.prepare();
    EmulatedKernels emulated(module);
    std::vector<float> x(32);
    for (int i = 0; i < 32; ++i)
      x[i] = float(i + 1);
    float *px = x.data();
    const void *args[] = {&px};
    emulated.run("turn", args, 1);
    EXPECT_EQ(x[0] == 32.0f, prepared);
  }
}

} // namespace
