//===- QualityTest.cpp - Bits per byte and divergence ---------------------===//

#include "Quality.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_run;

namespace {

TEST(Quality, KnowsUniformAndCertainPredictions) {
  Quality quality;
  const std::vector<float> uniform(256, 3.0f);
  std::vector<float> half(256, -1e4f);
  half[7] = half[9] = 12.0f;
  ASSERT_TRUE(quality.add(uniform, half, 7));
  EXPECT_NEAR(quality.bitsPerByteDense(), 8, 1e-12);
  EXPECT_NEAR(quality.bitsPerByteCompressed(), 1, 1e-12);
  ASSERT_TRUE(quality.add(half, uniform, 9));
  EXPECT_NEAR(quality.bitsPerByteDense(), 4.5, 1e-12);
  EXPECT_NEAR(quality.bitsPerByteCompressed(), 4.5, 1e-12);
}

TEST(Quality, DivergenceIsFromTheDenseModel) {
  // p = (3/4, 1/4), q = (1/2, 1/2).
  const std::vector<float> p{std::log(3.0f), 0.0f}, q{1.0f, 1.0f};
  Quality quality;
  ASSERT_TRUE(quality.add(p, q, 0));
  const double expected = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  EXPECT_NEAR(quality.divergence(), expected, 1e-7);
  ASSERT_TRUE(quality.add(q, q, 0));
  EXPECT_NEAR(quality.divergence(), expected / 2, 1e-7);
}

TEST(Quality, RejectsLogitsThatAreNotFinite) {
  Quality quality;
  const std::vector<float> good{0.0f, 1.0f}, bad{0.0f, NAN},
      endless{INFINITY, 0};
  EXPECT_FALSE(quality.add(good, bad, 0));
  EXPECT_FALSE(quality.add(endless, good, 0));
  ASSERT_TRUE(quality.add(good, good, 1));
  EXPECT_NEAR(quality.divergence(), 0, 1e-15);
}

} // namespace
