#include "Implementations.h"
#include "Matrices.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

using namespace sinkstate::test;

namespace {

constexpr int width = 128;

struct Orthogonalized {
  Matrix t;
  Matrix r;
  int32_t status;
};

class OrthogonalizeTest : public RoutineTest {
protected:
  int m() const { return std::get<1>(GetParam()); }

  Orthogonalized run(Matrix gram) const {
    Orthogonalized result{
        Matrix::Constant(m(), m(), std::numeric_limits<double>::quiet_NaN()),
        std::move(gram), 0};
    result.status = std::get<0>(GetParam())
                        .table->ss_orthogonalize(m(), result.r.data(),
                                                 result.t.data());
    return result;
  }

  /// T and R of the rows of a; the kept rows of T A must be orthonormal and
  /// span a, and R must take them back to a.
  Orthogonalized check(const Matrix &a, double tolerance) const {
    Orthogonalized result = run(a * a.transpose());
    Matrix q = result.t * a;
    EXPECT_LE(orthogonalityError(q), tolerance);
    Vector norms = a.rowwise().norm();
    Matrix rest = a - (a * q.transpose()) * q;
    for (int i = 0; i < m(); ++i)
      EXPECT_LE(rest.row(i).norm(), 1e-6 * norms[i]);
    Matrix loss = a - result.r.transpose() * q;
    for (int i = 0; i < m(); ++i) {
      EXPECT_LE(loss.row(i).norm(), 1e-6 * norms[i]);
      EXPECT_EQ(result.r.row(i).isZero(0), result.t.row(i).isZero(0));
    }
    return result;
  }
};

TEST_P(OrthogonalizeTest, Random) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Orthogonalized result = check(gaussian(m(), width, seed), 1e-13);
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(nonZeroRows(result.t), m());
  }
}

TEST_P(OrthogonalizeTest, OrthonormalRowsStay) {
  Orthogonalized result = check(orthonormal(m(), width, 1), 1e-14);
  EXPECT_EQ(result.status, 0);
  EXPECT_LE((result.t - Matrix::Identity(m(), m())).cwiseAbs().maxCoeff(),
            1e-14);
  EXPECT_LE((result.r - Matrix::Identity(m(), m())).cwiseAbs().maxCoeff(),
            1e-14);
}

// The largest row is the first pivot, what is left of the others comes next:
// the order that reveals the rank. Row i of R is that of pivot i.
TEST_P(OrthogonalizeTest, PivotsAreTheLargestResiduals) {
  Matrix a = gaussian(m(), width, 9);
  for (int i = 0; i < m(); ++i)
    a.row(i) *= std::pow(0.8, (i * 5) % m());
  Matrix r = check(a, 1e-13).r;
  std::vector<int> order(m(), 0);
  for (int i = 0; i < m(); ++i)
    order[size_t(i)] = i;
  std::sort(order.begin(), order.end(),
            [&](int i, int j) { return r(i, i) > r(j, j); });
  for (int step = 0; step < m(); ++step) {
    int pivot = order[size_t(step)];
    for (int later = 0; later < m(); ++later) {
      int j = order[size_t(later)];
      if (later < step)
        EXPECT_EQ(r(pivot, j), 0) << "a pivot's part of an earlier one";
      double left = 0; // squared residual of row j before this step
      for (int k = step; k < m(); ++k)
        left += r(order[size_t(k)], j) * r(order[size_t(k)], j);
      if (later >= step)
        EXPECT_LE(std::sqrt(left), r(pivot, pivot) * (1 + 1e-12));
    }
  }
}

TEST_P(OrthogonalizeTest, WorksAtAnyScale) {
  Matrix a = gaussian(m(), width, 2);
  Orthogonalized plain = check(a, 1e-13);
  Vector scale = Vector::NullaryExpr(
      m(), [](auto i) { return std::ldexp(1.0, 37 * (int(i) % 5) - 60); });
  Orthogonalized scaled = check(scale.asDiagonal() * a, 1e-13);
  EXPECT_EQ(scaled.status, 0);
  EXPECT_EQ(nonZeroRows(scaled.t), m());
  for (int exponent : {-500, 500}) {
    double factor = std::ldexp(1.0, exponent);
    Orthogonalized other = check(a * factor, 1e-13);
    EXPECT_TRUE(sameBits(other.t * factor, plain.t));
    EXPECT_TRUE(sameBits(other.r / factor, plain.r));
  }
}

TEST_P(OrthogonalizeTest, IllConditionedAsksForMore) {
  if (m() < 2)
    return; // one row cannot be ill-conditioned
  for (double angle : {1e-2, 4e-3, 1e-5}) {
    Matrix a = gaussian(m(), width, 3);
    for (int i = 1; i < m(); ++i)
      a.row(i) = a.row(0) + angle * a.row(i);
    Orthogonalized once = check(a, 4e-15 * (m() + 10) / (angle * angle));
    EXPECT_EQ(nonZeroRows(once.t), m());
    EXPECT_EQ(once.status, angle < 1e-4 ? SS_STATUS_ILL_CONDITIONED : 0);
    Matrix q = once.t * a;
    Orthogonalized twice = check(q, 1e-13);
    EXPECT_EQ(twice.status, 0);
  }
}

TEST_P(OrthogonalizeTest, DropsDuplicatesAndZeros) {
  Matrix a = gaussian(m(), width, 4);
  int distinct = (m() + 2) / 3;
  for (int i = distinct; i < m(); ++i)
    if (i % 4 == 3)
      a.row(i).setZero();
    else
      a.row(i) = -1.5 * a.row(i % distinct);
  Orthogonalized result = check(a, 1e-13);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(nonZeroRows(result.t), distinct);
}

TEST_P(OrthogonalizeTest, DropsDependentRows) {
  int rank = (m() + 1) / 2;
  Matrix a = gaussian(m(), rank, 5) * gaussian(rank, width, 6);
  Orthogonalized result = run(a * a.transpose());
  Matrix q = result.t * a;
  EXPECT_EQ(nonZeroRows(result.t), rank);
  if (result.status == 0)
    EXPECT_LE(orthogonalityError(q), 1e-6);
}

TEST_P(OrthogonalizeTest, ZeroGram) {
  Orthogonalized result = run(Matrix::Zero(m(), m()));
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.t.isZero(0));
  EXPECT_TRUE(result.r.isZero(0));
}

TEST_P(OrthogonalizeTest, NotFinite) {
  double inf = std::numeric_limits<double>::infinity();
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), inf, -inf}) {
    for (int at : {0, m() * m() / 2, m() * m() - 1}) {
      Matrix a = gaussian(m(), width, 7);
      Matrix gram = a * a.transpose();
      gram.data()[at] = bad;
      Orthogonalized result = run(gram);
      EXPECT_EQ(result.status, SS_STATUS_NOT_FINITE);
      EXPECT_TRUE(result.t.isZero(0));
      EXPECT_TRUE(result.r.isZero(0));
    }
  }
}

TEST_P(OrthogonalizeTest, Deterministic) {
  Matrix a = gaussian(m(), width, 8);
  Matrix gram = a * a.transpose();
  EXPECT_TRUE(sameBits(run(gram).t, run(gram).t));
  EXPECT_TRUE(sameBits(run(gram).r, run(gram).r));
}

INSTANTIATE_TEST_SUITE_P(
    , OrthogonalizeTest,
    ::testing::Combine(::testing::ValuesIn(implementations()),
                       ::testing::ValuesIn(matrixSizes())),
    caseName);

} // namespace
