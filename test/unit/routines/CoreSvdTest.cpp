#include "Implementations.h"
#include "Matrices.h"

#include <cstring>
#include <limits>

using namespace sinkstate::test;

namespace {

struct Svd {
  Matrix xt, yt;
  Vector sigma;
  int32_t status;

  Matrix product() const { return xt.transpose() * sigma.asDiagonal() * yt; }
};

class CoreSvdTest : public RoutineTest {
protected:
  int m() const { return std::get<1>(GetParam()); }

  Svd run(Matrix c) const {
    double unset = std::numeric_limits<double>::quiet_NaN();
    Svd svd{Matrix::Constant(m(), m(), unset), Matrix::Constant(m(), m(), unset),
            Vector::Constant(m(), unset), 0};
    svd.status = std::get<0>(GetParam())
                     .table->ss_core_svd(m(), c.data(), svd.xt.data(),
                                         svd.sigma.data(), svd.yt.data());
    return svd;
  }

  /// Reconstruction, orthogonality and order, relative to the largest element
  /// so that extreme scales do not overflow here.
  Svd check(const Matrix &c, double orthogonality = 1e-12) const {
    Svd svd = run(c);
    EXPECT_EQ(svd.status, 0);
    double scale = c.cwiseAbs().maxCoeff();
    if (scale == 0)
      scale = 1;
    Svd scaled = svd;
    scaled.sigma /= scale;
    Matrix reference = c / scale;
    EXPECT_LE((scaled.product() - reference).norm(), 1e-12 * reference.norm());
    EXPECT_LE(orthogonalityError(svd.xt), orthogonality);
    EXPECT_LE(orthogonalityError(svd.yt), orthogonality);
    for (int i = 0; i < m(); ++i) {
      EXPECT_GE(svd.sigma[i], 0);
      if (i)
        EXPECT_LE(svd.sigma[i], svd.sigma[i - 1]);
      EXPECT_EQ(svd.sigma[i] == 0, svd.xt.row(i).isZero(0));
      EXPECT_EQ(svd.sigma[i] == 0, svd.yt.row(i).isZero(0));
    }
    return svd;
  }

  void checkSigma(const Svd &svd, const Vector &expected) const {
    EXPECT_LE((svd.sigma - expected).cwiseAbs().maxCoeff(),
              1e-13 * expected[0]);
  }
};

TEST_P(CoreSvdTest, Random) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Matrix c = gaussian(m(), m(), seed);
    Svd svd = check(c);
    Eigen::Matrix<long double, -1, -1> wide = c.cast<long double>();
    Eigen::JacobiSVD<decltype(wide)> reference(wide);
    checkSigma(svd, reference.singularValues().cast<double>());
  }
}

TEST_P(CoreSvdTest, KnownConditions) {
  for (double last : {1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-14}) {
    Vector sigma = graded(m(), last);
    Svd svd = check(withSingularValues(sigma, 7));
    checkSigma(svd, sigma);
    EXPECT_EQ(nonZeroRows(svd.xt), m());
  }
}

TEST_P(CoreSvdTest, RepeatedValues) {
  Vector sigma(m());
  for (int i = 0; i < m(); ++i)
    sigma[i] = i < m() / 2 ? 3 : i < m() - 1 ? 1e-3 : 1e-9;
  checkSigma(check(withSingularValues(sigma, 3)), sigma);
  // Clusters closer than any rotation can tell apart.
  for (int i = 0; i < m(); ++i)
    sigma[i] = 1 + 1e-12 * (m() - i);
  checkSigma(check(withSingularValues(sigma, 4)), sigma);
  check(Matrix::Identity(m(), m()) + 1e-9 * gaussian(m(), m(), 5));
  check(Matrix::Ones(m(), m()) + 1e-10 * gaussian(m(), m(), 6));
}

TEST_P(CoreSvdTest, RankDeficient) {
  for (int rank = 0; rank <= m(); rank += std::max(1, m() / 5)) {
    Vector sigma = graded(m(), 1e-3);
    sigma.tail(m() - rank).setZero();
    Svd svd = check(withSingularValues(sigma, rank));
    if (rank)
      checkSigma(svd, sigma);
    EXPECT_GE(nonZeroRows(svd.xt), rank);
  }
}

TEST_P(CoreSvdTest, ZeroRowsAndColumns) {
  Matrix c = gaussian(m(), m(), 2);
  for (int i = 0; i < m(); i += 3)
    c.row(i).setZero();
  for (int i = 1; i < m(); i += 3)
    c.col(i).setZero();
  check(c);
  c.setZero();
  c(m() - 1, 0) = -5;
  Svd svd = check(c);
  EXPECT_EQ(svd.sigma[0], 5);
  EXPECT_EQ(nonZeroRows(svd.yt), 1);
}

TEST_P(CoreSvdTest, GradedRowsAndColumns) {
  Vector grade = graded(m(), 1e-12);
  Matrix c = gaussian(m(), m(), 8);
  check(grade.asDiagonal() * c);
  check(c * grade.asDiagonal());
  check(grade.reverse().asDiagonal() * c);
  check(c * grade.reverse().asDiagonal());
  // A core of an active set and a buffer: heavy diagonal, light rest.
  check(Matrix(grade.asDiagonal()) + 1e-3 * c);
  checkSigma(check(Matrix(grade.reverse().asDiagonal())), grade);
}

TEST_P(CoreSvdTest, ExtremeScales) {
  Matrix c = gaussian(m(), m(), 9);
  Svd plain = check(c);
  for (int exponent : {-1000, -498, 498, 1000}) {
    double scale = std::ldexp(1.0, exponent);
    Svd svd = check(c * scale);
    EXPECT_TRUE(sameBits(svd.xt, plain.xt));
    EXPECT_TRUE(sameBits(svd.sigma / scale, plain.sigma));
  }
  check(c * 1e-150);
  check(c * 1e150);
  // Denormals keep few bits; the result must still be orthonormal.
  Svd svd = run(c * 1e-320);
  EXPECT_EQ(svd.status, 0);
  EXPECT_LE(orthogonalityError(svd.xt), 1e-12);
}

TEST_P(CoreSvdTest, AllZero) {
  Svd svd = check(Matrix::Zero(m(), m()));
  EXPECT_EQ(nonZeroRows(svd.xt), 0);
  EXPECT_TRUE(svd.sigma.isZero(0));
}

TEST_P(CoreSvdTest, NotFinite) {
  double inf = std::numeric_limits<double>::infinity();
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), inf, -inf}) {
    for (int at : {0, m() * m() / 2, m() * m() - 1}) {
      Matrix c = gaussian(m(), m(), 1);
      c.data()[at] = bad;
      Svd svd = run(c);
      EXPECT_EQ(svd.status, SS_STATUS_NOT_FINITE);
      EXPECT_TRUE(svd.xt.isZero(0));
      EXPECT_TRUE(svd.yt.isZero(0));
      EXPECT_TRUE(svd.sigma.isZero(0));
    }
  }
}

// The same bits from run to run. Between implementations results agree to
// rounding only: their vectors are summed in different orders.
TEST_P(CoreSvdTest, Deterministic) {
  Matrix c = gaussian(m(), m(), 11);
  Svd first = run(c), second = run(c);
  EXPECT_TRUE(sameBits(first.xt, second.xt));
  EXPECT_TRUE(sameBits(first.yt, second.yt));
  EXPECT_TRUE(sameBits(first.sigma, second.sigma));
}

INSTANTIATE_TEST_SUITE_P(
    , CoreSvdTest,
    ::testing::Combine(::testing::ValuesIn(implementations()),
                       ::testing::ValuesIn(matrixSizes())),
    caseName);

} // namespace
