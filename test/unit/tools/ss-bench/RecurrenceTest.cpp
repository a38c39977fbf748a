//===- RecurrenceTest.cpp - A state in float64, by its definition ---------===//

#include "Recurrence.h"
#include "TestLayers.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_bench;

namespace {

/// One head of 1 x 2 with H = (1, 2).
struct OneHead {
  explicit OneHead(bool hasBeta) {
    layer.heads = layer.keyHeads = 1, layer.dv = 1, layer.dk = 2;
    layer.hasBeta = hasBeta;
  }
  sinkstate::runtime::LayerManifest layer = gdnLayer();
  std::vector<float> q = {0, 1}, k = {1, 0}, v = {3}, gate = {0}, beta = {0},
                     aLog = {0}, dtBias = {0};
  TokenInputs token() const {
    return {q.data(),    k.data(),    v.data(),     gate.data(),
            beta.data(), aLog.data(), dtBias.data()};
  }
};

TEST(Recurrence, CorrectsByWhatTheStateSays) {
  OneHead head(true);
  Recurrence recurrence(head.layer);
  recurrence.set({1, 2});
  std::vector<double> y;
  recurrence.step(head.token(), {0.5, 1, false}, y);
  // softplus(0) = ln 2: the decay is 1/2; beta = 1/2; u = (3 - 1/2) / 2.
  EXPECT_NEAR(y[0], 0.5 * 1, 1e-12);
  EXPECT_NEAR(recurrence.stateErrors({1.75f, 1.0f})[0], 0, 1e-7);
  EXPECT_GT(recurrence.stateErrors({1.75f, 1.1f})[0], 0.04);
}

TEST(Recurrence, WritesByTheTimeStepWithoutBeta) {
  OneHead head(false);
  Recurrence recurrence(head.layer);
  recurrence.set({1, 2});
  std::vector<double> y;
  recurrence.step(head.token(), {1, 1, false}, y);
  EXPECT_NEAR(recurrence.stateErrors({float(0.5 + 3 * std::log(2)), 1})[0], 0,
              1e-6);
}

TEST(Recurrence, DecaysChannelsOnTheirOwn) {
  OneHead head(true);
  head.layer.channelDecay = true;
  head.gate = {0, 100}, head.dtBias = {0, 0};
  Recurrence recurrence(head.layer);
  recurrence.set({1, 2});
  std::vector<double> y;
  recurrence.step(head.token(), {1, 1, true}, y);
  EXPECT_NEAR(y[0], 2 * std::exp(-5.0), 1e-9);
}

TEST(Recurrence, TakesNothingElseForItsOutput) {
  OneHead head(true);
  Recurrence recurrence(head.layer);
  recurrence.set({1, 2});
  std::vector<double> y;
  recurrence.step(head.token(), {}, y);
  std::vector<float> said = {float(y[0])};
  EXPECT_LT(recurrence.outputError(said.data(), y, {}), 1e-6);
  said[0] += 0.1f;
  EXPECT_GT(recurrence.outputError(said.data(), y, {}), 0.04);
  said[0] = NAN;
  EXPECT_EQ(recurrence.outputError(said.data(), y, {}), HUGE_VAL);
}

// diag(4, 2, 1) turned by a rotation, and its transpose's shape.
TEST(Recurrence, KnowsWhatTheBestComponentsLeaveOut) {
  for (bool wide : {true, false}) {
    OneHead head(true);
    head.layer.dv = wide ? 3 : 4, head.layer.dk = wide ? 4 : 3;
    Recurrence recurrence(head.layer);
    const float c = 0.6f, s = 0.8f;
    std::vector<float> state(12);
    auto at = [&](int i, int j) -> float & {
      return state[size_t(wide ? i * 4 + j : j * 3 + i)];
    };
    at(0, 0) = 4 * c, at(0, 1) = 4 * s, at(1, 0) = -2 * s, at(1, 1) = 2 * c;
    at(2, 3) = 1;
    recurrence.set(state);
    EXPECT_NEAR(recurrence.tails(0)[0], 1, 1e-7);
    EXPECT_NEAR(recurrence.tails(1)[0], std::sqrt(5.0 / 21), 1e-7);
    EXPECT_NEAR(recurrence.tails(2)[0], std::sqrt(1.0 / 21), 1e-7);
    EXPECT_NEAR(recurrence.tails(3)[0], 0, 1e-7);
    EXPECT_EQ(recurrence.tails(9)[0], 0);
  }
}

// vbar c^T, and beside it two components of 2 and 1: the sink takes no part in what
// a rank leaves out, and only a change in its direction is one of it.
TEST(Recurrence, LeavesASinkOutOfItsTails) {
  sinkstate::runtime::LayerManifest layer;
  layer.type = "mamba2";
  layer.heads = 2, layer.keyHeads = 1, layer.dv = 3, layer.dk = 4;
  const std::vector<float> means = {0, 5, 0, 0, 0, 0}; // the second has no sink
  std::vector<float> state(24);
  for (size_t head : {0, 1}) {
    float *h = &state[head * 12];
    h[0 * 4 + 0] = 2, h[1 * 4 + 1] = 10, h[1 * 4 + 3] = 10, h[2 * 4 + 2] = 1;
  }
  Recurrence recurrence(layer);
  recurrence.set(state);
  const double norm = std::sqrt(205.0);
  const std::vector<double> one = recurrence.tails(1, means);
  EXPECT_NEAR(one[0], 1 / norm, 1e-7);
  EXPECT_NEAR(one[1], std::sqrt(5.0) / norm, 1e-7);
  EXPECT_NEAR(recurrence.tails(2, means)[0], 0, 1e-7);
  EXPECT_NEAR(recurrence.tails(2, means)[1], 1 / norm, 1e-7);
  EXPECT_NEAR(recurrence.tails(2)[0], 1 / norm, 1e-7) << "a component like others";

  std::vector<float> now = state;
  now[0 * 4 + 2] = 3; // orthogonal to the mean value
  EXPECT_NEAR(recurrence.sinkErrors(now, means)[0], 0, 1e-12);
  now[1 * 4 + 0] = 2;
  now[12 + 1 * 4 + 0] = 2; // the same where there is no sink
  const std::vector<double> errors = recurrence.sinkErrors(now, means);
  EXPECT_NEAR(errors[0], 2 / norm, 1e-7);
  EXPECT_EQ(errors[1], 0);
}

} // namespace
