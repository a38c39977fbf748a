//===- MatmulTest.cpp - products of matrices in scratch -------------------===//
#include "CpuTest.h"

#include <cmath>

using namespace sinkstate::test;

namespace {

struct Shape {
  int m, n, k;
};

class MatmulTest : public CpuTest {};

std::string shape(int rows, int columns, const std::string &element) {
  return number(rows) + "x" + number(columns) + "x" + element;
}

/// Loads a and b into scratch, multiplies, and stores the product.
std::string matmulKernel(const Shape &s, bool ta, bool tb,
                         const std::string &ea, const std::string &eb,
                         const std::string &ec) {
  std::string a = ta ? shape(s.k, s.m, ea) : shape(s.m, s.k, ea);
  std::string b = tb ? shape(s.n, s.k, eb) : shape(s.k, s.n, eb);
  std::string flags = ta && tb ? "{transpose_a, transpose_b}"
                      : ta     ? "{transpose_a}"
                      : tb     ? "{transpose_b}"
                               : "";
  return substitute(R"(
    ssk.kernel @f(%a: !ssk.global<${EA}> {ssk.name = "a"}, %b: !ssk.global<${EB}> {ssk.name = "b"},
                  %c: !ssk.global<${EC}> {ssk.name = "c"}) {
      %c0 = arith.constant 0 : index
      %sa = ssk.alloc : !ssk.shared<${A}>
      %sb = ssk.alloc : !ssk.shared<${B}>
      %sc = ssk.alloc : !ssk.shared<${C}>
      %ta = ssk.load %a[%c0] : !ssk.global<${EA}> -> !ssk.tile<${A}, lanes = 1>
      ssk.store %ta, %sa[%c0, %c0] : !ssk.tile<${A}, lanes = 1>, !ssk.shared<${A}>
      %tb = ssk.load %b[%c0] : !ssk.global<${EB}> -> !ssk.tile<${B}, lanes = 1>
      ssk.store %tb, %sb[%c0, %c0] : !ssk.tile<${B}, lanes = 1>, !ssk.shared<${B}>
      ssk.matmul %sa, %sb into %sc ${F} : !ssk.shared<${A}>, !ssk.shared<${B}>, !ssk.shared<${C}>
      %tc = ssk.load %sc[%c0, %c0] : !ssk.shared<${C}> -> !ssk.tile<${C}, lanes = 1>
      ssk.store %tc, %c[%c0] : !ssk.tile<${C}, lanes = 1>, !ssk.global<${EC}>
      ssk.return
    })",
                    {{"A", a},
                     {"B", b},
                     {"C", shape(s.m, s.n, ec)},
                     {"EA", ea},
                     {"EB", eb},
                     {"EC", ec},
                     {"F", flags}});
}

template <typename A, typename B, typename C>
void check(const Target &target, const Shape &s, bool ta, bool tb,
           const std::string &ea, const std::string &eb,
           const std::string &ec) {
  Kernels kernels(matmulKernel(s, ta, tb, ea, eb, ec), target);
  auto a = randomVector<A>(s.m * s.k, 1);
  auto b = randomVector<B>(s.k * s.n, 2);
  std::vector<C> c(s.m * s.n, C(99));
  kernels.run("f", 0, 1, a.data(), b.data(), c.data());
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.n; ++j) {
      double fused = 0, plain = 0;
      for (int l = 0; l < s.k; ++l) {
        double x = ta ? a[l * s.m + i] : a[i * s.k + l];
        double y = tb ? b[j * s.k + l] : b[l * s.n + j];
        fused = std::fma(x, y, fused);
        plain = plain + x * y;
      }
      // The sum is in ascending order: exact to the bit, fused or not.
      C got = c[i * s.n + j];
      EXPECT_TRUE(got == C(fused) || got == C(plain))
          << s.m << "x" << s.n << "x" << s.k << (ta ? " ta" : "")
          << (tb ? " tb" : "") << " " << ea << eb << ec << " at " << i << ", "
          << j << ": " << got << " is not " << fused;
    }
}

TEST_P(MatmulTest, AllTransposesAndTypes) {
  const Target &t = GetParam();
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      check<double, float, float>(t, {13, 21, 17}, ta, tb, "f64", "f32", "f32");
      check<float, double, float>(t, {5, 7, 3}, ta, tb, "f32", "f64", "f32");
    }
  check<float, float, double>(t, {16, 16, 20}, false, true, "f32", "f32",
                              "f64");
  check<double, double, double>(t, {9, 16, 6}, true, false, "f64", "f64",
                                "f64");
  check<float, float, float>(t, {1, 1, 1}, false, false, "f32", "f32", "f32");
}

/// The Gram matrix of the rows of one factor, which is computed up to its
/// diagonal: the bits of a product of two factors, and symmetric.
template <typename C>
void checkGram(const Target &target, int m, int k, const std::string &element) {
  Kernels kernels(substitute(R"(
    ssk.kernel @f(%a: !ssk.global<f32> {ssk.name = "a"}, %c: !ssk.global<${E}> {ssk.name = "c"}) {
      %c0 = arith.constant 0 : index
      %s = ssk.alloc : !ssk.shared<${A}>
      %g = ssk.alloc : !ssk.shared<${C}>
      %t = ssk.load %a[%c0] : !ssk.global<f32> -> !ssk.tile<${A}, lanes = 1>
      ssk.store %t, %s[%c0, %c0] : !ssk.tile<${A}, lanes = 1>, !ssk.shared<${A}>
      ssk.matmul %s, %s into %g {transpose_b} : !ssk.shared<${A}>, !ssk.shared<${A}>, !ssk.shared<${C}>
      %u = ssk.load %g[%c0, %c0] : !ssk.shared<${C}> -> !ssk.tile<${C}, lanes = 1>
      ssk.store %u, %c[%c0] : !ssk.tile<${C}, lanes = 1>, !ssk.global<${E}>
      ssk.return
    })",
                             {{"A", shape(m, k, "f32")},
                              {"C", shape(m, m, element)},
                              {"E", element}}),
                  target);
  auto a = randomVector<float>(m * k, 1);
  std::vector<C> c(m * m, C(99));
  kernels.run("f", 0, 1, a.data(), c.data());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j) {
      double fused = 0, plain = 0;
      for (int l = 0; l < k; ++l) {
        double x = a[i * k + l], y = a[j * k + l];
        fused = std::fma(x, y, fused);
        plain = plain + x * y;
      }
      C got = c[i * m + j];
      EXPECT_TRUE(got == C(fused) || got == C(plain))
          << m << "x" << k << " " << element << " at " << i << ", " << j << ": "
          << got << " is not " << fused;
      EXPECT_EQ(got, c[j * m + i]) << "a Gram matrix is symmetric";
    }
}

TEST_P(MatmulTest, FactorsMayBeTheSameScratch) {
  // Whole vectors, tails of every length, more rows than registers sum.
  for (int m : {1, 2, 9, 15, 16, 24, 27, 40})
    checkGram<double>(GetParam(), m, 20, "f64");
  checkGram<double>(GetParam(), 24, 1, "f64");
  checkGram<float>(GetParam(), 13, 17, "f32");
}

/// a and b into scratch of f64 and T; t b in place of b, then b (t b)^T in
/// place of the square t; both go out.
std::string inPlaceKernel(int m, int n, const std::string &element) {
  return substitute(R"(
    ssk.kernel @f(%a: !ssk.global<f64> {ssk.name = "a"}, %b: !ssk.global<${E}> {ssk.name = "b"},
                  %c: !ssk.global<${E}> {ssk.name = "c"}, %d: !ssk.global<f64> {ssk.name = "d"}) {
      %c0 = arith.constant 0 : index
      %sa = ssk.alloc : !ssk.shared<${A}>
      %sb = ssk.alloc : !ssk.shared<${B}>
      %sd = ssk.alloc : !ssk.shared<${A}>
      %ta = ssk.load %a[%c0] : !ssk.global<f64> -> !ssk.tile<${A}, lanes = 1>
      ssk.store %ta, %sa[%c0, %c0] : !ssk.tile<${A}, lanes = 1>, !ssk.shared<${A}>
      ssk.store %ta, %sd[%c0, %c0] : !ssk.tile<${A}, lanes = 1>, !ssk.shared<${A}>
      %tb = ssk.load %b[%c0] : !ssk.global<${E}> -> !ssk.tile<${B}, lanes = 1>
      ssk.store %tb, %sb[%c0, %c0] : !ssk.tile<${B}, lanes = 1>, !ssk.shared<${B}>
      ssk.matmul %sa, %sb into %sb : !ssk.shared<${A}>, !ssk.shared<${B}>, !ssk.shared<${B}>
      ssk.matmul %sd, %sa into %sd {transpose_b} : !ssk.shared<${A}>, !ssk.shared<${A}>, !ssk.shared<${A}>
      %tc = ssk.load %sb[%c0, %c0] : !ssk.shared<${B}> -> !ssk.tile<${B}, lanes = 1>
      ssk.store %tc, %c[%c0] : !ssk.tile<${B}, lanes = 1>, !ssk.global<${E}>
      %td = ssk.load %sd[%c0, %c0] : !ssk.shared<${A}> -> !ssk.tile<${A}, lanes = 1>
      ssk.store %td, %d[%c0] : !ssk.tile<${A}, lanes = 1>, !ssk.global<f64>
      ssk.return
    })",
                    {{"A", shape(m, m, "f64")},
                     {"B", shape(m, n, element)},
                     {"E", element}});
}

template <typename T>
void checkInPlace(const Target &target, int m, int n,
                  const std::string &element) {
  SCOPED_TRACE(shape(m, n, element));
  Kernels kernels(inPlaceKernel(m, n, element), target);
  auto a = randomVector<double>(m * m, 3);
  auto b = randomVector<T>(m * n, 4);
  std::vector<T> c(m * n, T(99));
  std::vector<double> d(m * m, 99);
  kernels.run("f", 0, 1, a.data(), b.data(), c.data(), d.data());
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < m; ++l)
        sum += a[i * m + l] * b[l * n + j];
      EXPECT_NEAR(c[i * n + j], sum, sizeof(T) == 4 ? 1e-5 : 1e-13);
    }
    for (int j = 0; j < m; ++j) {
      double sum = 0;
      for (int l = 0; l < m; ++l)
        sum += a[i * m + l] * a[j * m + l];
      EXPECT_NEAR(d[i * m + j], sum, 1e-13);
    }
  }
}

TEST_P(MatmulTest, TakesThePlaceOfAFactor) {
  for (int m : {1, 7, 16, 24}) {
    checkInPlace<float>(GetParam(), m, 3 * m + 5, "f32");
    checkInPlace<double>(GetParam(), m, m, "f64");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MatmulTest, testing::ValuesIn(getTargets()),
                         getTargetName);

} // namespace
