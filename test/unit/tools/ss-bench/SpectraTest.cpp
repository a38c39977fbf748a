//===- SpectraTest.cpp - Matrices with the ranks of a profile -------------===//

#include "Spectra.h"

#include <Eigen/SVD>

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(Spectra, HaveTheSingularValuesTheySay) {
  auto profile = RankProfile::parse("uniform:5");
  ASSERT_TRUE(profile);
  const Spectra spectra(12, 20, 3, 1e-2, *profile, 1);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(spectra.rank[size_t(i)], 5);
    const Eigen::Map<const Eigen::MatrixXf> columns(
        spectra.columns.data() + i * 240, 12, 20);
    const Eigen::Map<const Eigen::MatrixXf> rows(
        spectra.rows.data() + i * 240, 20, 12);
    EXPECT_EQ(columns, rows.transpose());
    const Eigen::VectorXd found =
        Eigen::JacobiSVD<Eigen::MatrixXd>(columns.cast<double>())
            .singularValues();
    for (int64_t j = 0; j < 12; ++j)
      EXPECT_NEAR(found[j], spectra.valuesOf(i)[j], 1e-6) << j;
  }
}

TEST(Spectra, FollowTheProfile) {
  auto profile = RankProfile::parse("nemo4b");
  ASSERT_TRUE(profile);
  const Spectra spectra(80, 128, 200, 3e-3, *profile, 2);
  int64_t dense = 0, small = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const int32_t rank = spectra.rank[size_t(i)];
    dense += rank == 80;
    small += rank <= 8;
    ASSERT_TRUE((rank >= 2 && rank <= 48) || rank == 80) << rank;
    // Nothing near the line between kept and dropped.
    for (int32_t j = 0; j < 80; ++j)
      ASSERT_GT(std::abs(spectra.valuesOf(i)[j] / 3e-3 - 1), 0.02);
  }
  EXPECT_GT(dense, 0);
  EXPECT_GT(small, 20);
}

} // namespace
