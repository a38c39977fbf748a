#include "consolidation/ExactSvd.h"

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

using namespace sinkstate::consolidation;

namespace {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMatrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix gaussian(int rows, int cols, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, cols,
                             [&](auto, auto) { return normal(engine); });
}

Matrix orthonormalRows(int rows, int cols, unsigned seed) {
  Matrix a = gaussian(cols, rows, seed);
  Eigen::HouseholderQR<Matrix> qr(a);
  return Matrix(qr.householderQ() * Matrix::Identity(cols, rows)).transpose();
}

/// Components as the runtime stores them.
struct Components {
  int dk, dv;
  FloatMatrix rows; // [v | u]
  Eigen::VectorXf weights;

  int count() const { return int(weights.size()); }
  Matrix v() const { return rows.leftCols(dk).cast<double>(); }
  Matrix u() const { return rows.rightCols(dv).cast<double>(); }
  /// [dk, dv]: row c is column c of H.
  Matrix dense() const {
    return v().transpose() * weights.cast<double>().asDiagonal() * u();
  }
  void keep(int rank) {
    rows.conservativeResize(rank, dk + dv);
    weights.conservativeResize(rank);
  }
};

Components randomComponents(int count, int dk, int dv, unsigned seed) {
  Components c{dk, dv, FloatMatrix(count, dk + dv), Eigen::VectorXf(count)};
  Matrix v = gaussian(count, dk, seed), u = gaussian(count, dv, seed + 1);
  v.rowwise().normalize();
  u.rowwise().normalize();
  c.rows << v.cast<float>(), u.cast<float>();
  for (int i = 0; i < count; ++i)
    c.weights[i] = float(std::pow(0.8, i % 20));
  return c;
}

SvdResult consolidateAll(Components &c, const Truncation &truncation) {
  SvdResult result = consolidate(c.rows.data(), c.weights.data(), c.count(),
                                 c.dk, c.dv, truncation);
  if (result.status == SvdStatus::ok)
    c.keep(result.rank);
  return result;
}

double orthogonalityError(const Matrix &rows) {
  Matrix gram = rows * rows.transpose();
  gram.diagonal().array() -= 1;
  return gram.size() ? gram.cwiseAbs().maxCoeff() : 0;
}

void expectOrthonormalAndSorted(const Components &c) {
  EXPECT_LE(orthogonalityError(c.v()), 5e-7);
  EXPECT_LE(orthogonalityError(c.u()), 5e-7);
  for (int i = 0; i < c.count(); ++i) {
    EXPECT_GT(c.weights[i], 0);
    if (i)
      EXPECT_LE(c.weights[i], c.weights[i - 1]);
  }
}

struct Sizes {
  int count, dk, dv;
};

class ConsolidateTest : public ::testing::TestWithParam<Sizes> {};

TEST_P(ConsolidateTest, KeepsTheProduct) {
  auto [count, dk, dv] = GetParam();
  Components c = randomComponents(count, dk, dv, 1);
  Matrix before = c.dense();
  SvdResult result = consolidateAll(c, {});
  ASSERT_EQ(result.status, SvdStatus::ok);
  EXPECT_LE(result.rank, std::min({count, dk, dv}));
  EXPECT_LE((c.dense() - before).norm(), 1e-6 * before.norm());
  expectOrthonormalAndSorted(c);
}

TEST_P(ConsolidateTest, DropsNoMoreThanAllowed) {
  auto [count, dk, dv] = GetParam();
  Components c = randomComponents(count, dk, dv, 2);
  Matrix before = c.dense();
  Eigen::VectorXd sigma =
      Eigen::JacobiSVD<Eigen::MatrixXd>(before).singularValues();
  double largest = 2 * sigma[0], eps = 0.1;
  SvdResult result = consolidateAll(c, {eps, largest});
  ASSERT_EQ(result.status, SvdStatus::ok);
  int expected = int((sigma.array() >= eps * largest).count());
  EXPECT_EQ(result.rank, expected);
  double dropped = sigma.tail(sigma.size() - expected).norm();
  EXPECT_NEAR((c.dense() - before).norm(), dropped, 1e-6 * before.norm());
}

INSTANTIATE_TEST_SUITE_P(
    , ConsolidateTest,
    ::testing::Values(Sizes{1, 4, 3}, Sizes{8, 128, 128}, Sizes{40, 128, 80},
                      Sizes{100, 128, 128}, Sizes{150, 128, 128},
                      Sizes{96, 64, 80}, Sizes{5, 1, 7}),
    [](const auto &info) {
      return std::to_string(info.param.count) + "_of_" +
             std::to_string(info.param.dk) + "x" +
             std::to_string(info.param.dv);
    });

TEST(ConsolidateEdgeTest, DependentComponentsMerge) {
  Components c = randomComponents(12, 32, 24, 3);
  for (int i = 6; i < 12; ++i)
    c.rows.row(i) = (i % 2 ? -1 : 1) * c.rows.row(i - 6);
  c.rows.row(2).setZero();
  c.weights[8] = c.weights[4] = 0;
  Matrix before = c.dense();
  SvdResult result = consolidateAll(c, {});
  ASSERT_EQ(result.status, SvdStatus::ok);
  EXPECT_EQ(result.rank, 5);
  EXPECT_LE((c.dense() - before).norm(), 1e-6 * before.norm());
  expectOrthonormalAndSorted(c);
}

TEST(ConsolidateEdgeTest, EmptyAndZero) {
  EXPECT_EQ(consolidate(nullptr, nullptr, 0, 8, 8, {}).rank, 0);
  Components c = randomComponents(4, 8, 8, 4);
  c.weights.setZero();
  SvdResult result = consolidateAll(c, {0.1, 3.0});
  EXPECT_EQ(result.status, SvdStatus::ok);
  EXPECT_EQ(result.rank, 0);
}

TEST(ConsolidateEdgeTest, ExtremeWeights) {
  for (float scale : {1e30f, 1e-30f}) {
    Components c = randomComponents(20, 64, 48, 5);
    c.weights *= scale;
    Matrix before = c.dense();
    SvdResult result = consolidateAll(c, {});
    ASSERT_EQ(result.status, SvdStatus::ok);
    EXPECT_EQ(result.rank, 20);
    EXPECT_LE((c.dense() - before).norm(), 1e-6 * before.norm());
    expectOrthonormalAndSorted(c);
  }
}

TEST(ConsolidateEdgeTest, NotFiniteLeavesTheDataAlone) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity()}) {
    Components c = randomComponents(6, 16, 16, 6);
    c.rows(3, 20) = bad;
    Components before = c;
    EXPECT_EQ(consolidateAll(c, {}).status, SvdStatus::notFinite);
    EXPECT_EQ(std::memcmp(c.rows.data(), before.rows.data(),
                          c.rows.size() * sizeof(float)),
              0);
    c = randomComponents(6, 16, 16, 6);
    c.weights[0] = bad;
    EXPECT_EQ(consolidateAll(c, {}).status, SvdStatus::notFinite);
  }
  // A sum of components that no float weight can hold.
  Components c = randomComponents(2, 8, 8, 7);
  c.rows.row(1) = c.rows.row(0);
  c.weights.setConstant(3e38f);
  Components before = c;
  EXPECT_EQ(consolidateAll(c, {}).status, SvdStatus::notFinite);
  EXPECT_EQ(c.rows, before.rows);
}

TEST(ConsolidateEdgeTest, SameBitsOnEveryThread) {
  Components reference = randomComponents(60, 128, 80, 8);
  const Components input = reference;
  consolidateAll(reference, {});
  std::vector<Components> copies(4, input);
  std::vector<std::thread> threads;
  for (Components &copy : copies)
    threads.emplace_back([&copy] { consolidateAll(copy, {}); });
  for (std::thread &thread : threads)
    thread.join();
  for (const Components &copy : copies) {
    EXPECT_EQ(copy.rows, reference.rows);
    EXPECT_EQ(copy.weights, reference.weights);
  }
}

class FactorizeTest : public ::testing::TestWithParam<Sizes> {};

TEST_P(FactorizeTest, ReproducesTheMatrix) {
  auto [rank, dk, dv] = GetParam();
  for (double scale : {1.0, 1e30, 1e-30}) {
    Eigen::VectorXd sigma(rank);
    for (int i = 0; i < rank; ++i)
      sigma[i] = scale * std::pow(1e-5, double(i) / rank);
    FloatMatrix dense = (orthonormalRows(rank, dk, 9).transpose() *
                         sigma.asDiagonal() * orthonormalRows(rank, dv, 10))
                            .cast<float>();
    int room = std::min(dk, dv);
    Components c{dk, dv, FloatMatrix(room, dk + dv), Eigen::VectorXf(room)};
    SvdResult result = factorize(dense.data(), dk, dv, {1e-6}, c.rows.data(),
                                 c.weights.data());
    ASSERT_EQ(result.status, SvdStatus::ok);
    EXPECT_EQ(result.rank, rank);
    c.keep(result.rank);
    EXPECT_LE((c.dense() - dense.cast<double>()).norm(),
              1e-6 * dense.cast<double>().norm());
    EXPECT_LE((c.weights.cast<double>() - sigma).cwiseAbs().maxCoeff(),
              1e-6 * sigma[0]);
    expectOrthonormalAndSorted(c);
  }
}

INSTANTIATE_TEST_SUITE_P(, FactorizeTest,
                         ::testing::Values(Sizes{1, 1, 1}, Sizes{3, 16, 8},
                                           Sizes{20, 128, 80},
                                           Sizes{30, 128, 128},
                                           Sizes{30, 64, 128}),
                         [](const auto &info) {
                           return std::to_string(info.param.count) + "_of_" +
                                  std::to_string(info.param.dk) + "x" +
                                  std::to_string(info.param.dv);
                         });

TEST(FactorizeEdgeTest, ZeroAndNotFinite) {
  FloatMatrix dense = FloatMatrix::Zero(8, 6);
  std::vector<float> rows(6 * 14, -1), weights(6, -1);
  SvdResult result =
      factorize(dense.data(), 8, 6, {}, rows.data(), weights.data());
  EXPECT_EQ(result.status, SvdStatus::ok);
  EXPECT_EQ(result.rank, 0);
  dense(3, 2) = std::numeric_limits<float>::quiet_NaN();
  result = factorize(dense.data(), 8, 6, {}, rows.data(), weights.data());
  EXPECT_EQ(result.status, SvdStatus::notFinite);
  EXPECT_EQ(rows, std::vector<float>(6 * 14, -1));
}

TEST(FactorizeEdgeTest, EqualSingularValuesAndTinyRemainder) {
  FloatMatrix dense = 5 * FloatMatrix::Identity(12, 12);
  dense(7, 7) = 1e-9f; // below 2^-22 of the largest
  std::vector<float> rows(12 * 24), weights(12);
  SvdResult result =
      factorize(dense.data(), 12, 12, {}, rows.data(), weights.data());
  ASSERT_EQ(result.status, SvdStatus::ok);
  EXPECT_EQ(result.rank, 11);
  for (int i = 0; i < 11; ++i)
    EXPECT_FLOAT_EQ(weights[i], 5);
}

} // namespace
