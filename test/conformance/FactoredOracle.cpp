//===- FactoredOracle.cpp - A layer's compacted states in float64 ---------===//

#include "FactoredOracle.h"

#include "LayerMath.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::conformance {

using reference::LayerSpec;

FactoredOracle::FactoredOracle(const LayerSpec &layer,
                               const reference::LayerWeights &weights,
                               int32_t consolidateEvery)
    : layer(layer), weights(weights), consolidateEvery(consolidateEvery) {
  for (int32_t head = 0; head < layer.heads; ++head)
    states.push_back({numerics::FactoredState(layer.dv, layer.dk, layer.active),
                      numerics::DenseState(layer.dv, layer.dk)});
}

numerics::Policy FactoredOracle::policy() const {
  if (layer.policyKind == "relative")
    return {numerics::Policy::relative, layer.policyValue};
  if (layer.policyKind == "energy")
    return {numerics::Policy::energy, layer.policyValue};
  if (layer.policyKind == "fixed")
    return {numerics::Policy::fixed, layer.policyValue};
  const double row = 4.0 * (layer.dv + layer.dk);
  return {numerics::Policy::fixed,
          std::floor((layer.policyValue - layer.buffer * row) / (row + 4))};
}

void FactoredOracle::compact(Head &head) const {
  const auto core =
      layer.core == "qr" ? numerics::Core::qr : numerics::Core::svd;
  head.bound += head.factored.compact(policy(), core).bound();
  ++head.compactions;
  const bool due = consolidateEvery > 0 && layer.policyKind != "fixed" &&
                   head.compactions % consolidateEvery == 0;
  if (due)
    head.bound += head.factored.consolidate(
        layer.policyKind == "relative" ? layer.policyValue : 0);
}

static numerics::Vector eigenVector(const reference::Vector &x) {
  return Eigen::Map<const Eigen::VectorXd>(x.data(), Eigen::Index(x.size()));
}

void FactoredOracle::compactDue() {
  // A token has been counted where compaction comes after it.
  const int64_t token = layer.compactsBefore() ? position : position - 1;
  const int64_t pairs = states[0].factored.buffered();
  if (pairs > 0 && (layer.isPhase(token) || pairs == layer.buffer))
    for (Head &head : states)
      compact(head);
}

reference::Vector FactoredOracle::step(const reference::TokenValues &token) {
  if (layer.compactsBefore())
    compactDue();
  reference::Vector y;
  for (int64_t head = 0; head < layer.heads; ++head) {
    Head &state = states[size_t(head)];
    const int64_t keyHead = head / (layer.heads / layer.keyHeads);
    numerics::Token inputs;
    inputs.q = eigenVector(reference::normalized(
        layer, token.q.data() + keyHead * layer.dk, layer.queryScale));
    inputs.k = eigenVector(
        reference::normalized(layer, token.k.data() + keyHead * layer.dk, 1));
    inputs.v = Eigen::Map<const Eigen::VectorXf>(
                   token.v.data() + head * layer.dv, layer.dv)
                   .cast<double>();
    numerics::Vector g =
        eigenVector(reference::logDecay(layer, head, token.gate.data(),
                                        weights.aLog.data(),
                                        weights.dtBias.data()))
            .array()
            .exp();
    inputs.alpha = g.size() == 1 ? numerics::Vector::Constant(layer.dk, g[0])
                                 : g;
    inputs.weight = reference::writeWeight(layer, head, token.gate.data(),
                                           token.beta.data(),
                                           weights.dtBias.data());
    inputs.theta = int(layer.theta());
    // The delta rule's factor I - w k k^T is at most 1 for w |k|^2 <= 2.
    state.bound *= inputs.alpha.maxCoeff();
    state.exact.step(inputs);
    const numerics::Vector out = state.factored.step(inputs);
    y.insert(y.end(), out.begin(), out.end());
  }
  ++position;
  if (!layer.compactsBefore())
    compactDue();
  return y;
}

} // namespace sinkstate::conformance
