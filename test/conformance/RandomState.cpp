//===- RandomState.cpp - States of every kind, in a layer's tables --------===//

#include "RandomState.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::conformance {

using Doubles = StateFiller::Doubles;

Doubles StateFiller::normal(int64_t size, double scale) {
  std::normal_distribution<double> distribution(0, scale);
  Doubles values;
  for (int64_t i = 0; i < size; ++i)
    values.push_back(distribution(random));
  return values;
}

Doubles StateFiller::unit(int64_t size, double scale) {
  Doubles values = normal(size);
  const double length = norm(values);
  for (double &x : values)
    x *= scale / length;
  return values;
}

void StateFiller::addOrthonormal(int64_t count,
                                 std::function<double(int64_t)> weightOf) {
  auto orthonormal = [&](int64_t size) {
    Doubles values = normal(size * count);
    Eigen::Map<Eigen::MatrixXd> columns(values.data(), size, count);
    Eigen::HouseholderQR<Eigen::MatrixXd> qr(columns);
    return Eigen::MatrixXd(qr.householderQ() *
                           Eigen::MatrixXd::Identity(size, count));
  };
  const Eigen::MatrixXd v = orthonormal(layer.dk), u = orthonormal(layer.dv);
  for (int64_t i = 0; i < count; ++i) {
    const Eigen::VectorXd vi = v.col(i), ui = u.col(i);
    memory.addComponent(state, weightOf(i), {vi.begin(), vi.end()},
                        {ui.begin(), ui.end()});
  }
}

void StateFiller::setPairs(int64_t count,
                           std::function<Doubles(int64_t)> keyOf,
                           std::function<Doubles(int64_t)> updateOf,
                           double decayPerPair) {
  for (int64_t j = 0; j < count; ++j) {
    memory.setPair(state, j, keyOf(j), updateOf(j), 0);
    float *now = memory.logDecay(state, j);
    const float *before = j > 0 ? memory.logDecay(state, j - 1) : nullptr;
    std::uniform_real_distribution<double> share(0, 2);
    for (int64_t c = 0; c < memory.decayChannels(); ++c)
      now[c] = float((before ? before[c] : 0.0) + decayPerPair * share(random));
  }
  memory.count[size_t(state / layer.heads)] = int32_t(count);
}

void StateFiller::setRandomPairs(int64_t count, double scale) {
  setPairs(
      count, [&](int64_t) { return unit(layer.dk); },
      [&](int64_t) { return unit(layer.dv, scale); });
}

numerics::FactoredState factoredOf(LayerMemory &memory, int64_t state) {
  const reference::LayerSpec &layer = memory.layer;
  numerics::FactoredState result(layer.dv, layer.dk, layer.active);
  const int64_t count = memory.count[size_t(state / layer.heads)];
  const int64_t rank = memory.rank[size_t(state)];
  auto vectorOf = [](const float *begin, int64_t size) {
    return Eigen::VectorXd(
        Eigen::Map<const Eigen::VectorXf>(begin, size).cast<double>());
  };
  // Decay per channel from pair `since` (-1: all of it) to now.
  auto decaySince = [&](int64_t since) {
    Eigen::VectorXd factor = Eigen::VectorXd::Ones(layer.dk);
    if (count == 0)
      return factor;
    const float *now = memory.logDecay(state, count - 1);
    const float *then = since < 0 ? nullptr : memory.logDecay(state, since);
    for (int64_t c = 0; c < layer.dk; ++c) {
      const int64_t at = memory.decayChannels() == 1 ? 0 : c;
      factor[c] = std::exp(double(now[at]) - (then ? double(then[at]) : 0.0));
    }
    return factor;
  };
  result.u.resize(layer.dv, rank);
  result.v.resize(layer.dk, rank);
  result.s.resize(rank);
  const Eigen::VectorXd decay = decaySince(-1);
  for (int64_t i = 0; i < rank; ++i) {
    result.s[i] = memory.weight(state, i);
    result.v.col(i) =
        vectorOf(memory.row(state, i), layer.dk).cwiseProduct(decay);
    result.u.col(i) = vectorOf(memory.row(state, i) + layer.dk, layer.dv);
  }
  for (int64_t j = 0; j < count; ++j)
    result.append(vectorOf(memory.update(state, j), layer.dv),
                  vectorOf(memory.key(state, j), layer.dk)
                      .cwiseProduct(decaySince(j)));
  return result;
}

double distance(const std::vector<double> &a, const std::vector<double> &b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i)
    squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

double norm(const std::vector<double> &a) {
  double squares = 0;
  for (double x : a)
    squares += x * x;
  return std::sqrt(squares);
}

std::vector<float> sortedWeights(LayerMemory &memory, int64_t state) {
  const float *begin = &memory.weight(state, 0);
  std::vector<float> weights(begin, begin + memory.rank[size_t(state)]);
  std::sort(weights.begin(), weights.end(), std::greater<>());
  return weights;
}

double orthogonality(LayerMemory &memory, int64_t state,
                     const std::function<bool(int64_t)> &isNew) {
  const reference::LayerSpec &layer = memory.layer;
  std::vector<const float *> rows;
  for (int64_t i = 0; i < memory.rank[size_t(state)]; ++i)
    if (isNew(i))
      rows.push_back(memory.row(state, i));
  double worst = 0;
  auto deviation = [&](int64_t begin, int64_t size, bool lengthsOnly) {
    for (const float *a : rows)
      for (const float *b : rows) {
        if (lengthsOnly && a != b)
          continue;
        double product = a == b ? -1 : 0;
        for (int64_t c = begin; c < begin + size; ++c)
          product += double(a[c]) * b[c];
        worst = std::max(worst, std::isnan(product) ? HUGE_VAL
                                                    : std::abs(product));
      }
  };
  deviation(0, layer.dk, layer.core == "qr");
  deviation(layer.dk, layer.dv, false);
  return worst;
}

} // namespace sinkstate::conformance
