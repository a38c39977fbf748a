//===- Recurrence.cpp - A state in float64, by its definition -------------===//

#include "Recurrence.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Eigenvalues>

using namespace ss_bench;

namespace {

constexpr double kGateBound = -5;

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The direction of a head's mean value; zeros where it has no sink.
Eigen::VectorXd directionOf(std::span<const float> means, int64_t head,
                            int64_t dv) {
  if (means.empty())
    return Eigen::VectorXd::Zero(dv);
  const Eigen::VectorXd mean =
      Eigen::Map<const Eigen::VectorXf>(&means[size_t(head * dv)], dv)
          .cast<double>();
  return mean.isZero(0) ? mean : mean.normalized();
}

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

} // namespace

std::vector<Semantics>
Semantics::candidates(const sinkstate::runtime::LayerManifest &layer) {
  std::vector<Semantics> all;
  for (double queryScale : {1.0, 1 / std::sqrt(double(layer.dk))})
    for (double betaScale : {1.0, 2.0})
      for (bool bounded : {false, true})
        if ((betaScale == 1 || layer.hasBeta) &&
            (!bounded || layer.channelDecay))
          all.push_back({queryScale, betaScale, bounded});
  return all;
}

void Recurrence::set(const std::vector<float> &states) {
  std::copy_n(states.begin(), h.size(), h.begin());
}

double Recurrence::logDecay(const TokenInputs &token,
                            const Semantics &semantics, int64_t head,
                            int64_t channel) const {
  const int64_t at = layer.channelDecay ? head * layer.dk + channel : head;
  const double x = double(token.gate[at]) + token.dtBias[at];
  const double scale = std::exp(double(token.aLog[head]));
  return semantics.boundedGate ? kGateBound * sigmoid(scale * x)
                               : -scale * softplus(x);
}

double Recurrence::writeWeight(const TokenInputs &token,
                               const Semantics &semantics,
                               int64_t head) const {
  if (layer.hasBeta)
    return semantics.betaScale * sigmoid(token.beta[head]);
  return softplus(double(token.gate[head]) + token.dtBias[head]);
}

void Recurrence::step(const TokenInputs &token, const Semantics &semantics,
                      std::vector<double> &y) {
  std::vector<double> decay(static_cast<size_t>(layer.dk));
  const int64_t perGroup = layer.heads / layer.keyHeads;
  for (int64_t head = 0; head < layer.heads; ++head) {
    for (int64_t c = 0; c < layer.dk; ++c)
      decay[size_t(c)] = std::exp(logDecay(token, semantics, head, c));
    const float *k = token.k + head / perGroup * layer.dk;
    const double weight = writeWeight(token, semantics, head);
    for (int64_t i = 0; i < layer.dv; ++i) {
      double *row = &h[size_t(head * size() + i * layer.dk)];
      double said = 0;
      for (int64_t c = 0; c < layer.dk; ++c) {
        row[c] *= decay[size_t(c)];
        said += row[c] * k[c];
      }
      const double v = token.v[head * layer.dv + i];
      const double u = weight * (layer.hasBeta ? v - said : v);
      for (int64_t c = 0; c < layer.dk; ++c)
        row[c] += u * k[c];
    }
  }
  read(token, semantics, y);
}

void Recurrence::read(const TokenInputs &token, const Semantics &semantics,
                      std::vector<double> &y) const {
  y.assign(size_t(layer.heads) * size_t(layer.dv), 0);
  const int64_t perGroup = layer.heads / layer.keyHeads;
  for (int64_t head = 0; head < layer.heads; ++head) {
    const float *q = token.q + head / perGroup * layer.dk;
    for (int64_t i = 0; i < layer.dv; ++i) {
      const double *row = &h[size_t(head * size() + i * layer.dk)];
      double sum = 0;
      for (int64_t c = 0; c < layer.dk; ++c)
        sum += row[c] * q[c];
      y[size_t(head * layer.dv + i)] = semantics.queryScale * sum;
    }
  }
}

double Recurrence::norm(int64_t head) const {
  double squares = 0;
  for (int64_t i = head * size(); i < (head + 1) * size(); ++i)
    squares += h[size_t(i)] * h[size_t(i)];
  return std::sqrt(squares);
}

double Recurrence::outputError(const float *y,
                               const std::vector<double> &expected,
                               const Semantics &semantics) const {
  double worst = 0;
  for (int64_t head = 0; head < layer.heads; ++head) {
    double squares = 0;
    for (int64_t i = head * layer.dv; i < (head + 1) * layer.dv; ++i)
      squares += (y[i] - expected[size_t(i)]) * (y[i] - expected[size_t(i)]);
    const double scale = std::max(norm(head) * semantics.queryScale, 1e-30);
    const double error = std::sqrt(squares) / scale;
    worst = std::isfinite(error) ? std::max(worst, error) : HUGE_VAL;
  }
  return worst;
}

std::vector<double>
Recurrence::stateErrors(const std::vector<float> &states) const {
  std::vector<double> errors;
  for (int64_t head = 0; head < layer.heads; ++head) {
    double squares = 0;
    for (int64_t i = head * size(); i < (head + 1) * size(); ++i)
      squares += (states[size_t(i)] - h[size_t(i)]) *
                 (states[size_t(i)] - h[size_t(i)]);
    const double error = std::sqrt(squares) / std::max(norm(head), 1e-30);
    errors.push_back(std::isfinite(error) ? error : HUGE_VAL);
  }
  return errors;
}

/// From the eigenvalues of the Gram matrix, of the shorter side: rounding of
/// 1e-16 |H|^2 there is 1e-8 |H| here.
std::vector<double> Recurrence::tails(int32_t rank,
                                      std::span<const float> means) const {
  std::vector<double> shares;
  for (int64_t head = 0; head < layer.heads; ++head) {
    Matrix state = Eigen::Map<const Matrix>(&h[size_t(head * size())], layer.dv,
                                            layer.dk);
    const Eigen::VectorXd sink = directionOf(means, head, layer.dv);
    state -= sink * (sink.transpose() * state);
    Eigen::MatrixXd gram;
    if (layer.dv <= layer.dk)
      gram.noalias() = state * state.transpose();
    else
      gram.noalias() = state.transpose() * state;
    // Ascending.
    const Eigen::VectorXd squares =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(
            gram, Eigen::EigenvaluesOnly)
            .eigenvalues()
            .cwiseMax(0);
    const Eigen::Index left = std::max<Eigen::Index>(squares.size() - rank, 0);
    shares.push_back(std::sqrt(squares.head(left).sum()) /
                     std::max(norm(head), 1e-30));
  }
  return shares;
}

std::vector<double>
Recurrence::sinkErrors(const std::vector<float> &states,
                       std::span<const float> means) const {
  std::vector<double> errors;
  for (int64_t head = 0; head < layer.heads; ++head) {
    const Eigen::Map<const Matrix> state(&h[size_t(head * size())], layer.dv,
                                         layer.dk);
    using Single = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic,
                                 Eigen::RowMajor>;
    const Eigen::Map<const Single> other(&states[size_t(head * size())],
                                         layer.dv, layer.dk);
    const Eigen::VectorXd sink = directionOf(means, head, layer.dv);
    const double error =
        (sink.transpose() * (other.cast<double>() - state)).norm() /
        std::max(norm(head), 1e-30);
    errors.push_back(std::isfinite(error) ? error : HUGE_VAL);
  }
  return errors;
}
