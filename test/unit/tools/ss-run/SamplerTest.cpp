//===- SamplerTest.cpp - Seeded draws -------------------------------------===//

#include "Sampler.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_run;

namespace {

TEST(Sampler, FollowsTheProbabilities) {
  const std::vector<float> logits{std::log(0.7f), std::log(0.2f),
                                  std::log(0.1f)};
  Sampler sampler(1, 0);
  int counts[3] = {0, 0, 0};
  for (int i = 0; i < 20000; ++i)
    ++counts[*sampler.sample(logits)];
  EXPECT_NEAR(counts[0] / 20000.0, 0.7, 0.02);
  EXPECT_NEAR(counts[1] / 20000.0, 0.2, 0.02);
  EXPECT_NEAR(counts[2] / 20000.0, 0.1, 0.02);
}

TEST(Sampler, DependsOnSeedAndRequestAlone) {
  const std::vector<float> logits(256, 0.0f);
  auto draw = [&](uint64_t seed, int request) {
    Sampler sampler(seed, request);
    std::string bytes;
    for (int i = 0; i < 32; ++i)
      bytes += static_cast<char>(*sampler.sample(logits));
    return bytes;
  };
  EXPECT_EQ(draw(5, 0), draw(5, 0));
  EXPECT_NE(draw(5, 0), draw(5, 1));
  EXPECT_NE(draw(5, 0), draw(6, 0));
  EXPECT_NE(draw(5, 0), draw(5 + (1ull << 32), 0));
}

TEST(Sampler, RejectsLogitsThatAreNotFinite) {
  Sampler sampler(1, 0);
  EXPECT_FALSE(sampler.sample(std::vector<float>{NAN, 0}));
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(printable(std::string("\x1b[2J\0\x7f", 6)), "\\x1b[2J\\x00\\x7f");
  EXPECT_EQ(printable("\xc3\xa9"), "\xc3\xa9");
}

} // namespace
