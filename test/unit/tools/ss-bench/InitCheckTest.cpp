//===- InitCheckTest.cpp - Factors against known matrices -----------------===//

#include "InitCheck.h"

#include "sinkstate/routines.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_bench;

namespace {

constexpr double kEps = 1e-2;
constexpr int32_t kSide = 6, kMost = 4;

bool isRight(const std::vector<double> &values, int32_t found) {
  EXPECT_EQ(values.size(), size_t(kSide));
  return isRightRank(values.data(), kSide, kMost, kEps, found);
}

TEST(IsRightRank, IsWhatIsKept) {
  const std::vector<double> values = {2, 1, 0.5, 1e-3, 1e-4, 0};
  EXPECT_TRUE(isRight(values, 3));
  EXPECT_FALSE(isRight(values, 2));
  EXPECT_FALSE(isRight(values, 4));
  EXPECT_FALSE(isRight(values, -1));
}

TEST(IsRightRank, LeavesOpenWhatIsAtTheLine) {
  for (double off : {-5e-4, 5e-4}) {
    const std::vector<double> values = {1, 0.5, kEps * (1 + off), 1e-4, 0, 0};
    EXPECT_TRUE(isRight(values, 2));
    EXPECT_TRUE(isRight(values, 3));
    EXPECT_FALSE(isRight(values, 1));
    EXPECT_FALSE(isRight(values, 4));
  }
}

// Only where more components are above the line than may be kept.
TEST(IsRightRank, IsDenseBeyondWhatMayBeKept) {
  EXPECT_FALSE(isRight({1, 1, 1, 0.6 * kEps, 1e-4, 0}, -1));
  EXPECT_TRUE(isRight({1, 1, 1, 0.6 * kEps, 1e-4, 0}, 3));
  EXPECT_FALSE(isRight({1, 1, 1, 1, 0.9 * kEps, 0}, -1));
  const std::vector<double> full = {1, 1, 1, 1, 1, 1};
  EXPECT_TRUE(isRight(full, -1));
  EXPECT_FALSE(isRight(full, 4)) << "six are kept";
  EXPECT_FALSE(isRight(full, 6)) << "there is no room for so many";
  // A kernel that may keep all there are has none beyond.
  EXPECT_FALSE(isRightRank(full.data(), kSide, kSide, kEps, -1));
  EXPECT_TRUE(isRightRank(full.data(), kSide, kSide, kEps, 6));
}

class InitCheck : public ::testing::Test {
protected:
  InitCheck() {
    layer.dv = kSide, layer.dk = 8;
    // Exact factors, by a matrix that is diagonal.
    for (int64_t i = 0; i < spectra.count; ++i) {
      std::fill_n(spectra.columns.begin() + i * 48, 48, 0.0f);
      for (int32_t j = 0; j < kSide; ++j) {
        spectra.columns[size_t(i * 48 + j * 6 + j)] =
            float(spectra.valuesOf(i)[j]);
        if (j >= kMost)
          continue;
        found.weights.push_back(float(spectra.valuesOf(i)[j]));
        std::vector<float> row(8 + kSide);
        row[size_t(j)] = row[size_t(8 + j)] = 1;
        found.rows.insert(found.rows.end(), row.begin(), row.end());
      }
      found.ranks.push_back(spectra.rank[size_t(i)]);
      found.status.push_back(0);
    }
    found.chunk = spectra.count, found.most = kMost;
    result.states = 2 * spectra.count;
  }
  void check() { checkInit(spectra, layer, kEps, found, result); }

  Spectra spectra{kSide, 8, 5, kEps, *RankProfile::parse("uniform:3"), 4};
  sinkstate::runtime::LayerManifest layer;
  FoundStates found;
  InitResult result;
};

TEST_F(InitCheck, TakesExactFactors) {
  check();
  EXPECT_TRUE(result.isCorrect());
  EXPECT_EQ(result.checked, 5);
  EXPECT_EQ(result.meanRank, 3);
  EXPECT_EQ(result.readBytes, 10 * 48 * 4);
  EXPECT_EQ(result.writtenBytes, 10 * 3 * (8 + 6 + 1) * 4);
  EXPECT_GT(result.boundShare, 0.5);
}

TEST_F(InitCheck, SeesEveryKindOfMistake) {
  const FoundStates right = found;
  auto isWrong = [&](auto spoil) {
    found = right, result = {};
    spoil();
    check();
    return !result.isCorrect();
  };
  EXPECT_TRUE(isWrong([&] { found.ranks[1] = 2; }));
  EXPECT_TRUE(isWrong([&] { found.ranks[1] = -1; }));
  EXPECT_TRUE(isWrong([&] { found.ranks[1] = 1 << 20; }));
  EXPECT_TRUE(isWrong([&] { found.status[2] = SS_STATUS_NOT_FINITE; }));
  EXPECT_TRUE(isWrong([&] { found.weights[0] *= 1.01f; }));
  EXPECT_TRUE(isWrong([&] { found.weights[0] = NAN; }));
  EXPECT_TRUE(isWrong([&] { found.rows[0] = 0; }));
  EXPECT_FALSE(isWrong([&] {}));
}

// The runtime takes an exact SVD of those.
TEST_F(InitCheck, CountsWhatDidNotConverge) {
  found.status[3] = SS_STATUS_NOT_CONVERGED;
  found.ranks[3] = 1;
  check();
  EXPECT_TRUE(result.isCorrect());
  EXPECT_EQ(result.leftOver, 1);
}

} // namespace
