//===- BaselinesTest.cpp - Times of dense kernels that people use ---------===//

#include "TestLayers.h"

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(Baselines, AreFoundByShapeAndBatch) {
  auto read = Baselines::parse(kBaselineLines, "times");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->machine, "a GPU, driver 580, torch 2, triton 3");
  EXPECT_EQ(read->copyBandwidth, 4e12);
  ASSERT_EQ(read->missing.size(), 1u);
  EXPECT_EQ(read->missing[0], "flashinfer_gdn: not installed");
  const ShapeName shape = {"gdn", 4, 2, 16, 32};
  ASSERT_EQ(read->of(shape, 8).size(), 1u);
  EXPECT_EQ(read->of(shape, 8)[0]->microseconds, 240);
  EXPECT_EQ(read->of(shape, 0).size(), 1u);
  EXPECT_TRUE(read->of(shape, 1).empty());
  EXPECT_TRUE(read->of({"kda", 4, 2, 16, 32}, 8).empty());
}

TEST(Baselines, SayWhichLineIsWrong) {
  const std::string good = R"({"kernel": "a", "missing": "b"})" "\n";
  for (const char *line : {"{", R"({"kernel": "a"})", R"({"us": 3})", "[]"}) {
    auto read = Baselines::parse(good + line, "times");
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error(),
              std::string("times:2: found '") + line +
                  "', expected a line of scripts/dense-baselines.py: one object "
                  "with a kernel's name, shape and time");
  }
  EXPECT_EQ(Baselines::parse("", "times").error(),
            "times: has no times, expected the output of "
            "scripts/dense-baselines.py");
  EXPECT_EQ(Baselines::read("/no/such/file").error(),
            "/no/such/file: cannot be read, expected the output of "
            "scripts/dense-baselines.py");
}

} // namespace
