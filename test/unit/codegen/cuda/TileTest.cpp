//===- TileTest.cpp - the device library and the printer, operation by operation ----===//
//
// Every operation, printed as CUDA C++ and run by an emulated warp, against the CPU
// back end's code for the same kernel.
//
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace sinkstate::test;

namespace {

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

/// `text` with every `$name` replaced.
std::string fill(std::string text, const std::vector<std::pair<std::string, int64_t>> &values) {
  for (const auto &[name, value] : values)
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), std::to_string(value));
  return text;
}

template <typename T>
void expectEqual(const std::vector<T> &cpu, const std::vector<T> &cuda, double tolerance) {
  ASSERT_EQ(cpu.size(), cuda.size());
  for (size_t i = 0; i < cpu.size(); ++i) {
    if (std::isnan(double(cpu[i])) && std::isnan(double(cuda[i])))
      continue;
    ASSERT_NEAR(double(cpu[i]), double(cuda[i]),
                tolerance * std::max(1.0, std::abs(double(cpu[i]))))
        << "element " << i;
  }
}

class EmulatedCuda : public testing::Test {
protected:
  void SetUp() override {
    if (!EmulatedKernels::isAvailable())
      GTEST_SKIP() << "no C++ compiler at " SS_TEST_CXX " to compile printed kernels with";
  }
};

/// Loads, stores, contractions and reductions of tiles whose rows have $N elements.
/// Results go to y in pieces of 8 $N elements.
const char *const kTileKernel = R"mlir(
ssk.kernel @tiles_$N(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f32> {ssk.name = "y"},
                     %n: i32 {ssk.name = "n"}) attributes {programs_per_block = 2 : i64} {
  %p = ssk.program_id : index
  %size = arith.constant $T : index
  %piece = arith.constant $P : index
  %length = arith.constant $N : index
  %from = arith.muli %p, %size : index
  %limit = arith.index_cast %n : i32 to index
  %c1 = arith.constant 1 : index
  %odd = arith.addi %length, %c1 : index

  %a = ssk.load %x[%from] : !ssk.global<f32> -> !ssk.tile<$Nxf32, lanes = 0>
  %b = ssk.load %x[%from] limit %limit : !ssk.global<f32> -> !ssk.tile<$Nxf32, lanes = 0>
  %r = ssk.load %x[%from] stride %odd limit %limit : !ssk.global<f32> -> !ssk.tile<3x$Nxf32, lanes = 1>
  %c = ssk.load %x[%from] : !ssk.global<f32> -> !ssk.tile<$Nx4xf32, lanes = 0>
  %m = ssk.map (%r, %a) dims [[0, 1], [1]] : (!ssk.tile<3x$Nxf32, lanes = 1>, !ssk.tile<$Nxf32, lanes = 0>) -> !ssk.tile<3x$Nxf32, lanes = 1> {
  ^bb0(%e: f32, %f: f32):
    %g = arith.mulf %e, %f : f32
    %h = math.exp %g : f32
    %k = arith.addf %h, %g : f32
    ssk.yield %k : f32
  }
  %d = ssk.dot %m, %b : !ssk.tile<3x$Nxf32, lanes = 1>, !ssk.tile<$Nxf32, lanes = 0> -> !ssk.tile<3xf32>
  %sum = ssk.accumulate %a, %d, %m : !ssk.tile<$Nxf32, lanes = 0>, !ssk.tile<3xf32>, !ssk.tile<3x$Nxf32, lanes = 1>
  %rows_max = ssk.reduce max %m axis 1 : !ssk.tile<3x$Nxf32, lanes = 1> -> !ssk.tile<3xf32>
  %first_min = ssk.reduce min %m axis 0 : !ssk.tile<3x$Nxf32, lanes = 1> -> !ssk.tile<$Nxf32, lanes = 0>
  %column_sums = ssk.reduce add %c axis 0 : !ssk.tile<$Nx4xf32, lanes = 0> -> !ssk.tile<4xf32>
  %row_sums = ssk.reduce add %c axis 1 : !ssk.tile<$Nx4xf32, lanes = 0> -> !ssk.tile<$Nxf32, lanes = 0>
  %all = ssk.reduce add %d axis 0 : !ssk.tile<3xf32> -> f32
  %ab = ssk.dot %a, %sum : !ssk.tile<$Nxf32, lanes = 0>, !ssk.tile<$Nxf32, lanes = 0> -> f32
  %low = ssk.reduce min %m axis 1 : !ssk.tile<3x$Nxf32, lanes = 1> -> !ssk.tile<3xf32>

  %0 = arith.constant 0 : index
  %1 = arith.addi %from, %piece : index
  %2 = arith.addi %1, %piece : index
  %3 = arith.addi %2, %piece : index
  %4 = arith.addi %3, %piece : index
  %5 = arith.addi %4, %piece : index
  %6 = arith.addi %5, %piece : index
  %7 = arith.addi %6, %piece : index
  ssk.store %b, %y[%from] : !ssk.tile<$Nxf32, lanes = 0>, !ssk.global<f32>
  ssk.store %m, %y[%1] stride %odd limit %limit : !ssk.tile<3x$Nxf32, lanes = 1>, !ssk.global<f32>
  ssk.store %sum, %y[%2] limit %limit : !ssk.tile<$Nxf32, lanes = 0>, !ssk.global<f32>
  ssk.store %first_min, %y[%3] : !ssk.tile<$Nxf32, lanes = 0>, !ssk.global<f32>
  ssk.store %row_sums, %y[%4] : !ssk.tile<$Nxf32, lanes = 0>, !ssk.global<f32>
  ssk.store %c, %y[%5] limit %limit : !ssk.tile<$Nx4xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %d, %y[%6] limit %limit : !ssk.tile<3xf32>, !ssk.global<f32>
  ssk.store %column_sums, %y[%7] : !ssk.tile<4xf32>, !ssk.global<f32>
  %c4 = arith.constant 4 : index
  %8 = arith.addi %7, %c4 : index
  ssk.store %rows_max, %y[%8] : !ssk.tile<3xf32>, !ssk.global<f32>
  %9 = arith.addi %8, %c4 : index
  ssk.store %low, %y[%9] : !ssk.tile<3xf32>, !ssk.global<f32>
  %10 = arith.addi %9, %c4 : index
  ssk.write %all, %y[%10] : !ssk.global<f32>
  %11 = arith.addi %10, %c1 : index
  ssk.write %ab, %y[%11] : !ssk.global<f32>
  ssk.return
}
)mlir";

TEST_F(EmulatedCuda, TilesOfEveryLengthAndLimit) {
  const std::vector<int64_t> lengths = {1, 33, 80, 128, 160};
  auto pieceOf = [](int64_t n) { return 4 * (n + 8) + 16; };
  std::string text;
  for (int64_t n : lengths)
    text += fill(kTileKernel, {{"$N", n}, {"$P", pieceOf(n)}, {"$T", 8 * pieceOf(n)}});
  PreparedModule module(text);
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  const int64_t programs = 3;
  for (int64_t n : lengths)
    for (int32_t limit : {0, 1, 2, int32_t(n), int32_t(n) + 5}) {
      SCOPED_TRACE("length " + std::to_string(n) + ", limit " + std::to_string(limit));
      std::vector<float> x = randomFloats(programs * 8 * pieceOf(n), unsigned(n));
      std::vector<float> cpu(x.size(), -7.0f), cuda(x.size(), -7.0f);
      const float *px = x.data();
      float *pCpu = cpu.data(), *pCuda = cuda.data();
      both.run("tiles_" + std::to_string(n), {&px, &pCpu, &limit}, {&px, &pCuda, &limit}, programs,
               limit % 3);
      expectEqual(cpu, cuda, 2e-5);
    }
}

/// Scratch: fill, matrix products with every transposition and mixture of types,
/// some in place of a factor.
const char *const kMatmulKernel = R"mlir(
ssk.kernel @products(%x: !ssk.global<f32> {ssk.name = "x"}, %y: !ssk.global<f64> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c15 = arith.constant 15 : index
  %c30 = arith.constant 30 : index
  %c60 = arith.constant 60 : index
  %c90 = arith.constant 90 : index
  %zero = arith.constant 0.5 : f64
  %a = ssk.alloc : !ssk.shared<3x5xf32>
  %at = ssk.alloc : !ssk.shared<5x3xf32>
  %c = ssk.alloc : !ssk.shared<3x3xf64>
  %d = ssk.alloc : !ssk.shared<5x5xf64>
  %e = ssk.alloc : !ssk.shared<5x3xf32>
  ssk.fill %d, %zero : !ssk.shared<5x5xf64>
  %ta = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<3x5xf32, lanes = 1>
  ssk.store %ta, %a[%c0, %c0] : !ssk.tile<3x5xf32, lanes = 1>, !ssk.shared<3x5xf32>
  %tb = ssk.load %x[%c15] : !ssk.global<f32> -> !ssk.tile<5x3xf32, lanes = 1>
  ssk.store %tb, %at[%c0, %c0] : !ssk.tile<5x3xf32, lanes = 1>, !ssk.shared<5x3xf32>
  ssk.matmul %a, %at into %c : !ssk.shared<3x5xf32>, !ssk.shared<5x3xf32>, !ssk.shared<3x3xf64>
  %r0 = ssk.load %c[%c0, %c0] : !ssk.shared<3x3xf64> -> !ssk.tile<3x3xf64, lanes = 1>
  ssk.store %r0, %y[%c0] : !ssk.tile<3x3xf64, lanes = 1>, !ssk.global<f64>
  ssk.matmul %at, %c into %e : !ssk.shared<5x3xf32>, !ssk.shared<3x3xf64>, !ssk.shared<5x3xf32>
  ssk.matmul %e, %at into %d {transpose_b} : !ssk.shared<5x3xf32>, !ssk.shared<5x3xf32>, !ssk.shared<5x5xf64>
  %r1 = ssk.load %d[%c0, %c0] : !ssk.shared<5x5xf64> -> !ssk.tile<5x5xf64, lanes = 1>
  ssk.store %r1, %y[%c30] : !ssk.tile<5x5xf64, lanes = 1>, !ssk.global<f64>
  ssk.matmul %a, %a into %d {transpose_a} : !ssk.shared<3x5xf32>, !ssk.shared<3x5xf32>, !ssk.shared<5x5xf64>
  %r2 = ssk.load %d[%c0, %c0] : !ssk.shared<5x5xf64> -> !ssk.tile<5x5xf64, lanes = 1>
  ssk.store %r2, %y[%c60] : !ssk.tile<5x5xf64, lanes = 1>, !ssk.global<f64>
  ssk.matmul %c, %a into %a : !ssk.shared<3x3xf64>, !ssk.shared<3x5xf32>, !ssk.shared<3x5xf32>
  ssk.matmul %a, %at into %c : !ssk.shared<3x5xf32>, !ssk.shared<5x3xf32>, !ssk.shared<3x3xf64>
  ssk.matmul %e, %c into %e : !ssk.shared<5x3xf32>, !ssk.shared<3x3xf64>, !ssk.shared<5x3xf32>
  ssk.matmul %a, %e into %c : !ssk.shared<3x5xf32>, !ssk.shared<5x3xf32>, !ssk.shared<3x3xf64>
  %r3 = ssk.load %c[%c0, %c0] : !ssk.shared<3x3xf64> -> !ssk.tile<3x3xf64, lanes = 1>
  ssk.store %r3, %y[%c90] : !ssk.tile<3x3xf64, lanes = 1>, !ssk.global<f64>
  ssk.return
}
)mlir";

TEST_F(EmulatedCuda, MatrixProducts) {
  PreparedModule module(kMatmulKernel);
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  std::vector<float> x = randomFloats(30, 3);
  for (int order : {0, 1, 2}) {
    std::vector<double> cpu(99), cuda(99);
    const float *px = x.data();
    double *pCpu = cpu.data(), *pCuda = cuda.data();
    both.run("products", {&px, &pCpu}, {&px, &pCuda}, 1, order);
    expectEqual(cpu, cuda, 1e-14);
  }
}

const char *const kTopKKernel = R"mlir(
ssk.kernel @top(%x: !ssk.global<f32> {ssk.name = "x"}, %n: i32 {ssk.name = "n"}, %y: !ssk.global<i32> {ssk.name = "y"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %count = arith.index_cast %n : i32 to index
  %w = ssk.alloc : !ssk.shared<70xf32>
  %i = ssk.alloc : !ssk.shared<40xi32>
  %t = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<70xf32, lanes = 0>
  ssk.store %t, %w[%c0] : !ssk.tile<70xf32, lanes = 0>, !ssk.shared<70xf32>
  ssk.top_k %w count %count into %i : !ssk.shared<70xf32>, !ssk.shared<40xi32>
  %r = ssk.load %i[%c0] : !ssk.shared<40xi32> -> !ssk.tile<40xi32, lanes = 0>
  ssk.store %r, %y[%c0] : !ssk.tile<40xi32, lanes = 0>, !ssk.global<i32>
  ssk.return
}
)mlir";

TEST_F(EmulatedCuda, TopKWithTiesAndNaN) {
  PreparedModule module(kTopKKernel);
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  std::vector<float> x = randomFloats(70, 5);
  for (int i : {3, 9, 40})
    x[i] = std::numeric_limits<float>::quiet_NaN();
  x[10] = x[20] = x[30] = 0.25f;
  x[11] = 0.0f;
  x[12] = -0.0f;
  x[13] = std::numeric_limits<float>::infinity();
  for (int32_t n : {0, 1, 5, 33, 39, 40, 41, 70}) {
    SCOPED_TRACE(n);
    std::vector<int32_t> cpu(40), cuda(40);
    const float *px = x.data();
    int32_t *pCpu = cpu.data(), *pCuda = cuda.data();
    both.run("top", {&px, &n, &pCpu}, {&px, &n, &pCuda}, 1, n % 3);
    EXPECT_EQ(cpu, cuda);
  }
}

/// Integer and double tiles, and half precision storage that a map widens.
const char *const kTypesKernel = R"mlir(
ssk.kernel @types(%d: !ssk.global<f64> {ssk.name = "d"}, %i: !ssk.global<i32> {ssk.name = "i"}, %l: !ssk.global<i64> {ssk.name = "l"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c100 = arith.constant 100 : index
  %c200 = arith.constant 200 : index
  %a = ssk.load %d[%c0] : !ssk.global<f64> -> !ssk.tile<100xf64, lanes = 0>
  %s = ssk.reduce add %a axis 0 : !ssk.tile<100xf64, lanes = 0> -> f64
  ssk.write %s, %d[%c100] : !ssk.global<f64>
  %b = ssk.load %i[%c0] : !ssk.global<i32> -> !ssk.tile<100xi32, lanes = 0>
  %m = ssk.reduce max %b axis 0 : !ssk.tile<100xi32, lanes = 0> -> i32
  %q = ssk.reduce min %b axis 0 : !ssk.tile<100xi32, lanes = 0> -> i32
  %w = ssk.map (%b, %a) dims [[0], [0]] : (!ssk.tile<100xi32, lanes = 0>, !ssk.tile<100xf64, lanes = 0>) -> !ssk.tile<100xi64, lanes = 0> {
  ^bb0(%e: i32, %f: f64):
    %g = arith.extsi %e : i32 to i64
    %h = arith.fptosi %f : f64 to i64
    %k = arith.addi %g, %h : i64
    ssk.yield %k : i64
  }
  ssk.store %w, %l[%c0] : !ssk.tile<100xi64, lanes = 0>, !ssk.global<i64>
  %t = ssk.reduce min %w axis 0 : !ssk.tile<100xi64, lanes = 0> -> i64
  ssk.write %t, %l[%c100] : !ssk.global<i64>
  ssk.write %m, %i[%c100] : !ssk.global<i32>
  ssk.write %q, %i[%c200] : !ssk.global<i32>
  ssk.return
}
)mlir";

/// Half precision is storage: rows are widened after a load and rounded before a store.
const char *const kHalfKernel = R"mlir(
ssk.kernel @half(%h: !ssk.global<$T> {ssk.name = "h"}, %x: !ssk.global<f32> {ssk.name = "x"}) attributes {programs_per_block = 1 : i64} {
  %c0 = arith.constant 0 : index
  %a = ssk.load %h[%c0] : !ssk.global<$T> -> !ssk.tile<80x$T, lanes = 0>
  %b = ssk.load %x[%c0] : !ssk.global<f32> -> !ssk.tile<80xf32, lanes = 0>
  %w = ssk.map (%a, %b) dims [[0], [0]] : (!ssk.tile<80x$T, lanes = 0>, !ssk.tile<80xf32, lanes = 0>) -> !ssk.tile<80xf32, lanes = 0> {
  ^bb0(%e: $T, %f: f32):
    %g = arith.extf %e : $T to f32
    %s = arith.addf %g, %f : f32
    ssk.yield %s : f32
  }
  %r = ssk.map (%w) dims [[0]] : (!ssk.tile<80xf32, lanes = 0>) -> !ssk.tile<80x$T, lanes = 0> {
  ^bb0(%e: f32):
    %g = arith.truncf %e : f32 to $T
    ssk.yield %g : $T
  }
  ssk.store %w, %x[%c0] : !ssk.tile<80xf32, lanes = 0>, !ssk.global<f32>
  ssk.store %r, %h[%c0] : !ssk.tile<80x$T, lanes = 0>, !ssk.global<$T>
  ssk.return
}
)mlir";

TEST_F(EmulatedCuda, HalfPrecisionStorage) {
  for (const char *type : {"f16", "bf16"}) {
    SCOPED_TRACE(type);
    std::string text = kHalfKernel;
    for (size_t at = text.find("$T"); at != std::string::npos; at = text.find("$T", at))
      text.replace(at, 2, type);
    PreparedModule module(text);
    ASSERT_TRUE(module);
    EXPECT_NE(module.printCuda().find("ss::load_lanes<uint2, 80>"), std::string::npos);
    BothBackEnds both(module);
    // Bits of small positive and negative numbers.
    std::vector<uint16_t> h(80);
    for (int i = 0; i < 80; ++i)
      h[i] = uint16_t(0x3800 + 37 * i + (i % 2 ? 0x8000 : 0));
    std::vector<float> x = randomFloats(80, 9);
    auto h2 = h;
    auto x2 = x;
    uint16_t *ph = h.data(), *ph2 = h2.data();
    float *px = x.data(), *px2 = x2.data();
    both.run("half", {&ph, &px}, {&ph2, &px2}, 1);
    EXPECT_EQ(h, h2);
    EXPECT_EQ(x, x2);
  }
}

TEST_F(EmulatedCuda, TilesOfEveryElementType) {
  PreparedModule module(kTypesKernel);
  ASSERT_TRUE(module);
  BothBackEnds both(module);
  std::vector<double> d(201);
  std::vector<int32_t> i(201);
  std::vector<int64_t> l(201);
  for (int e = 0; e < 100; ++e) {
    d[e] = 100.0 * std::sin(e * 3.7);
    i[e] = (e * 7919) % 1000 - 500;
  }
  auto d2 = d;
  auto i2 = i;
  auto l2 = l;
  double *pd = d.data(), *pd2 = d2.data();
  int32_t *pi = i.data(), *pi2 = i2.data();
  int64_t *pl = l.data(), *pl2 = l2.data();
  both.run("types", {&pd, &pi, &pl}, {&pd2, &pi2, &pl2}, 1);
  expectEqual(d, d2, 1e-13);
  EXPECT_EQ(i, i2);
  EXPECT_EQ(l, l2);
}

} // namespace
