#include "ExactSvd.h"

#include "sinkstate/cpu_routines.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkstate::consolidation {
namespace {

using Matrix = Eigen::MatrixXd;
using RowMajor =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsView = Eigen::Map<RowMajor, 0, Eigen::OuterStride<>>;
using ConstRowsView = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;

/// Singular values below this share of the largest are numerically zero in
/// single precision.
constexpr double numericallyZero = 0x1p-22;

/// left * diag(sigma) * right^T, columns orthonormal, sigma descending.
struct Svd {
  Matrix left, right;
  Eigen::VectorXd sigma;
};

bool isOrthonormal(const Matrix &columns) {
  Matrix gram = columns.transpose() * columns;
  gram.diagonal().array() -= 1;
  // Written so that NaN counts as a failure.
  return gram.size() == 0 || gram.cwiseAbs().maxCoeff() < 1e-10;
}

template <typename Solver> bool take(const Solver &solver, Svd &svd) {
  if (solver.info() != Eigen::Success)
    return false;
  svd = {solver.matrixU(), solver.matrixV(), solver.singularValues()};
  return isOrthonormal(svd.left) && isOrthonormal(svd.right);
}

/// The SVD of a matrix scaled to a largest element near 1. Divide and conquer
/// is fast but not always reliable; Jacobi is slow and safe.
bool decompose(const Matrix &a, Svd &svd) {
  constexpr unsigned options = Eigen::ComputeThinU | Eigen::ComputeThinV;
  if (take(Eigen::BDCSVD<Matrix>(a, options), svd))
    return true;
  return take(Eigen::JacobiSVD<Matrix>(a, options), svd);
}

/// The power of two that brings x > 0 into [0.5, 1), so that scaling is exact
/// and squares neither overflow nor underflow.
double scaleFor(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, -exponent);
}

struct QrFactors {
  Eigen::HouseholderQR<Matrix> qr;
  int columns;

  explicit QrFactors(const Matrix &a)
      : qr(a), columns(std::min(a.rows(), a.cols())) {}
  Matrix r() const {
    return qr.matrixQR().topRows(columns).triangularView<Eigen::Upper>();
  }
  Matrix timesQ(const Matrix &x) const {
    Matrix result = Matrix::Zero(qr.rows(), x.cols());
    result.topRows(columns) = x;
    result.applyOnTheLeft(qr.householderQ());
    return result;
  }
};

/// How many singular values stay, given the scale they were divided by.
int32_t keptRank(const Eigen::VectorXd &sigma, double scale,
                 const Truncation &truncation) {
  if (sigma.size() == 0 || !(sigma[0] > 0))
    return 0;
  double largest = std::max(sigma[0], truncation.largest * scale);
  double below = std::max(truncation.eps, numericallyZero) * largest;
  int32_t rank = 0;
  while (rank < sigma.size() && sigma[rank] >= below &&
         float(sigma[rank] / scale) > 0)
    ++rank;
  return rank;
}

/// Writes the leading components; v and u hold one vector a column.
SvdResult store(const Matrix &v, const Matrix &u, const Eigen::VectorXd &sigma,
                double scale, int32_t rank, float *rows, float *weights) {
  if (rank > 0 && !std::isfinite(float(sigma[0] / scale)))
    return {SvdStatus::notFinite, 0};
  const int64_t dk = v.rows(), dv = u.rows();
  Eigen::OuterStride<> stride(dk + dv);
  RowsView(rows, rank, dk, stride) =
      v.leftCols(rank).transpose().cast<float>();
  RowsView(rows + dk, rank, dv, stride) =
      u.leftCols(rank).transpose().cast<float>();
  for (int32_t i = 0; i < rank; ++i)
    weights[i] = float(sigma[i] / scale);
  return {SvdStatus::ok, rank};
}

using SquareRows =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// T with orthonormal rows of T A, and R = T G, from the rows of A. False where
/// the rows are too nearly dependent for their Gram matrix.
bool orthogonalizeRows(const Matrix &columns, SquareRows &t, SquareRows &r) {
  r = columns.transpose() * columns;
  t.resizeLike(r);
  return ss_cpu_routines()->ss_orthogonalize(int32_t(r.rows()), r.data(),
                                             t.data()) == 0;
}

/// The largest matrix that the device library's routines take.
constexpr int32_t routineSize = 64;

/// Few components, the usual case: the routines of the compaction, which are
/// several times faster here than general ones. False where they give up.
bool consolidateFew(const Matrix &v, const Matrix &u, const Eigen::VectorXd &w,
                    const Truncation &truncation, float *rows, float *weights,
                    SvdResult &result) {
  const int32_t count = int32_t(w.size());
  SquareRows tRight, rRight, tLeft, rLeft;
  if (count > routineSize || !orthogonalizeRows(v, tRight, rRight) ||
      !orthogonalizeRows(u, tLeft, rLeft))
    return false;
  SquareRows core = rLeft * w.asDiagonal() * rRight.transpose();
  double largest = core.cwiseAbs().maxCoeff();
  result = {};
  if (largest == 0)
    return true;
  double scale = scaleFor(largest);
  core *= scale;
  SquareRows xt(count, count), yt(count, count);
  Eigen::VectorXd sigma(count);
  if (ss_cpu_routines()->ss_core_svd(count, core.data(), xt.data(),
                                     sigma.data(), yt.data()) != 0)
    return false;
  int32_t rank = keptRank(sigma, scale, truncation);
  Matrix right = v * (yt.topRows(rank) * tRight).transpose();
  Matrix left = u * (xt.topRows(rank) * tLeft).transpose();
  result = store(right, left, sigma, scale, rank, rows, weights);
  return true;
}

} // namespace

SvdResult consolidate(float *rows, float *weights, int32_t count, int32_t dk,
                      int32_t dv, const Truncation &truncation) {
  if (count == 0)
    return {};
  Eigen::OuterStride<> stride(dk + dv);
  Matrix v = ConstRowsView(rows, count, dk, stride).transpose().cast<double>();
  Matrix u =
      ConstRowsView(rows + dk, count, dv, stride).transpose().cast<double>();
  Eigen::VectorXd w =
      Eigen::Map<const Eigen::VectorXf>(weights, count).cast<double>();
  if (!v.allFinite() || !u.allFinite() || !w.allFinite())
    return {SvdStatus::notFinite, 0};

  SvdResult few;
  if (consolidateFew(v, u, w, truncation, rows, weights, few))
    return few;
  QrFactors right(v), left(u);
  Matrix core = left.r() * w.asDiagonal() * right.r().transpose();
  double largest = core.cwiseAbs().maxCoeff();
  if (largest == 0)
    return {};
  double scale = scaleFor(largest);
  Svd svd;
  if (!decompose(core * scale, svd))
    return {SvdStatus::notConverged, 0};
  int32_t rank = keptRank(svd.sigma, scale, truncation);
  return store(right.timesQ(svd.right.leftCols(rank)),
               left.timesQ(svd.left.leftCols(rank)), svd.sigma, scale, rank,
               rows, weights);
}

SvdResult factorize(const float *dense, int32_t dk, int32_t dv,
                    const Truncation &truncation, float *rows,
                    float *weights) {
  Matrix h = Eigen::Map<const RowMajor>(dense, dk, dv).cast<double>();
  if (!h.allFinite())
    return {SvdStatus::notFinite, 0};
  double largest = h.size() ? h.cwiseAbs().maxCoeff() : 0;
  if (largest == 0)
    return {};
  double scale = scaleFor(largest);
  Svd svd;
  if (!decompose(h * scale, svd))
    return {SvdStatus::notConverged, 0};
  int32_t rank = keptRank(svd.sigma, scale, truncation);
  return store(svd.left, svd.right, svd.sigma, scale, rank, rows, weights);
}

} // namespace sinkstate::consolidation
