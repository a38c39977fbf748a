//===- CusolverOracleTest.cpp - The oracle itself -------------------------===//

#include "CusolverFile.h"
#include "CusolverOracle.h"
#include "PackageModels.h"

#include <cmath>

using namespace sinkstate::test;

namespace {

TEST(CusolverLibrary, SaysWhereItLooked) {
  std::string reason;
  EXPECT_EQ(CusolverLibrary::load({"/nowhere/libcusolver.so.12"}, reason),
            nullptr);
  EXPECT_NE(reason.find("looked for '/nowhere/libcusolver.so.12'"),
            std::string::npos)
      << reason;
}

TEST(CusolverLibrary, HasEveryFunction) {
  std::string reason;
  if (!CusolverLibrary::load(sinkstate::cusolverCandidates(), reason)) {
    // One that is there but lacks a function is a failure.
    EXPECT_EQ(reason.find("cuSOLVER has no function"), std::string::npos)
        << reason;
    GTEST_SKIP() << reason;
  }
}

/// Rows scaled to 3, 2 and 1: their norms are the singular values.
TEST(CusolverOracle, KnowsDiagonalMatrices) {
  if (std::string reason = gpuUnavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  std::string reason;
  const std::unique_ptr<SvdOracle> oracle = SvdOracle::open(reason);
  if (!oracle)
    GTEST_SKIP() << reason;
  for (auto [rows, columns] : {std::pair(3, 5), {5, 3}, {3, 40}, {40, 3}}) {
    std::vector<double> matrices(size_t(2 * rows * columns));
    for (int i = 0; i < 3; ++i) {
      matrices[size_t(i * columns + i)] = i + 1;
      matrices[size_t(rows * columns + i * columns + i)] = -10 * (i + 1);
    }
    const std::vector<double> sigma =
        oracle->singularValues(matrices, rows, columns);
    ASSERT_EQ(sigma.size(), 6u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(sigma[size_t(i)], 3 - i, 1e-14);
      EXPECT_NEAR(sigma[size_t(3 + i)], 10 * (3 - i), 1e-13);
    }
  }
}

} // namespace
