//===- SoakTest.cpp - The short form for every run of the tests -----------===//

#include "Soak.h"

#include <gtest/gtest.h>

using namespace sinkstate::soak;

namespace {

void expectClean(const SoakOptions &options) {
  const SoakResult result = runSoak(options);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.joined, 5) << describe(result);
  EXPECT_GT(result.landed, 0) << describe(result);
  EXPECT_GT(result.padding, 0);
  EXPECT_EQ(result.startBytes, result.endBytes);
  testing::Test::RecordProperty("summary", describe(result));
}

TEST(Soak, JoinsLeavesPausesAndPadding) { expectClean({600, 1}); }

TEST(Soak, UnderPressureOfMemory) {
  SoakOptions options{600, 2};
  options.pressure = true;
  expectClean(options);
  EXPECT_GT(runSoak(options).evicted, 0);
}

} // namespace
