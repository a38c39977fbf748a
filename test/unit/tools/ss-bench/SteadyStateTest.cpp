//===- SteadyStateTest.cpp - Data as a request has it ---------------------===//

#include "SteadyState.h"
#include "TestLayers.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_bench;

namespace {

double dot(const float *a, const float *b, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i)
    sum += double(a[i]) * b[i];
  return sum;
}

TEST(SteadyState, HasWeightsJustAboveTheThreshold) {
  SteadyState data(gdnLayer());
  std::vector<float> weights(12);
  data.weights(12, weights.data());
  EXPECT_EQ(weights[0], 1);
  EXPECT_NEAR(weights[11], 0.015, 1e-6);
  EXPECT_NEAR(weights[5] / weights[4], weights[1], 1e-5);
  data.weights(1, weights.data());
  EXPECT_EQ(weights[0], 1);
}

TEST(SteadyState, HasUnitRowsAsideOfTheFirst) {
  SteadyState data(gdnLayer());
  const std::vector<float> rows = data.rows(1, 6);
  ASSERT_EQ(rows.size(), size_t(4 * 6 * 48));
  for (int row = 0; row < 24; ++row) {
    const float *v = &rows[size_t(row * 48)], *first = &rows[size_t(row / 6 * 6 * 48)];
    EXPECT_NEAR(dot(v, v, 32), 1, 1e-5);
    EXPECT_NEAR(dot(v + 32, v + 32, 16), 1, 1e-5);
    if (row % 6 != 0) {
      EXPECT_NEAR(dot(v, first, 32), 0, 1e-5);
      EXPECT_NEAR(dot(v + 32, first + 32, 16), 0, 1e-5);
    }
  }
}

TEST(SteadyState, ComesBackToTheFirstRow) {
  SteadyState data(gdnLayer());
  const StepInputs near = data.inputs(DataKind::Synthetic, 3, 2);
  const StepInputs random = data.inputs(DataKind::Random, 3, 2);
  const std::vector<float> rows = data.rows(1, 1);
  ASSERT_EQ(near.k.size(), size_t(6 * 2 * 32));
  double largest = 0;
  for (int token = 0; token < 6; ++token)
    for (int head = 0; head < 2; ++head) {
      const float *first = &rows[size_t(head * 2 * 48)];
      const float *k = &near.k[size_t((token * 2 + head) * 32)];
      EXPECT_NEAR(dot(k, k, 32), 1, 1e-5);
      EXPECT_GT(dot(k, first, 32), 0.97);
      largest = std::max(
          largest, dot(&random.k[size_t((token * 2 + head) * 32)], first, 32));
    }
  EXPECT_LT(largest, 0.8);
  // Two tokens of a window differ, and so do two requests.
  EXPECT_NE(near.k[0], near.k[64]);
  EXPECT_NE(near.k[0], near.k[2 * 64]);
}

TEST(SteadyState, IsSharedByLayersOfOneShape) {
  SteadyState data(gdnLayer());
  auto other = gdnLayer();
  other.index = 5;
  EXPECT_TRUE(data.serves(other));
  other.policy.value = 0.02;
  EXPECT_FALSE(data.serves(other));
  EXPECT_EQ(parseDataKind("zeros").error(),
            "data 'zeros', expected synthetic or random");
}

} // namespace
