//===- ControlTest.cpp - loops, branches, programs and calls --------------===//
#include "CpuTest.h"

#include <cmath>

using namespace sinkstate::test;

namespace {

class ControlTest : public CpuTest {};

/// y = sum over n rows of (row . x) row, four rows at a time, as decode does.
const char *const kRowsKernel = R"(
  ssk.kernel @f(%rows: !ssk.global<f32> {ssk.name = "rows"}, %x: !ssk.global<f32> {ssk.name = "x"},
                %y: !ssk.global<f32> {ssk.name = "y"}, %rank: !ssk.global<i32> {ssk.name = "rank"}) {
    %p = ssk.program_id : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c80 = arith.constant 80 : index
    %c800 = arith.constant 800 : index
    %zero = arith.constant 0.0 : f32
    %base = arith.muli %p, %c800 : index
    %out = arith.muli %p, %c80 : index
    %n32 = ssk.read %rank[%p] : !ssk.global<i32>
    %n = arith.index_cast %n32 : i32 to index
    %v = ssk.load %x[%out] : !ssk.global<f32> -> !ssk.tile<80xf32, lanes = 0>
    %none = ssk.splat %zero : f32 -> !ssk.tile<80xf32, lanes = 0>
    %sum, %count = scf.for %i = %c0 to %n step %c4 iter_args(%acc = %none, %k = %c0) -> (!ssk.tile<80xf32, lanes = 0>, index) {
      %left = arith.subi %n, %i : index
      %row = arith.muli %i, %c80 : index
      %at = arith.addi %base, %row : index
      %t = ssk.load %rows[%at] stride %c80 limit %left : !ssk.global<f32> -> !ssk.tile<4x80xf32, lanes = 1>
      %d = ssk.dot %t, %v : !ssk.tile<4x80xf32, lanes = 1>, !ssk.tile<80xf32, lanes = 0> -> !ssk.tile<4xf32>
      %a = ssk.accumulate %acc, %d, %t : !ssk.tile<80xf32, lanes = 0>, !ssk.tile<4xf32>, !ssk.tile<4x80xf32, lanes = 1>
      %k1 = arith.addi %k, %c1 : index
      scf.yield %a, %k1 : !ssk.tile<80xf32, lanes = 0>, index
    }
    %some = arith.cmpi sgt, %count, %c0 : index
    %result = scf.if %some -> (!ssk.tile<80xf32, lanes = 0>) {
      scf.yield %sum : !ssk.tile<80xf32, lanes = 0>
    } else {
      %minus = arith.constant -1.0 : f32
      %m = ssk.splat %minus : f32 -> !ssk.tile<80xf32, lanes = 0>
      scf.yield %m : !ssk.tile<80xf32, lanes = 0>
    }
    %positive = arith.cmpi sge, %n32, %n32 : i32
    scf.if %positive {
      ssk.store %result, %y[%out] : !ssk.tile<80xf32, lanes = 0>, !ssk.global<f32>
    }
    ssk.return
  })";

TEST_P(ControlTest, TilesGoThroughLoopsAndBranches) {
  Kernels kernels(kRowsKernel, GetParam());
  std::vector<int32_t> rank = {0, 1, 4, 5, 10};
  auto rows = randomVector<float>(800 * 5, 1), x = randomVector<float>(400, 2);
  std::vector<float> y(400, 7.0f);
  kernels.run("f", 0, 5, rows.data(), x.data(), y.data(), rank.data());
  for (int p = 0; p < 5; ++p) {
    std::vector<double> expected(80, rank[p] == 0 ? -1.0 : 0.0);
    for (int i = 0; i < rank[p]; ++i) {
      const float *row = &rows[800 * p + 80 * i];
      double dot = 0;
      for (int j = 0; j < 80; ++j)
        dot += double(row[j]) * x[80 * p + j];
      for (int j = 0; j < 80; ++j)
        expected[j] += dot * row[j];
    }
    for (int j = 0; j < 80; ++j)
      EXPECT_NEAR(y[80 * p + j], expected[j], 2e-5) << "program " << p;
  }
}

TEST_P(ControlTest, RangesOfProgramsGiveTheSameBits) {
  Kernels kernels(kRowsKernel, GetParam());
  std::vector<int32_t> rank = {3, 10, 0, 7, 8, 9, 1};
  auto rows = randomVector<float>(800 * 7, 1), x = randomVector<float>(560, 2);
  std::vector<float> once(560), parts(560, 7.0f);
  kernels.run("f", 0, 7, rows.data(), x.data(), once.data(), rank.data());
  kernels.run("f", 3, 7, rows.data(), x.data(), parts.data(), rank.data());
  for (int i = 0; i < 240; ++i)
    EXPECT_EQ(parts[i], 7.0f) << "programs outside the range write nothing";
  kernels.run("f", 0, 3, rows.data(), x.data(), parts.data(), rank.data());
  kernels.run("f", 2, 2, rows.data(), x.data(), parts.data(), rank.data());
  EXPECT_EQ(once, parts);
}

int32_t testOrthogonalize(int32_t m, double *gram, double *t) {
  for (int i = 0; i < m * m; ++i)
    t[i] = 2 * gram[i];
  return 40 + m;
}

int32_t testCoreSvd(int32_t m, double *c, double *xt, double *sigma,
                    double *yt) {
  for (int i = 0; i < m; ++i)
    sigma[i] = c[i * m + i];
  xt[0] = 5;
  yt[0] = 6;
  return -m;
}

TEST_P(ControlTest, CallsGoThroughTheTable) {
  std::string text = R"(
    ssk.kernel @f(%o: !ssk.global<f64> {ssk.name = "o"}, %s: !ssk.global<i32> {ssk.name = "s"},
                  %m: i32 {ssk.name = "m"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %three = arith.constant 3.0 : f64
      %g = ssk.alloc : !ssk.shared<3x3xf64>
      %t = ssk.alloc : !ssk.shared<3x3xf64>
      %x = ssk.alloc : !ssk.shared<3x3xf64>
      %y = ssk.alloc : !ssk.shared<3x3xf64>
      %d = ssk.alloc : !ssk.shared<3xf64>
      ssk.fill %g, %three : !ssk.shared<3x3xf64>
      ssk.fill %x, %three : !ssk.shared<3x3xf64>
      ssk.fill %y, %three : !ssk.shared<3x3xf64>
      %a = ssk.call @ss_orthogonalize(%m, %g, %t) reads [1] writes [1, 2] : (i32, !ssk.shared<3x3xf64>, !ssk.shared<3x3xf64>) -> i32
      ssk.write %a, %s[%c0] : !ssk.global<i32>
      %b = ssk.call @ss_core_svd(%m, %t, %x, %d, %y) reads [1] writes [1, 2, 3, 4]
          : (i32, !ssk.shared<3x3xf64>, !ssk.shared<3x3xf64>, !ssk.shared<3xf64>, !ssk.shared<3x3xf64>) -> i32
      ssk.write %b, %s[%c1] : !ssk.global<i32>
      %u = ssk.load %d[%c0] : !ssk.shared<3xf64> -> !ssk.tile<3xf64, lanes = 0>
      ssk.store %u, %o[%c0] : !ssk.tile<3xf64, lanes = 0>, !ssk.global<f64>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  ss_routine_table table = {SS_ABI_VERSION, 2, testOrthogonalize, testCoreSvd,
                            nullptr, nullptr};
  std::vector<double> o(3);
  std::vector<int32_t> s(2);
  kernels.runWith(table, "f", 0, 1, o.data(), s.data(), int32_t(3));
  EXPECT_EQ(o, (std::vector<double>{6, 6, 6}));
  EXPECT_EQ(s, (std::vector<int32_t>{43, -3}));
}

TEST_P(ControlTest, ArgumentsThatMayAliasMayBeEqual) {
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a", ssk.may_alias},
                  %b: !ssk.global<f32> {ssk.name = "b", ssk.may_alias}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = ssk.read %a[%c0] : !ssk.global<f32>
      %y = arith.addf %x, %x : f32
      ssk.write %y, %b[%c0] : !ssk.global<f32>
      %z = ssk.read %a[%c0] : !ssk.global<f32>
      ssk.write %z, %b[%c1] : !ssk.global<f32>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  std::vector<float> a = {3, 0};
  kernels.run("f", 0, 1, a.data(), a.data());
  EXPECT_EQ(a, (std::vector<float>{6, 6}));
}

TEST_P(ControlTest, ProgramsKnowTheNextOneOfTheirRange) {
  // What is asked for may lie anywhere, and nothing waits for it.
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %next: !ssk.global<i64> {ssk.name = "next"}) {
      %far = arith.constant 1000000000000 : index
      %p = ssk.program_id : index
      %n = ssk.next_program : index
      ssk.prefetch %a[%n] {count = 100 : i64} : !ssk.global<f32>
      ssk.prefetch %a[%far] {count = 1 : i64} : !ssk.global<f32>
      %i = arith.index_cast %n : index to i64
      ssk.write %i, %next[%p] : !ssk.global<i64>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  std::vector<float> a(4);
  std::vector<int64_t> next(8, -1);
  kernels.run("f", 0, 3, a.data(), next.data());
  kernels.run("f", 5, 7, a.data(), next.data());
  EXPECT_EQ(next, (std::vector<int64_t>{1, 2, 2, -1, -1, 6, 6, -1}));
}

INSTANTIATE_TEST_SUITE_P(Targets, ControlTest, testing::ValuesIn(getTargets()),
                         getTargetName);

TEST(ControlErrorsTest, ForeignOperationsAreRefused) {
  std::string error = getCompileError(R"(
    ssk.kernel @f(%n: i64 {ssk.name = "n"}) {
      %c0 = arith.constant 0 : index
      %i = scf.while (%a = %c0) : (index) -> index {
        %false = arith.constant false
        scf.condition(%false) %a : index
      } do {
      ^bb0(%b: index):
        scf.yield %b : index
      }
      ssk.return
    })");
  EXPECT_NE(error.find("'scf.while' in a kernel"), std::string::npos) << error;
}

} // namespace
