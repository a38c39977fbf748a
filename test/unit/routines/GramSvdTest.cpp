#include "EmulatedDevice.h"
#include "Implementations.h"
#include "Matrices.h"
#include "WarpEmulator.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace sinkstate::test;

namespace {

/// A symmetric matrix in the memory of its vectors.
std::vector<float> packed(const Matrix &gram) {
  const auto m = int(gram.rows());
  std::vector<double> elements;
  for (int i = 0; i < m; ++i)
    for (int j = i; j < m; ++j)
      elements.push_back(gram(i, j));
  std::vector<float> memory(size_t(m + 1) * size_t(m));
  std::memcpy(memory.data(), elements.data(), memory.size() * sizeof(float));
  return memory;
}

Matrix unpacked(const std::vector<float> &memory, int m) {
  std::vector<double> elements(memory.size() / 2);
  std::memcpy(elements.data(), memory.data(), memory.size() * sizeof(float));
  Matrix gram(m, m);
  size_t at = 0;
  for (int i = 0; i < m; ++i)
    for (int j = i; j < m; ++j)
      gram(i, j) = gram(j, i) = elements[at++];
  return gram;
}

Matrix rowsOf(const std::vector<float> &memory, int m) {
  Matrix rows(m, m);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j)
      rows(i, j) = memory[size_t(i * m + j)];
  return rows;
}

struct Found {
  Matrix vectors;
  Vector sigma;
  int32_t status;
};

class GramSvdTest : public RoutineTest {
protected:
  int m() const { return std::get<1>(GetParam()); }

  Found run(Matrix gram, double share) const {
    const double unset = std::numeric_limits<double>::quiet_NaN();
    std::vector<float> vectors = packed(gram);
    Found found{Matrix(), Vector::Constant(m(), unset), 0};
    Vector room = Vector::Constant(m() + SS_GRAM_ROOM, unset);
    found.status =
        std::get<0>(GetParam())
            .table->ss_gram_svd(m(), vectors.data(), found.sigma.data(),
                                room.data(), share);
    found.vectors = rowsOf(vectors, m());
    return found;
  }

  /// Against the singular values of a: those above share * sigma[0] must be
  /// there, to 1e-3; their vectors orthonormal, and spanning what they should.
  Found check(const Matrix &a, double share) const {
    Found found = run(a * a.transpose(), share);
    EXPECT_EQ(found.status, 0);
    const Vector exact = Eigen::JacobiSVD<Matrix>(a).singularValues();
    int kept = 0;
    for (int i = 0; i < exact.size(); ++i) {
      if (i > 0)
        EXPECT_LE(found.sigma[i], found.sigma[i - 1]);
      if (exact[i] < share * exact[0] || exact[i] == 0)
        break;
      EXPECT_NEAR(found.sigma[i], exact[i], 1e-3 * exact[i]) << i;
      ++kept;
    }
    const Matrix rows = found.vectors.topRows(kept);
    EXPECT_LE(orthogonalityError(rows), 1e-5);
    // The other side's vectors, each as long as its weight.
    Matrix other = rows * a;
    for (int i = 0; i < kept; ++i)
      other.row(i) /= found.sigma[i];
    EXPECT_LE(orthogonalityError(other), 2e-3);
    const double lost = (a - rows.transpose() * (rows * a)).norm();
    const double least = exact.tail(exact.size() - kept).norm();
    EXPECT_LE(lost, 1.01 * least + 1e-5 * exact.norm());
    return found;
  }
};

TEST_P(GramSvdTest, Random) {
  for (unsigned seed = 0; seed < 3; ++seed)
    check(gaussian(m(), 128, seed), 3e-3);
}

TEST_P(GramSvdTest, Graded) {
  for (double last : {1.0, 1e-2, 1e-4, 1e-6})
    for (double share : {0.1, 3e-3, 1.3e-4})
      check(withSingularValues(graded(m(), last), 7), share);
}

TEST_P(GramSvdTest, RepeatedWeights) {
  Vector sigma = Vector::Ones(m());
  for (int i = m() / 2; i < m(); ++i)
    sigma[i] = 0.01;
  check(withSingularValues(sigma, 3), 3e-3);
}

// Few weights far above many weak ones, and as many.
TEST_P(GramSvdTest, WeakBesideStrong) {
  for (double weak : {2e-4, 3e-3})
    for (int strong : {1, m() / 2}) {
      Vector sigma = Vector::Ones(m());
      for (int i = strong; i < m(); ++i)
        sigma[i] = weak * (2 - double(i) / m());
      check(withSingularValues(sigma, 11), 0.9 * weak);
    }
}

TEST_P(GramSvdTest, RanksBelowFull) {
  for (int rank : {1, 2, 3, m() / 2}) {
    if (rank > m() || rank < 1)
      continue;
    const Matrix a = gaussian(m(), rank, 5) * gaussian(rank, 128, 6);
    const Found found = check(a, 3e-3);
    for (int i = rank; i < m(); ++i)
      EXPECT_LE(found.sigma[i], 1e-7 * found.sigma[0]);
  }
}

TEST_P(GramSvdTest, Zero) {
  const Found found = run(Matrix::Zero(m(), m()), 3e-3);
  EXPECT_EQ(found.status, 0);
  EXPECT_TRUE(found.sigma.isZero(0));
  EXPECT_TRUE(found.vectors.isZero(0));
}

TEST_P(GramSvdTest, Scales) {
  const Matrix a = withSingularValues(graded(m(), 1e-3), 9);
  const Found one = check(a, 3e-3);
  for (double scale : {0x1p-140, 0x1p-64, 0x1p+120}) {
    const Found other = check(a * scale, 3e-3);
    EXPECT_TRUE(sameBits(other.vectors, one.vectors)) << scale;
  }
}

TEST_P(GramSvdTest, NotFinite) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity()}) {
    Matrix a = gaussian(m(), 16, 4);
    a(m() - 1, 7) = bad;
    const Found found = run(a * a.transpose(), 3e-3);
    EXPECT_EQ(found.status, SS_STATUS_NOT_FINITE);
    EXPECT_TRUE(found.sigma.isZero(0));
    EXPECT_TRUE(found.vectors.isZero(0));
  }
}

// Two chunks, the second one not whole; from either side.
TEST_P(GramSvdTest, AddsAProductWithItself) {
  const Matrix a = gaussian(m(), 21, 8).cast<float>().cast<double>();
  for (bool columnsAreRows : {true, false}) {
    std::vector<float> memory(size_t(m() + 1) * size_t(m()),
                              std::numeric_limits<float>::quiet_NaN());
    for (int first : {0, 16}) {
      const int width = std::min(16, 21 - first);
      std::vector<float> chunk;
      for (int k = 0; columnsAreRows && k < width; ++k)
        for (int i = 0; i < m(); ++i)
          chunk.push_back(float(a(i, first + k)));
      for (int i = 0; !columnsAreRows && i < m(); ++i)
        for (int k = 0; k < width; ++k)
          chunk.push_back(float(a(i, first + k)));
      EXPECT_EQ(std::get<0>(GetParam())
                    .table->ss_add_gram(m(), width, columnsAreRows, first == 0,
                                        chunk.data(), memory.data()),
                0);
    }
    const Matrix expected = a * a.transpose();
    EXPECT_LE((unpacked(memory, m()) - expected).norm(), 1e-14 * expected.norm());
  }
}

std::vector<int> gramSizes() { return {1, 2, 7, 12, 16, 33, 80, 128}; }

INSTANTIATE_TEST_SUITE_P(, GramSvdTest,
                         ::testing::Combine(::testing::ValuesIn(implementations()),
                                            ::testing::ValuesIn(gramSizes())),
                         caseName);

class GramSvdWarpsTest : public ::testing::TestWithParam<int> {};

TEST_P(GramSvdWarpsTest, NeitherOrderNorNumberOfWarpsMatters) {
  const int m = GetParam();
  Matrix a = gaussian(m, 100, 1);
  for (int i = 0; i < m; ++i)
    a.row(i) *= std::pow(0.9, i);
  if (m > 5)
    a.row(5) = a.row(1);
  auto run = [&](LaneOrder order, int warps) {
    std::vector<float> vectors = packed(a * a.transpose());
    Found found{Matrix(), Vector(m), 0};
    found.status = emulateGramSvd(order, warps, m, vectors.data(),
                                  found.sigma.data(), 3e-3);
    found.vectors = rowsOf(vectors, m);
    EXPECT_EQ(found.status, 0) << warps;
    return found;
  };
  for (int warps : {1, 2, 4, 8}) {
    const Found first = run(LaneOrder::Ascending, warps);
    for (LaneOrder order : {LaneOrder::Descending, LaneOrder::Shuffled}) {
      const Found other = run(order, warps);
      EXPECT_TRUE(sameBits(first.vectors, other.vectors)) << warps;
      EXPECT_TRUE(sameBits(first.sigma, other.sigma)) << warps;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GramSvdWarpsTest, ::testing::Values(1, 7, 33, 80),
                         ::testing::PrintToStringParamName());

} // namespace
