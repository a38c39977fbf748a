//===- Check.cpp - The timed kernels against float64 ----------------------===//
//
// The first and the last request in the first layer of every shape, and in the
// first that compacts before its tokens, are followed through one period in
// float64, from what the engine says their states are. Up to the state's
// compaction, outputs and states must agree but for rounding; what the compaction
// changed must be no more than what it may drop. From there the state is followed
// anew. An output behind a compaction in its own step is that of the state then.
//
//===----------------------------------------------------------------------===//

#include "DecodeBench.h"

#include "state/LayerLayout.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

using namespace sinkstate::runtime;
using namespace ss_bench;

/// The largest relative error of an element that is rounded to the storage.
static double roundingOf(Storage storage) {
  return storage == Storage::F32 ? 0 : double(roundingError(storage));
}

std::vector<DecodeBench::Followed> DecodeBench::followedStates() const {
  std::vector<Followed> followed;
  std::set<std::pair<size_t, bool>> seen;
  for (size_t l = 0; l < layers().size(); ++l) {
    if (!seen.insert({shapes.ofLayer[l], layers()[l].compactsBefore}).second)
      continue;
    for (int32_t slot : {0, batch - 1})
      if (slot == 0 || followed.back().slot != slot)
        followed.push_back({l, slot, Recurrence(layers()[l]), {}, false, {}});
  }
  return followed;
}

TokenInputs DecodeBench::tokenOf(const Followed &state, int32_t set) const {
  const TokenSizes sizes(layers()[state.layer]);
  const Shape &shape = shapes.of(state.layer);
  const StepInputs &from = shape.inputs;
  const int64_t token =
      int64_t(set) * from.requests + state.slot % from.requests;
  return {from.q.data() + token * sizes.keys,
          from.k.data() + token * sizes.keys,
          from.v.data() + token * sizes.values,
          from.gate.data() + token * sizes.gates,
          from.beta.data() + token * sizes.betas,
          shape.aLog.data(),
          shape.dtBias.data()};
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

void DecodeBench::follow(Followed &state, int32_t set, bool compacts) {
  const LayerManifest &layer = layers()[state.layer];
  const size_t width = size_t(layer.heads) * size_t(layer.dv);
  std::vector<float> y(width), now(width * size_t(layer.dk));
  states->output(state.layer, state.slot, y.data());
  const TokenInputs token = tokenOf(state, set);
  if (!state.chosen)
    chooseSemantics(state, token, y);
  std::vector<double> expected;
  state.recurrence.step(token, state.semantics, expected);
  states->engine().densify(int32_t(state.layer), state.slot, now.data());
  // What a compaction before the token has dropped, its output does not have.
  if (compacts && layer.compactsBefore) {
    checkCompacted(state, now);
    state.recurrence.read(token, state.semantics, expected);
  }
  found.outputError = std::max(
      found.outputError,
      state.recurrence.outputError(y.data(), expected, state.semantics));
  if (compacts) {
    if (!layer.compactsBefore)
      checkCompacted(state, now);
    return;
  }
  for (double error : state.recurrence.stateErrors(now))
    found.stateError = std::max(found.stateError, error);
}

/// A pivoted orthogonalisation (core qr) may leave out more than the best
/// components of that number do: up to 1.16 times on random data.
constexpr double kPivotedLoss = 1.5;

/// What rows of the layer's storage may change of a state. Both sides of new rows;
/// stochastically by up to twice as much.
double DecodeBench::allowedRounding(const LayerManifest &layer) {
  return kStateTolerance +
         (layer.stochastic ? 8 : 4) * roundingOf(layer.storage);
}

/// What a compaction may change of each head, as a share of |H|; empty where the
/// policy has no bound that the state alone gives. `relative`: of every component
/// that is gone, the weight was below the threshold. `fixed`: all components
/// take part, and the best R of them stay; with a sink, of what is orthogonal to
/// the mean value. A dense state loses nothing but the digits of its storage.
std::vector<double>
DecodeBench::allowedLosses(const Followed &state,
                           const std::vector<int32_t> &after) const {
  const LayerManifest &layer = layers()[state.layer];
  std::vector<double> losses;
  if (layer.policy.kind == PolicyKind::Fixed) {
    losses = state.recurrence.tails(int32_t(layer.policy.value),
                                    meansOf(state));
    for (double &loss : losses)
      loss *= kPivotedLoss;
  } else if (layer.policy.kind == PolicyKind::Relative) {
    const auto breakEven =
        int32_t(LayerLayout(layer, 1, true).breakEvenRank);
    for (size_t head = 0; head < after.size(); ++head) {
      // A state goes dense with at least so many components.
      const int32_t kept = after[head] < 0 ? breakEven : after[head];
      const int32_t dropped =
          state.ranks[head] < 0
              ? 0
              : std::max(0, state.ranks[head] + layer.buffer - kept);
      losses.push_back(dropped * shapes.of(state.layer).data->threshold());
    }
  }
  for (double &loss : losses)
    loss += allowedRounding(layer);
  return losses;
}

/// Of form sink [heads, dv]; otherwise empty.
std::span<const float> DecodeBench::meansOf(const Followed &state) const {
  if (!layers()[state.layer].sinkForm)
    return {};
  return shapes.of(state.layer).data->meanValues();
}

/// What a compaction changed of each head, as a share of what it may. A sink is
/// never truncated: what a state has of its mean value stays.
std::vector<double>
DecodeBench::lossesOf(const Followed &state, const std::vector<float> &now,
                      const std::vector<double> &allowed) const {
  if (allowed.empty())
    return {};
  std::vector<double> losses = state.recurrence.stateErrors(now);
  for (size_t head = 0; head < losses.size(); ++head)
    losses[head] /= allowed[head];
  if (meansOf(state).empty())
    return losses;
  const std::vector<double> ofSinks =
      state.recurrence.sinkErrors(now, meansOf(state));
  for (size_t head = 0; head < losses.size(); ++head)
    losses[head] =
        std::max(losses[head],
                 ofSinks[head] / allowedRounding(layers()[state.layer]));
  return losses;
}

/// Only where no row had to go for want of room.
void DecodeBench::checkCompacted(Followed &state,
                                 const std::vector<float> &now) {
  const LayerManifest &layer = layers()[state.layer];
  std::vector<int32_t> after(size_t(layer.heads)), status(size_t(layer.heads));
  StateEngine &engine = states->engine();
  engine.ranks(int32_t(state.layer), state.slot, after.data());
  engine.status(int32_t(state.layer), state.slot, status.data());
  const std::vector<double> losses =
      lossesOf(state, now, allowedLosses(state, after));
  for (size_t head = 0; head < losses.size(); ++head)
    if (status[head] == 0)
      found.compactionError = std::max(found.compactionError, losses[head]);
  ++found.checkedCompactions;
  found.judgedCompactions += !losses.empty();
  state.ranks = after;
  state.recurrence.set(now);
}

void DecodeBench::check() {
  states->restore();
  std::vector<Followed> followed = followedStates();
  for (Followed &state : followed) {
    const LayerManifest &layer = layers()[state.layer];
    std::vector<float> now(size_t(layer.heads) * size_t(layer.dv) *
                           size_t(layer.dk));
    states->engine().densify(int32_t(state.layer), state.slot, now.data());
    state.recurrence.set(now);
    state.ranks.resize(size_t(layer.heads));
    states->engine().ranks(int32_t(state.layer), state.slot,
                           state.ranks.data());
    // A matrix that is written every step is rounded every step.
    if (layer.denseForm)
      found.rounding = std::max(found.rounding,
                                period * roundingOf(layer.storage));
  }
  for (int32_t set = 0; set < period; ++set) {
    (void)states->runSteps(set, 1);
    for (Followed &state : followed) {
      const LayerManifest &layer = layers()[state.layer];
      // Pairs in the buffer if it were never compacted, after this token, or
      // before it where the layer compacts there.
      const int32_t pairs = states->countOf(state.layer, state.slot) + set +
                            !layer.compactsBefore;
      follow(state, set, !layer.denseForm && pairs % layer.buffer == 0);
    }
  }
  found.checkedStates = int32_t(followed.size());
}
