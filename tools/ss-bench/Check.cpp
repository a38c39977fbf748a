//===- Check.cpp - The timed kernels against float64 ----------------------===//
//
// The first and the last request in the first layer of every shape are followed
// through one period in float64, from what the engine says their states are.
// Up to the state's compaction, outputs and states must agree but for rounding;
// what the compaction changed must be no more than what it may drop. From there
// the state is followed anew.
//
//===----------------------------------------------------------------------===//

#include "DecodeBench.h"

#include <algorithm>
#include <cmath>

using namespace sinkstate::runtime;
using namespace ss_bench;

std::vector<DecodeBench::Followed> DecodeBench::followedStates() const {
  std::vector<Followed> followed;
  std::vector<bool> seen(shapes.size());
  for (size_t l = 0; l < layers().size(); ++l) {
    if (seen[shapeOf[l]])
      continue;
    seen[shapeOf[l]] = true;
    for (int32_t slot : {0, batch - 1})
      if (slot == 0 || followed.back().slot != slot)
        followed.push_back({l, slot, Recurrence(layers()[l]), {}, false, {}});
  }
  return followed;
}

TokenInputs DecodeBench::tokenOf(const Followed &state, int32_t set) const {
  const LayerManifest &layer = layers()[state.layer];
  const Shape &shape = shapes[shapeOf[state.layer]];
  const int64_t token = int64_t(set) * shape.host.requests +
                        state.slot % shape.host.requests;
  const int64_t keys = int64_t(layer.keyHeads) * layer.dk;
  const int64_t gates = int64_t(layer.heads) * (layer.channelDecay ? layer.dk : 1);
  return {shape.host.q.data() + token * keys,
          shape.host.k.data() + token * keys,
          shape.host.v.data() + token * layer.heads * layer.dv,
          shape.host.gate.data() + token * gates,
          shape.host.beta.data() + token * layer.heads,
          shape.hostALog.data(),
          shape.hostDtBias.data()};
}

/// The form in which one token comes out nearest to what the kernels say.
void DecodeBench::chooseSemantics(Followed &state, const TokenInputs &token,
                                  const std::vector<float> &y) const {
  double best = HUGE_VAL;
  std::vector<double> expected;
  for (const Semantics &candidate : Semantics::candidates(layers()[state.layer])) {
    Recurrence trial = state.recurrence;
    trial.step(token, candidate, expected);
    const double error = trial.outputError(y.data(), expected, candidate);
    if (error < best || !state.chosen)
      state.semantics = candidate;
    state.chosen = true;
    best = std::min(best, error);
  }
}

void DecodeBench::follow(Followed &state, int32_t set, bool compacts,
                         Measured &result) {
  const LayerManifest &layer = layers()[state.layer];
  const size_t width = size_t(layer.heads) * size_t(layer.dv);
  std::vector<float> y(width), now(width * size_t(layer.dk));
  session.download(y.data(), outputs[state.layer] + size_t(state.slot) * width,
                   width * sizeof(float));
  const TokenInputs token = tokenOf(state, set);
  if (!state.chosen)
    chooseSemantics(state, token, y);
  std::vector<double> expected;
  state.recurrence.step(token, state.semantics, expected);
  result.outputError = std::max(
      result.outputError,
      state.recurrence.outputError(y.data(), expected, state.semantics));
  engine->densify(int32_t(state.layer), state.slot, now.data());
  if (compacts) {
    checkCompacted(state, now, result);
    return;
  }
  for (double error : state.recurrence.stateErrors(now))
    result.stateError = std::max(result.stateError, error);
}

/// Of every component that is gone, the weight was below the threshold. Only
/// where the policy gives one, and only where no row had to go for want of
/// room.
void DecodeBench::checkCompacted(Followed &state, const std::vector<float> &now,
                                 Measured &result) {
  const LayerManifest &layer = layers()[state.layer];
  const Shape &shape = shapes[shapeOf[state.layer]];
  std::vector<int32_t> after(size_t(layer.heads)), status(size_t(layer.heads));
  engine->ranks(int32_t(state.layer), state.slot, after.data());
  engine->status(int32_t(state.layer), state.slot, status.data());
  const std::vector<double> errors = state.recurrence.stateErrors(now);
  // Both sides of new rows are rounded; stochastically, by up to twice as much.
  const double rounded = (layer.stochastic ? 8.0 : 4.0) *
                         double(roundingError(layer.storage));
  for (size_t head = 0; head < errors.size(); ++head) {
    const int32_t dropped =
        std::max(0, state.ranks[head] + layer.buffer - after[head]);
    const double allowed = kStateTolerance + rounded +
                           dropped * shape.data->threshold();
    if (layer.policy.kind == PolicyKind::Relative && status[head] == 0)
      result.compactionError =
          std::max(result.compactionError, errors[head] / allowed);
  }
  ++result.checkedCompactions;
  state.ranks = after;
  state.recurrence.set(now);
}

void DecodeBench::check(Measured &result) {
  states->restore();
  session.wait();
  std::vector<Followed> followed = followedStates();
  for (Followed &state : followed) {
    const LayerManifest &layer = layers()[state.layer];
    // A dense state is rounded at every token.
    if (layer.denseForm)
      result.roundingError =
          std::max(result.roundingError,
                   (layer.stochastic ? 2.0 : 1.0) * period *
                       double(roundingError(layer.storage)));
    std::vector<float> now(size_t(layer.heads) * size_t(layer.dv) *
                           size_t(layer.dk));
    engine->densify(int32_t(state.layer), state.slot, now.data());
    state.recurrence.set(now);
    state.ranks.resize(size_t(layer.heads));
    engine->ranks(int32_t(state.layer), state.slot, state.ranks.data());
  }
  for (int32_t set = 0; set < period; ++set) {
    (void)session.replay({&steps[size_t(set)], 1});
    for (Followed &state : followed) {
      const LayerManifest &layer = layers()[state.layer];
      // Pairs in the buffer after this token, if it were not compacted.
      const int32_t pairs = states->countOf(state.layer, state.slot) + set + 1;
      follow(state, set, !layer.denseForm && pairs % layer.buffer == 0, result);
    }
  }
  result.checkedStates = int32_t(followed.size());
}
