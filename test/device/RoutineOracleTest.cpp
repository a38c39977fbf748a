//===- RoutineOracleTest.cpp - Routines of the device against the oracle --===//
//
// The routines of codegen/cuda/device on many matrices at once: random,
// ill-conditioned, graded and rank-deficient ones in turn.
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"
#include "PackageModels.h"
#include "SvdOracle.h"

#include <cmath>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int kMatrices = 1024;
/// Columns of the rows that are made orthonormal.
constexpr int kWidth = 32;
/// What may be lost of a row, relative to itself: a dropped residual, 3e-7, and
/// where rows range over 1e13, pivots by size that are small of their own row.
constexpr double kRowLoss = 2e-5;

const char *kindOf(int i) {
  constexpr const char *kinds[] = {"random", "ill-conditioned", "graded",
                                   "rank-deficient"};
  return kinds[i % 4];
}

/// Matrix i of the batch.
Matrix matrixOf(int i, int m) {
  const unsigned seed = unsigned(7 * i + m);
  const Matrix random = gaussian(m, m, seed);
  switch (i % 4) {
  case 0:
    return random;
  case 1:
    return withSingularValues(graded(m, std::pow(10.0, -2 - i % 11)), seed);
  case 2: { // rows and columns of very different lengths, up and down
    const Vector scale = graded(m, std::pow(10.0, -4 - i % 9));
    return scale.asDiagonal() * random * scale.reverse().asDiagonal();
  }
  default: {
    const int rank = 1 + (i / 4) % (m - 1);
    return gaussian(m, rank, seed) * gaussian(rank, m, seed + 1);
  }
  }
}

class RoutineOracle : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    std::string reason = gpuUnavailable();
    if (reason.empty())
      oracle = SvdOracle::open(reason);
    if (oracle)
      routines = RoutineRunner::open(reason);
    if (!routines)
      GTEST_SKIP() << reason;
  }
  int m() const { return GetParam(); }
  static Matrix part(const std::vector<double> &all, int i, int rows,
                     int columns) {
    return Eigen::Map<const Matrix>(all.data() + long(i) * rows * columns,
                                    rows, columns);
  }
  static void add(std::vector<double> &all, const Matrix &matrix) {
    all.insert(all.end(), matrix.data(), matrix.data() + matrix.size());
  }

  /// T A of every A, with what the routine says of each; R must take the rows
  /// back to A.
  std::vector<Matrix> orthogonalized(const std::vector<Matrix> &rows,
                                     std::vector<int32_t> &status) {
    std::vector<double> gram, t;
    for (const Matrix &a : rows)
      add(gram, a * a.transpose());
    status = routines->orthogonalize(m(), gram, t);
    std::vector<Matrix> result;
    for (size_t i = 0; i < rows.size(); ++i) {
      result.push_back(part(t, int(i), m(), m()) * rows[i]);
      const Matrix loss = rows[i] - part(gram, int(i), m(), m()).transpose() *
                                        result.back();
      // Written so that NaN fails.
      for (int j = 0; j < m(); ++j)
        EXPECT_LE(loss.row(j).norm(), kRowLoss * rows[i].row(j).norm())
            << "row " << j << " of matrix " << i;
    }
    return result;
  }

  std::unique_ptr<SvdOracle> oracle;
  std::unique_ptr<RoutineRunner> routines;
};

TEST_P(RoutineOracle, AgreesOnTheCore) {
  std::vector<double> matrices, xt, sigma, yt;
  for (int i = 0; i < kMatrices; ++i)
    add(matrices, matrixOf(i, m()));
  const std::vector<int32_t> status =
      routines->coreSvd(m(), matrices, xt, sigma, yt);
  const std::vector<double> expected =
      oracle->singularValues(matrices, m(), m());
  for (int i = 0; i < kMatrices; ++i) {
    SCOPED_TRACE(testing::Message() << kindOf(i) << " matrix " << i);
    EXPECT_EQ(status[size_t(i)], 0);
    const Matrix c = part(matrices, i, m(), m());
    const Matrix x = part(xt, i, m(), m()), y = part(yt, i, m(), m());
    const Vector s = part(sigma, i, m(), 1), known = part(expected, i, m(), 1);
    // Written so that NaN fails.
    EXPECT_LE((s - known).cwiseAbs().maxCoeff(), 1e-12 * known(0));
    EXPECT_LE((x.transpose() * s.asDiagonal() * y - c).norm(),
              1e-12 * known(0));
    EXPECT_LE(orthogonalityError(x), 1e-12);
    EXPECT_LE(orthogonalityError(y), 1e-12);
    for (int j = 1; j < m(); ++j)
      EXPECT_LE(s(j), s(j - 1));
  }
}

/// Singular values of orthonormal rows are ones, as many as there are rows.
TEST_P(RoutineOracle, AgreesThatRowsAreOrthonormal) {
  std::vector<Matrix> rows;
  for (int i = 0; i < kMatrices; ++i)
    rows.push_back(matrixOf(i, m()) *
                   orthonormal(m(), kWidth, unsigned(i) + 5000));
  std::vector<int32_t> status, again;
  const std::vector<Matrix> once = orthogonalized(rows, status);
  const std::vector<Matrix> twice = orthogonalized(once, again);
  for (const auto &[results, exact] : {std::pair(&once, false), {&twice, true}}) {
    std::vector<double> all;
    for (const Matrix &q : *results)
      add(all, q);
    const std::vector<double> sigma =
        oracle->singularValues(all, m(), kWidth);
    for (int i = 0; i < kMatrices; ++i) {
      SCOPED_TRACE(testing::Message() << kindOf(i) << " matrix " << i
                                      << (exact ? ", twice" : ", once"));
      if (!exact && status[size_t(i)] == SS_STATUS_ILL_CONDITIONED)
        continue;
      EXPECT_EQ((exact ? again : status)[size_t(i)], 0);
      const Matrix &q = (*results)[size_t(i)];
      for (int j = 0; j < m(); ++j)
        EXPECT_NEAR(sigma[size_t(i * m() + j)], j < nonZeroRows(q) ? 1 : 0,
                    exact ? 1e-10 : 1e-6);
    }
  }
  for (int i = 0; i < kMatrices; ++i) {
    // Nothing of a row is lost but what was below the routine's tolerance.
    const Matrix &a = rows[size_t(i)], &q = twice[size_t(i)];
    const Matrix rest = a - a * q.transpose() * q;
    for (int j = 0; j < m(); ++j)
      EXPECT_LE(rest.row(j).norm(), kRowLoss * a.row(j).norm())
          << kindOf(i) << " matrix " << i << ", row " << j;
  }
}

/// Rows of init kernels: 128 at most.
class GramOracle : public RoutineOracle {};

/// What is wanted is there, to 1e-3, and its vectors are orthonormal and lose no
/// more of the matrix than the oracle's would.
TEST_P(GramOracle, AgreesOnTheLargestSingularValues) {
  constexpr int count = 32;
  constexpr double share = 3e-3;
  std::vector<float> matrices, vectors;
  for (int i = 0; i < count; ++i) {
    const Eigen::MatrixXf narrow =
        matrixOf(i, m()).transpose().cast<float>(); // by rows
    matrices.insert(matrices.end(), narrow.data(), narrow.data() + narrow.size());
  }
  const std::vector<double> all(matrices.begin(), matrices.end());
  std::vector<double> sigma;
  const std::vector<int32_t> status =
      routines->gramSvd(m(), share, matrices, vectors, sigma);
  const std::vector<double> left(vectors.begin(), vectors.end());
  const std::vector<double> expected = oracle->singularValues(all, m(), m());
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << kindOf(i) << " matrix " << i);
    EXPECT_EQ(status[size_t(i)], 0);
    const Vector s = part(sigma, i, m(), 1), known = part(expected, i, m(), 1);
    const Matrix a = part(all, i, m(), m());
    int wanted = 0;
    while (wanted < m() && known(wanted) >= share * known(0))
      ++wanted;
    // Written so that NaN fails.
    for (int j = 0; j < wanted; ++j)
      EXPECT_LE(std::abs(s(j) - known(j)), 1e-3 * known(j)) << j;
    for (int j = 1; j < m(); ++j)
      EXPECT_LE(s(j), s(j - 1)) << j;
    const Matrix rows = part(left, i, m(), m()).topRows(wanted);
    EXPECT_LE((rows * rows.transpose() - Matrix::Identity(wanted, wanted))
                  .cwiseAbs().maxCoeff(), 1e-5);
    const double least = known.tail(m() - wanted).norm();
    EXPECT_LE((a - rows.transpose() * (rows * a)).norm(),
              1.01 * least + 1e-5 * known.norm());
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, GramOracle, testing::Values(16, 33, 80, 128));

INSTANTIATE_TEST_SUITE_P(Sizes, RoutineOracle, testing::Values(8, 16, 24, 32));

} // namespace
