//===- CompactBody.cpp - Merge a full buffer into the components ----------===//

#include "KernelBodies.h"

#include "sinkstate/routines.h"

#include <Eigen/QR>
#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sinkstate::reference {
namespace {

using Matrix = Eigen::MatrixXd;

bool isFinite(const Component &component) {
  auto finite = [](double x) { return std::isfinite(x); };
  return finite(component.weight) &&
         std::all_of(component.v.begin(), component.v.end(), finite) &&
         std::all_of(component.u.begin(), component.u.end(), finite);
}

/// Makes v of unit length; a zero v gets weight 0.
void renormalize(Component &component) {
  double squares = 0;
  for (double x : component.v)
    squares += x * x;
  double length = std::sqrt(squares);
  for (double &x : component.v)
    x /= length == 0 ? 1 : length;
  component.weight *= length;
}

void sortByWeight(std::vector<Component> &components) {
  std::stable_sort(components.begin(), components.end(),
                   [](const Component &a, const Component &b) {
                     return a.weight > b.weight;
                   });
}

/// Components as the columns of two matrices.
struct Factors {
  Matrix u, v;
  Eigen::VectorXd s;

  Factors() = default;
  Factors(const LayerSpec &layer, const std::vector<Component> &block) {
    const Eigen::Index m = Eigen::Index(block.size());
    u.resize(layer.dv, m);
    v.resize(layer.dk, m);
    s.resize(m);
    for (Eigen::Index i = 0; i < m; ++i) {
      const Component &c = block[size_t(i)];
      u.col(i) = Eigen::Map<const Eigen::VectorXd>(c.u.data(), layer.dv);
      v.col(i) = Eigen::Map<const Eigen::VectorXd>(c.v.data(), layer.dk);
      s[i] = c.weight;
    }
  }

  std::vector<Component> components() const {
    std::vector<Component> result;
    for (Eigen::Index i = 0; i < s.size(); ++i) {
      Component c{s[i], Vector(size_t(v.rows())), Vector(size_t(u.rows()))};
      Eigen::Map<Eigen::VectorXd>(c.u.data(), u.rows()) = u.col(i);
      Eigen::Map<Eigen::VectorXd>(c.v.data(), v.rows()) = v.col(i);
      result.push_back(std::move(c));
    }
    return result;
  }
};

/// The singular components of a sum, orthonormal on both sides.
Factors singularComponents(const Factors &block) {
  const auto &[u, v, s] = block;
  auto thinQ = [](const Matrix &a) -> Matrix {
    return Eigen::HouseholderQR<Matrix>(a).householderQ() *
           Matrix::Identity(a.rows(), std::min(a.rows(), a.cols()));
  };
  const Matrix ql = thinQ(u), qr = thinQ(v);
  const Matrix core =
      (ql.transpose() * u) * s.asDiagonal() * (qr.transpose() * v).transpose();
  Eigen::JacobiSVD<Matrix> svd(core,
                               Eigen::ComputeThinU | Eigen::ComputeThinV);
  Factors result;
  result.u = ql * svd.matrixU();
  result.v = qr * svd.matrixV();
  result.s = svd.singularValues();
  return result;
}

/// Components of the same sum by a pivoted QR of the right sides, of the length
/// of the whole components, and one of the left sides that go with them:
/// orthonormal on the left, of unit length on the right.
Factors qrComponents(const Factors &block) {
  auto decompose = [](const Matrix &a) -> std::pair<Matrix, Matrix> {
    Eigen::ColPivHouseholderQR<Matrix> qr(a);
    const Eigen::Index n = std::min(a.rows(), a.cols());
    const Matrix r = qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
    return {qr.householderQ() * Matrix::Identity(a.rows(), n),
            r * qr.colsPermutation().transpose()};
  };
  const Eigen::VectorXd lengths = block.u.colwise().norm();
  Matrix directions = block.u;
  for (Eigen::Index i = 0; i < lengths.size(); ++i)
    if (lengths[i] > 0)
      directions.col(i) /= lengths[i];
  const Eigen::VectorXd sizes = block.s.cwiseProduct(lengths);
  const auto [q, r] = decompose(block.v * sizes.asDiagonal());
  const auto [qLeft, rLeft] = decompose(directions * r.transpose());
  Factors result;
  result.u = qLeft;
  result.v = q * rLeft.transpose();
  result.s = result.v.colwise().norm();
  for (Eigen::Index i = 0; i < result.s.size(); ++i)
    if (result.s[i] > 0)
      result.v.col(i) /= result.s[i];
  return result;
}

/// Components that the policy keeps, of a list sorted by weight. Sets
/// `tightened` where only maxRank dropped some.
size_t keptCount(const LayerSpec &layer, const std::vector<Component> &sorted,
                 const CompactPolicy &policy, bool &tightened) {
  if (sorted.empty() || sorted[0].weight <= 0)
    return 0;
  double least = 0x1p-22;
  if (layer.policyKind == "relative")
    least = std::max(least, policy.value);
  size_t kept = 0;
  while (kept < sorted.size() &&
         sorted[kept].weight >= least * sorted[0].weight)
    ++kept;
  if (layer.policyKind == "energy") {
    auto square = [](double sum, const Component &c) {
      return sum + c.weight * c.weight;
    };
    double total = std::accumulate(sorted.begin(), sorted.end(), 0.0, square);
    double sum = 0;
    size_t fewest = 0;
    while (fewest < sorted.size() && sum < policy.value * total)
      sum = square(sum, sorted[fewest++]);
    kept = std::min(kept, fewest);
  }
  // A fixed rank is no limit that a state has met; its block may be.
  const double most = layer.policyKind == "fixed"
                          ? std::min(layer.policyValue, double(kept))
                          : double(kept);
  tightened = most > policy.maxRank;
  return std::min(kept, size_t(policy.maxRank));
}

/// Active components and buffered pairs, and the frozen components apart.
struct Split {
  std::vector<Component> block, frozen;
};

Split split(const LayerSpec &layer, const StateView &state) {
  const Vector g = state.runningDecay();
  Split parts;
  parts.block = state.stored(g);
  if (layer.channelDecay())
    for (Component &component : parts.block)
      renormalize(component);
  sortByWeight(parts.block);
  const size_t active = std::min(parts.block.size(), size_t(layer.active));
  parts.frozen.assign(parts.block.begin() + std::ptrdiff_t(active),
                      parts.block.end());
  parts.block.resize(active);
  for (Component &pair : state.buffered(g))
    parts.block.push_back(std::move(pair));
  return parts;
}

void store(const LayerSpec &layer, const StateView &state,
           const std::vector<Component> &components, size_t kept) {
  for (size_t i = 0; i < kept; ++i) {
    const Component &component = components[i];
    state.weight(int64_t(i)) = float(component.weight);
    float *row = state.row(int64_t(i));
    std::copy(component.v.begin(), component.v.end(), row);
    std::copy(component.u.begin(), component.u.end(), row + layer.dk);
  }
  state.rankRef() = int32_t(kept);
}

/// What becomes of a state that is not finite: one NaN component, so that the
/// fault stays visible in this state and in no other.
Component notANumber(const LayerSpec &layer) {
  return {std::numeric_limits<double>::quiet_NaN(),
          Vector(size_t(layer.dk), 1.0), Vector(size_t(layer.dv), 1.0)};
}

} // namespace

void compactProgram(const LayerSpec &layer, const StateTables &tables,
                    int32_t index, const CompactPolicy &policy) {
  StateView state(layer, tables, index, policy.countAhead);
  auto [block, components] = split(layer, state);
  const bool finite = std::all_of(block.begin(), block.end(), isFinite) &&
                      std::all_of(components.begin(), components.end(),
                                  isFinite);
  if (!finite) {
    state.statusRef() |= SS_STATUS_NOT_FINITE;
    return store(layer, state, {notANumber(layer)}, 1);
  }
  if (!block.empty()) {
    const Factors factors(layer, block);
    const Factors rotated = layer.core == "qr" ? qrComponents(factors)
                                               : singularComponents(factors);
    for (Component &component : rotated.components())
      components.push_back(std::move(component));
  }
  sortByWeight(components);
  bool tightened = false;
  const size_t kept = keptCount(layer, components, policy, tightened);
  if (tightened)
    state.statusRef() |= SS_STATUS_TIGHTENED;
  store(layer, state, components, kept);
}

void densifyProgram(const LayerSpec &layer, const StateTables &tables,
                    int32_t index, int32_t countAhead, float *out) {
  StateView state(layer, tables, index, countAhead);
  const Vector h = state.matrix(state.runningDecay());
  std::copy(h.begin(), h.end(), out);
}

} // namespace sinkstate::reference
