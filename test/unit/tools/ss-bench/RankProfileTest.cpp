//===- RankProfileTest.cpp - Ranks as real requests have them -------------===//

#include "RankProfile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include <unistd.h>

using namespace ss_bench;

namespace {

std::string fileWith(const std::string &content) {
  const std::string file = testing::TempDir() + "ranks-" +
                           std::to_string(getpid()) + ".txt"; // tests run side by side
  std::ofstream(file) << content;
  return file;
}

TEST(RankProfile, DrawsItsSharesReproducibly) {
  auto profile = RankProfile::parse("nemo4b");
  ASSERT_TRUE(profile);
  std::mt19937_64 random(1), again(1);
  int dense = 0, small = 0;
  double sum = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const int32_t rank = profile->draw(random, 100);
    ASSERT_EQ(rank, profile->draw(again, 100));
    ASSERT_TRUE((rank >= 2 && rank <= 48) || rank == -1) << rank;
    dense += rank == -1;
    small += rank >= 0 && rank <= 8;
    sum += rank == -1 ? 0 : rank;
  }
  EXPECT_NEAR(double(dense) / kDraws, 0.02, 0.005);
  EXPECT_NEAR(double(small) / kDraws, 0.22, 0.015);
  EXPECT_NEAR(sum / (kDraws - dense), 17.9, 0.5);
}

TEST(RankProfile, StaysBelowItsBound) {
  auto profile = RankProfile::parse("qwen9b");
  ASSERT_TRUE(profile);
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i)
    ASSERT_LE(profile->draw(random, 20), 20);
}

TEST(RankProfile, MayBeOneRank) {
  auto profile = RankProfile::parse("uniform:24");
  ASSERT_TRUE(profile);
  std::mt19937_64 random(3);
  EXPECT_EQ(profile->draw(random, 64), 24);
}

TEST(RankProfile, KnowsItsLargestRank) {
  EXPECT_EQ(RankProfile::parse("nemo4b")->largest("gdn"), 48);
  EXPECT_EQ(RankProfile::parse("uniform:9999")->largest("kda"), 9999);
  const std::string file = fileWith("gdn 5 9\nkda -1\n");
  auto profile = RankProfile::parse("trace:" + file);
  ASSERT_TRUE(profile) << profile.error();
  EXPECT_EQ(profile->largest("gdn"), 9);
  EXPECT_EQ(profile->largest("kda"), -1);
  EXPECT_EQ(profile->largest("mamba2"), 9) << "any of the file's";
}

TEST(RankProfile, SaysWhatItExpects) {
  for (const char *text : {"", "nemo", "uniform:", "uniform:0", "uniform:4x"}) {
    auto profile = RankProfile::parse(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error(),
              "rank profile '" + std::string(text) +
                  "', expected nemo4b, qwen9b, uniform:R with R at least 1, or "
                  "trace:FILE");
  }
}

TEST(RankProfile, ReadsNoTraceWithoutAnEnd) {
  EXPECT_EQ(RankProfile::parse("trace:/dev/zero").error(),
            "/dev/zero: has more than 67108864 bytes, expected a file of ranks");
}

TEST(RankProfile, DrawsFromATrace) {
  const std::string file = fileWith("4, 4\n4 -1\n");
  auto profile = RankProfile::parse("trace:" + file);
  ASSERT_TRUE(profile) << profile.error();
  EXPECT_EQ(profile->name(), "trace:" + file);
  std::mt19937_64 random(4);
  int fours = 0;
  for (int i = 0; i < 4000; ++i) {
    const int32_t rank = profile->draw(random, 60);
    ASSERT_TRUE(rank == 4 || rank == -1) << rank;
    fours += rank == 4;
  }
  EXPECT_NEAR(fours, 3000, 120);
}

TEST(RankProfile, DrawsFromTheRanksOfALayersType) {
  const std::string file =
      fileWith("# of some run, 7 7 7\ngdn 5 5,5\n5\nkda -1\ngdn 5\n");
  auto profile = RankProfile::parse("trace:" + file);
  ASSERT_TRUE(profile) << profile.error();
  std::mt19937_64 random(4);
  int fives = 0;
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(profile->draw(random, 60, "gdn"), 5);
    ASSERT_EQ(profile->draw(random, 60, "kda"), -1);
    // A type that the file has not: any of its ranks.
    fives += profile->draw(random, 60, "mamba2") == 5;
  }
  EXPECT_NEAR(fives, 500, 50);
}

TEST(RankProfile, SaysWhatIsWrongInATrace) {
  EXPECT_EQ(RankProfile::parse("trace:/no/file").error(),
            "/no/file: cannot be read, expected a file of ranks");
  for (const char *word : {"4x", "-2", "3.5", "x", "gnd", "attention"}) {
    const std::string file = fileWith(std::string("3 ") + word);
    EXPECT_EQ(RankProfile::parse("trace:" + file).error(),
              file + ": rank 2 is '" + word +
                  "', expected whole numbers of at least -1, and the layer types "
                  "mamba2, gdn and kda, with spaces, commas or lines between "
                  "them");
  }
  for (const char *empty : {" ", "gdn\n", "# 1 2 3\n"}) {
    const std::string file = fileWith(empty);
    EXPECT_EQ(RankProfile::parse("trace:" + file).error(),
              file + ": has no ranks, expected at least one");
  }
}

TEST(RankOrder, SortsOrLeavesRanks) {
  const std::vector<int32_t> drawn = {3, 9, 1, 9};
  auto sorted = [&](const char *order) {
    std::vector<int32_t> ranks = drawn;
    sortRanks(ranks, *parseRankOrder(order));
    return ranks;
  };
  EXPECT_EQ(sorted("drawn"), drawn);
  EXPECT_EQ(sorted("descending"), (std::vector<int32_t>{9, 9, 3, 1}));
  EXPECT_EQ(sorted("ascending"), (std::vector<int32_t>{1, 3, 9, 9}));
  EXPECT_EQ(parseRankOrder("random").error(),
            "order of ranks 'random', expected drawn, descending or ascending");
}

} // namespace
