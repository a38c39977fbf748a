#include "Reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinkstate::numerics {
namespace {

Matrix besides(const Matrix &a, const Matrix &b) {
  Matrix result(a.rows(), a.cols() + b.cols());
  result << a, b;
  return result;
}

Vector below(const Vector &a, const Vector &b) {
  Vector result(a.size() + b.size());
  result << a, b;
  return result;
}

/// The SVD of sum s_i u_i v_i^T by QR of both sides.
struct FactorSvd {
  Matrix core, u, v;
  Vector s;

  FactorSvd(const Matrix &left, const Vector &weights, const Matrix &right) {
    Eigen::HouseholderQR<Matrix> qrLeft(left), qrRight(right);
    int m = std::min(left.rows(), left.cols());
    int n = std::min(right.rows(), right.cols());
    Matrix rLeft =
        qrLeft.matrixQR().topRows(m).triangularView<Eigen::Upper>();
    Matrix rRight =
        qrRight.matrixQR().topRows(n).triangularView<Eigen::Upper>();
    core = rLeft * weights.asDiagonal() * rRight.transpose();
    Eigen::JacobiSVD<Matrix> svd(core,
                                 Eigen::ComputeThinU | Eigen::ComputeThinV);
    s = svd.singularValues();
    u = qrLeft.householderQ() * Matrix::Identity(left.rows(), m) *
        svd.matrixU();
    v = qrRight.householderQ() * Matrix::Identity(right.rows(), n) *
        svd.matrixV();
  }
};

/// sum s_i u_i v_i^T by a pivoted QR of its right sides, of the length of the
/// whole components, and one of what that leaves on the left: u is orthonormal,
/// v of unit length.
struct FactorQr {
  Matrix u, v;
  Vector s;

  FactorQr(const Matrix &left, const Vector &weights, const Matrix &right) {
    Vector lengths = left.colwise().norm();
    auto [q, r] = decompose(right * weights.cwiseProduct(lengths).asDiagonal());
    // H = directions (q r)^T = (directions r^T) q^T
    Matrix directions = left;
    for (int i = 0; i < lengths.size(); ++i)
      if (lengths[i] > 0)
        directions.col(i) /= lengths[i];
    auto [qLeft, rLeft] = decompose(directions * r.transpose());
    u = qLeft;
    v = q * rLeft.transpose();
    s = v.colwise().norm();
    for (int i = 0; i < s.size(); ++i)
      if (s[i] > 0)
        v.col(i) /= s[i];
  }

private:
  /// a = q r, r with its columns in the order of a.
  static std::pair<Matrix, Matrix> decompose(const Matrix &a) {
    Eigen::ColPivHouseholderQR<Matrix> qr(a);
    int n = std::min(a.rows(), a.cols());
    Matrix r = qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
    return {qr.householderQ() * Matrix::Identity(a.rows(), n),
            r * qr.colsPermutation().transpose()};
  }
};

/// How many of the descending weights a policy keeps.
int keptCount(const Vector &s, const Policy &policy) {
  if (s.size() == 0 || !(s[0] > 0))
    return 0;
  double eps = policy.kind == Policy::relative ? policy.value : 0;
  double least = std::max(eps, numericallyZero) * s[0];
  int kept = int((s.array() >= least).count());
  if (policy.kind == Policy::fixed)
    return std::min(kept, int(policy.value));
  if (policy.kind == Policy::energy) {
    double enough = policy.value * s.squaredNorm(), sum = 0;
    for (int i = 0; i < kept; ++i)
      if ((sum += s[i] * s[i]) >= enough)
        return i + 1;
  }
  return kept;
}

} // namespace

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Vector logDecay(Gate kind, const Vector &gate, double aLog,
                const Vector &dtBias, double bound) {
  double a = std::exp(aLog);
  Vector x = gate + dtBias;
  return x.unaryExpr([&](double value) {
    return kind == Gate::boundedChannel ? bound * sigmoid(a * value)
                                        : -a * softplus(value);
  });
}

Vector normalize(Norm kind, const Vector &x, double eps, double scale) {
  switch (kind) {
  case Norm::none:
    return scale * x;
  case Norm::add:
    return scale / std::sqrt(x.squaredNorm() + eps) * x;
  case Norm::max:
    return scale / std::max(x.norm(), eps) * x;
  }
  return x;
}

Vector DenseState::step(const Token &token) {
  h = h * token.alpha.asDiagonal();
  Vector seen = token.theta * (h * token.k);
  h += token.weight * (token.v - seen) * token.k.transpose();
  return h * token.q;
}

Vector FactoredState::step(const Token &token) {
  decay(token.alpha);
  Vector seen = token.theta * readout(token.k);
  append(token.weight * (token.v - seen), token.k);
  return readout(token.q);
}

void FactoredState::decay(const Vector &alpha) {
  v = alpha.asDiagonal() * v;
  bufferK = alpha.asDiagonal() * bufferK;
}

void FactoredState::append(const Vector &uRow, const Vector &k, double c) {
  bufferU = besides(bufferU, uRow);
  bufferK = besides(bufferK, k);
  bufferC = below(bufferC, Vector::Constant(1, c));
}

Vector FactoredState::readout(const Vector &q) const {
  return u * s.cwiseProduct(v.transpose() * q) +
         bufferU * bufferC.cwiseProduct(bufferK.transpose() * q);
}

Matrix FactoredState::dense() const {
  return u * s.asDiagonal() * v.transpose() +
         bufferU * bufferC.asDiagonal() * bufferK.transpose();
}

void FactoredState::replace(const Matrix &newU, const Matrix &newV,
                            const Vector &newS) {
  u = newU;
  v = newV;
  s = newS;
}

void FactoredState::foldNorms() {
  for (int i = 0; i < rank(); ++i) {
    double norm = v.col(i).norm();
    s[i] *= norm;
    if (norm > 0)
      v.col(i) /= norm;
  }
}

void FactoredState::sortByWeight() {
  std::vector<int> order(rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return s[a] > s[b]; });
  replace(Matrix(u(Eigen::all, order)), Matrix(v(Eigen::all, order)),
          Vector(s(order)));
}

Vector FactoredState::truncate(const Policy &policy) {
  sortByWeight();
  int kept = keptCount(s, policy);
  Vector dropped = s.tail(rank() - kept);
  replace(Matrix(u.leftCols(kept)), Matrix(v.leftCols(kept)),
          Vector(s.head(kept)));
  return dropped;
}

Compaction FactoredState::compact(const Policy &policy, Core core) {
  foldNorms();
  sortByWeight();
  int a = std::min(active, rank()), frozen = rank() - a;
  Compaction done;
  auto decompose = [&](auto factors) {
    replace(besides(factors.u, u.rightCols(frozen)),
            besides(factors.v, v.rightCols(frozen)),
            below(factors.s, s.tail(frozen)));
    done.coreWeights = factors.s;
    if constexpr (requires { factors.core; })
      done.core = factors.core;
  };
  Matrix left = besides(u.leftCols(a), bufferU);
  Matrix right = besides(v.leftCols(a), bufferK);
  Vector weights = below(s.head(a), bufferC);
  if (core == Core::svd)
    decompose(FactorSvd(left, weights, right));
  else
    decompose(FactorQr(left, weights, right));
  bufferU.resize(dv(), 0);
  bufferK.resize(dk(), 0);
  bufferC.resize(0);
  done.droppedWeights = truncate(policy);
  return done;
}

double FactoredState::consolidate(double eps) {
  foldNorms();
  sortByWeight();
  int a = std::min(active, rank()), frozen = rank() - a;
  if (frozen == 0)
    return 0;
  double largest = s[0];
  FactorSvd svd(u.rightCols(frozen), s.tail(frozen), v.rightCols(frozen));
  double least = std::max(eps, numericallyZero) * std::max(largest, svd.s[0]);
  int kept = int((svd.s.array() >= least).count());
  double dropped = svd.s.tail(svd.s.size() - kept).sum();
  replace(besides(u.leftCols(a), svd.u.leftCols(kept)),
          besides(v.leftCols(a), svd.v.leftCols(kept)),
          below(s.head(a), svd.s.head(kept)));
  return dropped;
}

double orthogonalityError(const Matrix &columns) {
  Matrix gram = columns.transpose() * columns;
  gram.diagonal().array() -= 1;
  return gram.size() ? gram.cwiseAbs().maxCoeff() : 0;
}

} // namespace sinkstate::numerics
