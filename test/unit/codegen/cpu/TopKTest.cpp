//===- TopKTest.cpp - indices of the largest values -----------------------===//
#include "CpuTest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace sinkstate::test;

namespace {

class TopKTest : public CpuTest {};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::string topKKernel(int n, int a) {
  return substitute(R"(
    ssk.kernel @f(%w: !ssk.global<f32> {ssk.name = "w"}, %i: !ssk.global<i32> {ssk.name = "i"},
                  %count: i64 {ssk.name = "count"}) {
      %c0 = arith.constant 0 : index
      %n = arith.index_cast %count : i64 to index
      %s = ssk.alloc : !ssk.shared<${N}xf32>
      %x = ssk.alloc : !ssk.shared<${A}xi32>
      %t = ssk.load %w[%c0] : !ssk.global<f32> -> !ssk.tile<${N}xf32, lanes = 0>
      ssk.store %t, %s[%c0] : !ssk.tile<${N}xf32, lanes = 0>, !ssk.shared<${N}xf32>
      ssk.top_k %s count %n into %x : !ssk.shared<${N}xf32>, !ssk.shared<${A}xi32>
      %u = ssk.load %x[%c0] : !ssk.shared<${A}xi32> -> !ssk.tile<${A}xi32, lanes = 0>
      ssk.store %u, %i[%c0] : !ssk.tile<${A}xi32, lanes = 0>, !ssk.global<i32>
      ssk.return
    })",
                    {{"N", number(n)}, {"A", number(a)}});
}

std::vector<int32_t> reference(const std::vector<float> &w, int64_t count,
                               int a) {
  std::vector<int32_t> order(std::clamp<int64_t>(count, 0, w.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
    bool iIsNaN = std::isnan(w[i]), jIsNaN = std::isnan(w[j]);
    if (iIsNaN != jIsNaN)
      return iIsNaN;
    return !iIsNaN && w[i] != w[j] ? w[i] > w[j] : i < j;
  });
  order.resize(a, -1);
  return order;
}

void check(const Target &target, const std::vector<float> &w, int a,
           std::vector<int64_t> counts) {
  Kernels kernels(topKKernel(w.size(), a), target);
  for (int64_t count : counts) {
    std::vector<int32_t> i(a, 77);
    kernels.run("f", 0, 1, w.data(), i.data(), count);
    EXPECT_EQ(i, reference(w, count, a)) << count << " of " << w.size();
  }
}

TEST_P(TopKTest, TiesNaNInfinitiesAndZeros) {
  check(GetParam(),
        {1, 3, 3, -kInf, kNaN, 0.0f, -0.0f, 0.0f, kInf, -1, kNaN, 3}, 12,
        {12, 8, 5, 1, 0, -4, 100});
}

TEST_P(TopKTest, SelectsFewOfMany) {
  for (int n : {8, 19, 160})
    for (int a : {1, 8}) {
      auto w = randomVector<float>(n, n + a);
      for (int i = 0; i < n; i += 5)
        w[i] = std::fabs(w[(i + 2) % n]);
      check(GetParam(), w, a, {n, n / 2, 2, 0});
    }
}

TEST_P(TopKTest, AscendingAndDescending) {
  std::vector<float> w(40);
  std::iota(w.begin(), w.end(), -20.0f);
  check(GetParam(), w, 8, {40, 7});
  std::reverse(w.begin(), w.end());
  check(GetParam(), w, 8, {40, 7});
}

INSTANTIATE_TEST_SUITE_P(Targets, TopKTest, testing::ValuesIn(getTargets()),
                         getTargetName);

} // namespace
