//===- Spectra.cpp - Matrices with the ranks of a profile -----------------===//

#include "Spectra.h"

#include <Eigen/QR>

#include <algorithm>
#include <cmath>

using namespace ss_bench;
using Matrix = Eigen::MatrixXf;

namespace {

Matrix randomBasis(std::mt19937_64 &random, int32_t rows, int32_t columns) {
  std::normal_distribution<float> gauss;
  Matrix m(rows, columns);
  for (float &x : m.reshaped())
    x = gauss(random);
  return Eigen::HouseholderQR<Matrix>(m).householderQ() *
         Matrix::Identity(rows, columns);
}

} // namespace

Spectra::Spectra(int32_t dv, int32_t dk, int32_t count, double eps,
                 const RankProfile &profile, uint64_t seed)
    : dv(dv), dk(dk), count(count) {
  constexpr double kNoise = 1e-6;
  const int32_t side = std::min(dv, dk);
  std::mt19937_64 random(seed);
  columns.resize(size_t(count) * size_t(dv) * size_t(dk));
  rows.resize(columns.size());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t drawn = profile.draw(random, side);
    const bool dense = drawn < 0 || drawn >= side;
    // The last one that is kept is well above eps, the next well below.
    const double length = dense ? 2.0 * side : drawn - 0.5;
    Eigen::VectorXf sigma(side);
    rank.push_back(0);
    for (int32_t j = 0; j < side; ++j) {
      sigma[j] = float(std::max(std::pow(eps, j / length), kNoise));
      values.push_back(sigma[j]);
      rank.back() += sigma[j] >= eps;
    }
    const Matrix h = randomBasis(random, dv, side) * sigma.asDiagonal() *
                     randomBasis(random, dk, side).transpose();
    const auto begin = size_t(i) * size_t(dv) * size_t(dk);
    for (int32_t k = 0; k < dk; ++k)
      for (int32_t v = 0; v < dv; ++v) {
        columns[begin + size_t(k * dv + v)] = h(v, k);
        rows[begin + size_t(v * dk + k)] = h(v, k);
      }
  }
}
