//===- FormsTest.cpp - Policies, dense states and dense layers ------------===//

#include "EngineUnderTest.h"

#include <Eigen/Eigenvalues>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Singular values of one head's exact state, descending.
std::vector<double> singularValues(DrivenRequest &request,
                                   const LayerSpec &layer, int64_t head) {
  const int64_t floats = int64_t(layer.dv) * layer.dk;
  // Columns of this matrix are rows of H.
  Eigen::Map<const Eigen::MatrixXd> h(
      request.exact(0).state().data() + head * floats, layer.dk, layer.dv);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      h * h.transpose(), Eigen::EigenvaluesOnly);
  std::vector<double> values;
  for (Eigen::Index i = solver.eigenvalues().size(); i-- > 0;)
    values.push_back(std::sqrt(std::max(0.0, solver.eigenvalues()[i])));
  return values;
}

TEST(Policies, RelativeDropsWhatIsBelowEpsAndNothingElse) {
  LayerSpec layer = gdnLayer(2, 2, 24, 16);
  layer.policyValue = 0.4;
  EngineUnderTest test({layer});
  DrivenRequest request = test.request(3);
  // Up to the first compaction the state is exact, so that what it drops is
  // known from the exact state.
  for (int step = 0; step < 8; ++step)
    ASSERT_LE(test.driver.step({&request}).worstError, 1e-5);
  const std::vector<int32_t> ranks = test.engine.ranks(0, request.slot);
  double worstDropped = 0;
  for (int64_t head = 0; head < 2; ++head) {
    std::vector<double> s = singularValues(request, layer, head);
    int32_t kept = 0;
    double dropped = 0;
    for (double value : s)
      value >= 0.4 * s[0] ? void(++kept) : void(dropped += value);
    EXPECT_EQ(ranks[size_t(head)], kept);
    EXPECT_LT(kept, 8);
    worstDropped = std::max(worstDropped,
                            dropped / request.exact(0).frobeniusNorm(head));
  }
  double error = test.driver.stateError(request, 0);
  EXPECT_GT(error, 0.05);
  EXPECT_LE(error, worstDropped + 1e-5);
}

TEST(Policies, FixedHoldsItsRankInItsRows) {
  LayerSpec layer = gdnLayer(2, 2, 24, 16);
  layer.policyKind = "fixed";
  layer.policyValue = layer.active = layer.buffer = 6;
  ss_engine_options options = optionsFor(1);
  options.consolidate_every = 1;
  EngineUnderTest test({layer}, options);
  DrivenRequest request = test.request(3);
  for (int step = 0; step < 60; ++step)
    test.driver.step({&request});
  EXPECT_EQ(test.engine.ranks(0, request.slot), (std::vector<int32_t>{6, 6}));
  EXPECT_EQ(test.engine.status(0, request.slot), (std::vector<int32_t>{0, 0}));
  ss_statistics s = test.engine.statistics();
  EXPECT_EQ(s.consolidations + s.went_dense, 0);
  EXPECT_EQ(s.compactions, 2 * 10);
  EXPECT_EQ(s.live_bytes, 2 * ((6 + 3) * 40 * 4 + 6 * 4));
}

TEST(Policies, EnergyAndBudgetLimitTheRank) {
  std::vector<LayerSpec> layers(2, mamba2Layer(1, 1, 32, 32));
  layers[0].policyKind = "energy";
  layers[0].policyValue = 0.5;
  layers[1].name = "layer1";
  layers[1].policyKind = "budget"; // 8 pairs and 5 components of 64 floats
  layers[1].policyValue = 8 * 64 * 4 + 5 * (64 * 4 + 4);
  EngineUnderTest test(layers);
  DrivenRequest request = test.request(9);
  for (int step = 0; step < 32; ++step)
    test.driver.step({&request});
  EXPECT_LT(test.engine.ranks(0, request.slot)[0], 12);
  EXPECT_GT(test.engine.ranks(0, request.slot)[0], 1);
  EXPECT_EQ(test.engine.ranks(1, request.slot)[0], 5);
  EXPECT_EQ(test.engine.status(1, request.slot)[0], SS_STATUS_TIGHTENED);
}

TEST(Consolidation, ReplacesTheFrozenPartByFewerRows) {
  // A state near rank 6, but with a small active set.
  LayerSpec layer = gdnLayer(2, 2, 48, 32);
  layer.active = 2;
  layer.policyValue = 1e-2;
  std::vector<std::vector<int32_t>> ranks;
  for (int32_t every : {0, 2}) {
    ss_engine_options options = optionsFor(1);
    options.consolidate_every = every;
    options.dense_fallback = 0;
    EngineUnderTest test({layer}, options);
    DrivenRequest request = test.request(4, {6, 1e-5, 0});
    for (int step = 0; step < 64; ++step)
      ASSERT_LE(test.driver.step({&request}).worstError, 0.1);
    ranks.push_back(test.engine.ranks(0, request.slot));
    EXPECT_EQ(test.engine.statistics().consolidations > 0, every > 0);
  }
  for (size_t head = 0; head < 2; ++head)
    EXPECT_LT(ranks[1][head], ranks[0][head]);
}

// Without the fallback a state of full rank reaches its bound: an exact SVD
// makes room and nothing is lost.
TEST(Consolidation, MakesRoomAtTheBoundWithoutLoss) {
  LayerSpec layer = gdnLayer(2, 2, 20, 12);
  ss_engine_options options = optionsFor(1);
  options.dense_fallback = 0;
  options.consolidate_every = 0;
  EngineUnderTest test({layer}, options);
  DrivenRequest request = test.request(4);
  for (int step = 0; step < 120; ++step)
    ASSERT_LE(test.driver.step({&request}).worstError, 1e-4) << step;
  EXPECT_LE(test.driver.stateError(request, 0), 1e-4);
  EXPECT_GT(test.engine.statistics().consolidations, 0);
  EXPECT_EQ(test.engine.status(0, request.slot), (std::vector<int32_t>{0, 0}));
  for (int32_t rank : test.engine.ranks(0, request.slot))
    EXPECT_LE(rank, layer.rank());
}

TEST(DenseFallback, AFullStateGoesDenseAndStaysExact) {
  for (const LayerSpec &layer :
       {gdnLayer(2, 1, 20, 12), kdaLayer(2, 2, 12, 20),
        mamba2Layer(2, 1, 16, 16)}) {
    EngineUnderTest test({layer});
    DrivenRequest request = test.request(4);
    for (int step = 0; step < 70; ++step)
      ASSERT_LE(test.driver.step({&request}).worstError, 2e-5)
          << layer.type << step;
    EXPECT_LE(test.driver.stateError(request, 0), 2e-5);
    EXPECT_EQ(test.engine.ranks(0, request.slot),
              (std::vector<int32_t>{-1, -1}));
    ss_statistics s = test.engine.statistics();
    EXPECT_GE(s.went_dense, 2);
    EXPECT_GT(s.folds, 0);
    EXPECT_EQ(s.live_bytes, s.dense_bytes);
  }
}

// A request that turns to few directions and forgets the rest: the state comes
// back to factors at its 16th fold.
TEST(DenseFallback, AStateOfLowRankReturnsToFactors) {
  LayerSpec layer = mamba2Layer(2, 2, 32, 32);
  layer.policyValue = 1e-3;
  EngineUnderTest test({layer});
  DrivenRequest request = test.request(4);
  for (int step = 0; step < 48; ++step)
    test.driver.step({&request});
  ASSERT_EQ(test.engine.ranks(0, request.slot), (std::vector<int32_t>{-1, -1}));
  request.inputs(0) = RandomRequest(layer, 77, {3, 0, 3.0});
  int steps = 0;
  while (test.engine.statistics().went_factored < 2 && ++steps < 400)
    ASSERT_LE(test.driver.step({&request}).worstError, 2e-3);
  EXPECT_LT(steps, 400);
  for (int32_t rank : test.engine.ranks(0, request.slot)) {
    EXPECT_GT(rank, 0);
    EXPECT_LE(4 * rank, 3 * 16); // break-even is 16 rows of 65 floats
  }
  for (int step = 0; step < 20; ++step)
    ASSERT_LE(test.driver.step({&request}).worstError, 2e-3);
}

// What did not become less by then tries at its 32nd, and so on.
TEST(DenseFallback, AStateOfFullRankTriesEverRarer) {
  LayerSpec layer = mamba2Layer(1, 1, 32, 32);
  layer.policyValue = 1e-3;
  EngineUnderTest test({layer});
  DrivenRequest request = test.request(4);
  while (test.engine.statistics().folds < 20)
    test.driver.step({&request});
  ASSERT_EQ(test.engine.statistics().went_dense, 1);
  request.inputs(0) = RandomRequest(layer, 77, {3, 0, 3.0});
  while (test.engine.ranks(0, request.slot)[0] < 0 && test.engine.statistics().folds < 64)
    test.driver.step({&request});
  EXPECT_EQ(test.engine.statistics().went_factored, 1);
  EXPECT_EQ(test.engine.statistics().folds, 32);
}

TEST(DenseFallback, CanBeSwitchedOff) {
  ss_engine_options options = optionsFor(1);
  options.dense_fallback = 0;
  EngineUnderTest test({gdnLayer(2, 1, 20, 12)}, options);
  DrivenRequest request = test.request(4);
  for (int step = 0; step < 64; ++step)
    test.driver.step({&request});
  for (int32_t rank : test.engine.ranks(0, request.slot))
    EXPECT_GT(rank, 0);
  EXPECT_EQ(test.engine.statistics().went_dense, 0);
}

TEST(DenseForm, ALayerOfDenseFormFollowsTheRecurrence) {
  for (LayerSpec layer :
       {gdnLayer(4, 2, 20, 12), kdaLayer(2, 2, 12, 20),
        mamba2Layer(2, 1, 16, 16)}) {
    layer.denseForm = true;
    EngineUnderTest test({layer});
    DrivenRequest request = test.request(4);
    for (int step = 0; step < 20; ++step)
      ASSERT_LE(test.driver.step({&request}).worstError, 1e-5);
    EXPECT_LE(test.driver.stateError(request, 0), 1e-5);
    EXPECT_EQ(test.engine.ranks(0, request.slot),
              std::vector<int32_t>(size_t(layer.heads), -1));
    EXPECT_TRUE(test.engine.layerInfo(0).dense_form);
  }
}

TEST(Densify, IsExactBetweenCompactionsAndChangesNothing) {
  LayerSpec layer = kdaLayer(2, 2, 20, 28);
  EngineUnderTest watched({layer}), unwatched({layer});
  DrivenRequest a = watched.request(4), b = unwatched.request(4);
  for (int step = 0; step < 21; ++step) {
    auto y = watched.driver.step({&a}).y;
    EXPECT_LE(watched.driver.stateError(a, 0), 1e-5) << step;
    EXPECT_EQ(y, unwatched.driver.step({&b}).y) << step;
  }
}

} // namespace
