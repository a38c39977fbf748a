//===- ComputeTest.cpp - maps, reductions, dots and accumulations ---------===//
#include "CpuTest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace sinkstate::test;

namespace {

class ComputeTest : public CpuTest {};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_P(ComputeTest, MapBroadcastsAlongEitherDimension) {
  // r[i, j] = a[i, j] * row[j] + column[i] - scale
  for (std::string lanes : {"1", "0"}) {
    std::string rowLanes = lanes == "1" ? ", lanes = 0" : "";
    std::string columnLanes = lanes == "0" ? ", lanes = 0" : "";
    std::string text =
        substitute(R"(
      ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %r: !ssk.global<f32> {ssk.name = "r"},
                    %c: !ssk.global<f32> {ssk.name = "c"}, %o: !ssk.global<f32> {ssk.name = "o"},
                    %scale: f32 {ssk.name = "scale"}) {
        %c0 = arith.constant 0 : index
        %two = arith.constant 2.0 : f32
        %m = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<5x21xf32, lanes = ${L}>
        %row = ssk.load %r[%c0] : !ssk.global<f32> -> !ssk.tile<21xf32${R}>
        %column = ssk.load %c[%c0] : !ssk.global<f32> -> !ssk.tile<5xf32${C}>
        %t = ssk.map (%m, %row, %column) dims [[0, 1], [1], [0]]
            : (!ssk.tile<5x21xf32, lanes = ${L}>, !ssk.tile<21xf32${R}>, !ssk.tile<5xf32${C}>) -> !ssk.tile<5x21xf32, lanes = ${L}> {
        ^bb0(%x: f32, %y: f32, %z: f32):
          %one = arith.constant 1.0 : f32
          %uniform = arith.mulf %scale, %two : f32
          %p = arith.mulf %x, %y : f32
          %q = arith.addf %p, %z : f32
          %v = arith.subf %q, %uniform : f32
          %big = arith.cmpf ogt, %v, %one : f32
          %w = arith.select %big, %one, %v : f32
          ssk.yield %w : f32
        }
        ssk.store %t, %o[%c0] : !ssk.tile<5x21xf32, lanes = ${L}>, !ssk.global<f32>
        ssk.return
      })",
                   {{"L", lanes}, {"R", rowLanes}, {"C", columnLanes}});
    Kernels kernels(text, GetParam());
    auto a = randomVector<float>(105, 1), r = randomVector<float>(21, 2),
         c = randomVector<float>(5, 3);
    std::vector<float> o(105);
    kernels.run("f", 0, 1, a.data(), r.data(), c.data(), o.data(), 0.25f);
    for (int i = 0; i < 105; ++i) {
      float v = a[i] * r[i % 21] + c[i / 21] - 0.5f;
      EXPECT_EQ(o[i], v > 1.0f ? 1.0f : v) << lanes << " at " << i;
    }
  }
}

TEST_P(ComputeTest, MapWithoutLanesAndUniformResult) {
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                  %o: !ssk.global<f32> {ssk.name = "o"}, %x: f32 {ssk.name = "x"}) {
      %c0 = arith.constant 0 : index
      %c6 = arith.constant 6 : index
      %m = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<2x3xf32>
      %r = ssk.load %b[%c0] : !ssk.global<f32> -> !ssk.tile<3xf32>
      %t = ssk.map (%m, %r) dims [[0, 1], [1]] : (!ssk.tile<2x3xf32>, !ssk.tile<3xf32>) -> !ssk.tile<2x3xf32> {
      ^bb0(%p: f32, %q: f32):
        %s = arith.mulf %p, %q : f32
        ssk.yield %s : f32
      }
      ssk.store %t, %o[%c0] : !ssk.tile<2x3xf32>, !ssk.global<f32>
      %u = ssk.map () dims [] : () -> !ssk.tile<20xf32, lanes = 0> {
        ssk.yield %x : f32
      }
      ssk.store %u, %o[%c6] : !ssk.tile<20xf32, lanes = 0>, !ssk.global<f32>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  auto a = randomVector<float>(6, 1), b = randomVector<float>(3, 2);
  std::vector<float> o(26);
  kernels.run("f", 0, 1, a.data(), b.data(), o.data(), 0.75f);
  for (int i = 0; i < 26; ++i)
    EXPECT_EQ(o[i], i < 6 ? a[i] * b[i % 3] : 0.75f);
}

TEST_P(ComputeTest, MapConverts) {
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %d: !ssk.global<f64> {ssk.name = "d"},
                  %h: !ssk.global<bf16> {ssk.name = "h"}, %e: !ssk.global<f32> {ssk.name = "e"}) {
      %c0 = arith.constant 0 : index
      %x = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<21xf32, lanes = 0>
      %y = ssk.map (%x) dims [[0]] : (!ssk.tile<21xf32, lanes = 0>) -> !ssk.tile<21xf64, lanes = 0> {
      ^bb0(%p: f32):
        %q = arith.extf %p : f32 to f64
        ssk.yield %q : f64
      }
      ssk.store %y, %d[%c0] : !ssk.tile<21xf64, lanes = 0>, !ssk.global<f64>
      %z = ssk.map (%x) dims [[0]] : (!ssk.tile<21xf32, lanes = 0>) -> !ssk.tile<21xbf16, lanes = 0> {
      ^bb0(%p: f32):
        %q = arith.truncf %p : f32 to bf16
        ssk.yield %q : bf16
      }
      ssk.store %z, %h[%c0] : !ssk.tile<21xbf16, lanes = 0>, !ssk.global<bf16>
      %w = ssk.map (%z) dims [[0]] : (!ssk.tile<21xbf16, lanes = 0>) -> !ssk.tile<21xf32, lanes = 0> {
      ^bb0(%p: bf16):
        %q = arith.extf %p : bf16 to f32
        ssk.yield %q : f32
      }
      ssk.store %w, %e[%c0] : !ssk.tile<21xf32, lanes = 0>, !ssk.global<f32>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  auto a = randomVector<float>(21, 1);
  a[3] = std::numeric_limits<float>::infinity();
  a[4] = kNaN;
  a[5] = 1.00390625f; // halfway between two bf16: to even, 1
  a[6] = 1.01171875f; // halfway: to even, 1.015625
  std::vector<double> d(21);
  std::vector<uint16_t> h(21);
  std::vector<float> e(21);
  kernels.run("f", 0, 1, a.data(), d.data(), h.data(), e.data());
  for (int i = 0; i < 21; ++i) {
    if (i == 4) {
      EXPECT_TRUE(std::isnan(d[i]) && std::isnan(e[i]));
      continue;
    }
    EXPECT_EQ(d[i], double(a[i]));
    uint32_t bits = uint32_t(h[i]) << 16;
    float wide;
    std::memcpy(&wide, &bits, 4);
    EXPECT_EQ(e[i], wide);
    if (i != 3)
      EXPECT_LE(std::fabs(e[i] - a[i]), std::ldexp(std::fabs(a[i]), -8));
  }
  EXPECT_EQ(e[3], a[3]);
  EXPECT_EQ(e[5], 1.0f);
  EXPECT_EQ(e[6], 1.015625f);
}

/// Reduces a 2-D tile along `axis` with `kind` and stores the result.
std::string reduceKernel(const std::string &name, const std::string &tile,
                         int axis, const std::string &kind,
                         const std::string &result) {
  return substitute(R"(
    ssk.kernel @${N}(%a: !ssk.global<f32> {ssk.name = "a"}, %o: !ssk.global<f32> {ssk.name = "o"}) {
      %c0 = arith.constant 0 : index
      %t = ssk.load %a[%c0] : !ssk.global<f32> -> ${T}
      %r = ssk.reduce ${K} %t axis ${A} : ${T} -> ${R}
      ssk.store %r, %o[%c0] : ${R}, !ssk.global<f32>
      ssk.return
    })",
                    {{"N", name},
                     {"T", tile},
                     {"A", number(axis)},
                     {"K", kind},
                     {"R", result}});
}

double reduceReference(const std::string &kind, double a, double b) {
  return kind == "add"   ? a + b
         : kind == "max" ? std::fmax(a, b)
                         : std::fmin(a, b);
}

struct Reduction {
  std::string name, kind;
  int rows, columns, axis;
  int getKept() const { return axis == 0 ? columns : rows; }
};

void checkReduction(const Kernels &kernels, const Reduction &r) {
  auto a = randomVector<float>(r.rows * r.columns, r.rows);
  std::vector<float> o(r.getKept());
  kernels.run(r.name.c_str(), 0, 1, a.data(), o.data());
  double start = r.kind == "add" ? 0.0 : r.kind == "max" ? -INFINITY : INFINITY;
  std::vector<double> expected(r.getKept(), start);
  for (int i = 0; i < r.rows * r.columns; ++i) {
    double &e = expected[r.axis == 0 ? i % r.columns : i / r.columns];
    e = reduceReference(r.kind, e, a[i]);
  }
  for (int i = 0; i < r.getKept(); ++i)
    EXPECT_NEAR(o[i], expected[i], r.kind == "add" ? 1e-5 : 0.0)
        << r.name << " at " << i;
}

TEST_P(ComputeTest, ReducesEveryAxis) {
  std::string text;
  std::vector<Reduction> reductions;
  for (int lanes : {-1, 0, 1})
    for (int axis : {0, 1})
      for (std::string kind : {"add", "max", "min"})
        for (auto [rows, columns] : {std::pair<int, int>{7, 3}, {3, 20}}) {
          std::string suffix = lanes < 0 ? "" : ", lanes = " + number(lanes);
          std::string tile = "!ssk.tile<" + number(rows) + "x" +
                             number(columns) + "xf32" + suffix + ">";
          Reduction r = {"r" + number(reductions.size()), kind, rows, columns,
                         axis};
          std::string result = "!ssk.tile<" + number(r.getKept()) + "xf32" +
                               (lanes == 1 - axis ? ", lanes = 0>" : ">");
          text += reduceKernel(r.name, tile, axis, kind, result);
          reductions.push_back(r);
        }
  Kernels kernels(text, GetParam());
  for (const Reduction &reduction : reductions)
    checkReduction(kernels, reduction);
}

TEST_P(ComputeTest, ReducesToScalars) {
  std::string text = R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %i: !ssk.global<i32> {ssk.name = "i"},
                  %o: !ssk.global<f32> {ssk.name = "o"}, %p: !ssk.global<i32> {ssk.name = "p"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<100xf32, lanes = 0>
      %sum = ssk.reduce add %t axis 0 : !ssk.tile<100xf32, lanes = 0> -> f32
      ssk.write %sum, %o[%c0] : !ssk.global<f32>
      %u = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<5xf32>
      %max = ssk.reduce max %u axis 0 : !ssk.tile<5xf32> -> f32
      ssk.write %max, %o[%c1] : !ssk.global<f32>
      %n = ssk.load %i[%c0] : !ssk.global<i32> -> !ssk.tile<20xi32, lanes = 0>
      %top = ssk.reduce max %n axis 0 : !ssk.tile<20xi32, lanes = 0> -> i32
      ssk.write %top, %p[%c0] : !ssk.global<i32>
      %low = ssk.reduce min %n axis 0 : !ssk.tile<20xi32, lanes = 0> -> i32
      ssk.write %low, %p[%c1] : !ssk.global<i32>
      %total = ssk.reduce add %n axis 0 : !ssk.tile<20xi32, lanes = 0> -> i32
      ssk.write %total, %p[%c2] : !ssk.global<i32>
      ssk.return
    })";
  Kernels kernels(text, GetParam());
  auto a = randomVector<float>(100, 4);
  a[2] = kNaN;
  std::vector<int32_t> i(20), p(3);
  int32_t total = 0;
  for (int k = 0; k < 20; ++k)
    total += i[k] = (k * 7) % 20 - 10;
  std::vector<float> o(2);
  kernels.run("f", 0, 1, a.data(), i.data(), o.data(), p.data());
  EXPECT_TRUE(std::isnan(o[0])) << "a sum carries NaN on";
  EXPECT_EQ(o[1], std::max({a[0], a[1], a[3], a[4]})) << "a maximum ignores it";
  EXPECT_EQ(p, (std::vector<int32_t>{9, -10, total}));
}

TEST_P(ComputeTest, DotsRowsWithAVector) {
  for (int rows : {1, 4, 7, 17})
    for (int n : {3, 80, 100}) {
      std::string text = substitute(R"(
        ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %b: !ssk.global<f32> {ssk.name = "b"},
                      %o: !ssk.global<f32> {ssk.name = "o"}) {
          %c0 = arith.constant 0 : index
          %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<${R}x${N}xf32, lanes = 1>
          %k = ssk.load %b[%c0] : !ssk.global<f32> -> !ssk.tile<${N}xf32, lanes = 0>
          %d = ssk.dot %t, %k : !ssk.tile<${R}x${N}xf32, lanes = 1>, !ssk.tile<${N}xf32, lanes = 0> -> !ssk.tile<${R}xf32>
          ssk.store %d, %o[%c0] : !ssk.tile<${R}xf32>, !ssk.global<f32>
          %r = arith.constant ${R} : index
          %u = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<${N}xf32, lanes = 0>
          %e = ssk.dot %u, %k : !ssk.tile<${N}xf32, lanes = 0>, !ssk.tile<${N}xf32, lanes = 0> -> f32
          ssk.write %e, %o[%r] : !ssk.global<f32>
          ssk.return
        })",
                                    {{"R", number(rows)}, {"N", number(n)}});
      Kernels kernels(text, GetParam());
      auto a = randomVector<float>(rows * n, n), b = randomVector<float>(n, 7);
      std::vector<float> o(rows + 1);
      kernels.run("f", 0, 1, a.data(), b.data(), o.data());
      for (int i = 0; i < rows; ++i) {
        double expected = 0, magnitude = 0;
        for (int j = 0; j < n; ++j) {
          expected += double(a[i * n + j]) * b[j];
          magnitude += std::fabs(double(a[i * n + j]) * b[j]);
        }
        EXPECT_NEAR(o[i], expected, 1e-6 * magnitude + 1e-7);
      }
      // A row's result does not depend on the rows beside it.
      EXPECT_EQ(o[rows], o[0]) << rows << " x " << n;
    }
}

TEST_P(ComputeTest, AccumulatesWeightedRows) {
  for (int rows : {1, 3, 4})
    for (int n : {3, 80, 100}) {
      std::string text = substitute(R"(
        ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %w: !ssk.global<f32> {ssk.name = "w"},
                      %y: !ssk.global<f32> {ssk.name = "y"}) {
          %c0 = arith.constant 0 : index
          %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<${R}x${N}xf32, lanes = 1>
          %k = ssk.load %w[%c0] : !ssk.global<f32> -> !ssk.tile<${R}xf32>
          %s = ssk.load %y[%c0] : !ssk.global<f32> -> !ssk.tile<${N}xf32, lanes = 0>
          %d = ssk.accumulate %s, %k, %t : !ssk.tile<${N}xf32, lanes = 0>, !ssk.tile<${R}xf32>, !ssk.tile<${R}x${N}xf32, lanes = 1>
          ssk.store %d, %y[%c0] : !ssk.tile<${N}xf32, lanes = 0>, !ssk.global<f32>
          ssk.return
        })",
                                    {{"R", number(rows)}, {"N", number(n)}});
      Kernels kernels(text, GetParam());
      auto a = randomVector<float>(rows * n, n),
           w = randomVector<float>(rows, 7), y = randomVector<float>(n, 8);
      std::vector<double> expected(y.begin(), y.end());
      for (int i = 0; i < rows * n; ++i)
        expected[i % n] += double(w[i / n]) * a[i];
      kernels.run("f", 0, 1, a.data(), w.data(), y.data());
      for (int j = 0; j < n; ++j)
        EXPECT_NEAR(y[j], expected[j], 2e-6);
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, ComputeTest, testing::ValuesIn(getTargets()),
                         getTargetName);

} // namespace
