// Random matrices with known properties for the routine tests.
#ifndef SINKSTATE_TEST_ROUTINES_MATRICES_H
#define SINKSTATE_TEST_ROUTINES_MATRICES_H

#include <Eigen/Dense>

#include <cstring>
#include <random>

namespace sinkstate::test {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

inline Matrix gaussian(int rows, int cols, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, cols, [&](auto, auto) { return normal(engine); });
}

/// Orthonormal rows.
inline Matrix orthonormal(int rows, int cols, unsigned seed) {
  Matrix a = gaussian(cols, rows, seed);
  Eigen::HouseholderQR<Matrix> qr(a);
  return Matrix(qr.householderQ() * Matrix::Identity(cols, rows)).transpose();
}

/// A square matrix with the given singular values.
inline Matrix withSingularValues(const Vector &sigma, unsigned seed) {
  int m = sigma.size();
  return orthonormal(m, m, seed).transpose() * sigma.asDiagonal() *
         orthonormal(m, m, seed + 1000);
}

/// m values from 1 down to `last`, equal ratios.
inline Vector graded(int m, double last) {
  return Vector::NullaryExpr(m, [&](auto i) {
    return m == 1 ? 1.0 : std::pow(last, double(i) / (m - 1));
  });
}

/// |A A^T - D|_max where D has ones for the rows that are not zero.
inline double orthogonalityError(const Matrix &a) {
  Matrix gram = a * a.transpose();
  for (int i = 0; i < a.rows(); ++i)
    if (!a.row(i).isZero(0))
      gram(i, i) -= 1;
  return gram.size() ? gram.cwiseAbs().maxCoeff() : 0;
}

inline int nonZeroRows(const Matrix &a) {
  int n = 0;
  for (int i = 0; i < a.rows(); ++i)
    n += !a.row(i).isZero(0);
  return n;
}

inline bool sameBits(const Matrix &a, const Matrix &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

} // namespace sinkstate::test
#endif
