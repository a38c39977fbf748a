//===- RunsTest.cpp - Hundreds of tokens ----------------------------------===//

#include "ConformanceTest.h"
#include "FactoredOracle.h"
#include "UntilLanded.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

/// Runs at eps 0 and expects the error of float32 arithmetic.
void expectExactRun(const Case &parameter, const ss_engine_options &options,
                    RequestStyle style = RequestStyle()) {
  Running run(parameter, options);
  DrivenRequest request = run.request(7, std::move(style));
  double worst = 0;
  for (int step = 0; step < 200; ++step) {
    worst = std::max(worst, run.driver.step({&request}).worstError);
    ASSERT_LE(worst, 5e-5)
        << "token " << step << ", ranks "
        << testing::PrintToString(run.engine.ranks(0, request.slot))
        << ", status "
        << testing::PrintToString(run.engine.status(0, request.slot));
  }
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    EXPECT_LE(run.driver.stateError(request, layer), 5e-5);
    for (int32_t status : run.engine.status(int32_t(layer), request.slot))
      EXPECT_EQ(status, 0) << "layer " << layer;
  }
}

const std::vector<std::string> kExactGraphs = {
    "gdn_64x128",         "gdn_100x60",     "gdn_negative",
    "mamba2_60x100",      "kda_64x128",     "gdn_a4_b4",
    "kda_bounded_60x100", "mamba2_a16_b16", "kda_a4_b12",
    "gdn_draft",          "hybrid"};

class Runs : public ConformanceTest {};

// States whose rank is bounded by their inputs need neither the fallback nor
// consolidation, wherever they run.
TEST_P(Runs, OfLowRankStayExact) {
  RequestStyle style;
  style.rank = 3; // the frozen rows of one more reach the bound of small states
  expectExactRun(GetParam(), plainOptions(1), style);
}

TEST_P(Runs, ThatForgetQuicklyStayExact) {
  RequestStyle style;
  style.rank = 4;
  style.gateMean = 2;
  expectExactRun(GetParam(), plainOptions(1), style);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Runs, onEveryBackEnd(withBothCores(kExactGraphs)),
                         caseName);

class Consolidation : public ConformanceTest {};

TEST_P(Consolidation, KeepsRunsExact) {
  ss_engine_options options = plainOptions(1);
  options.consolidate_every = 3;
  expectExactRun(GetParam(), options);
}

// Without consolidation on schedule a state of full rank reaches its bound,
// where an exact SVD makes room.
TEST_P(Consolidation, MakesRoomAtTheBound) {
  expectExactRun(GetParam(), plainOptions(1));
}

// The same beside decoding: what might not fit after the next compaction is
// consolidated before it, however rarely that is asked for.
TEST_P(Consolidation, MakesRoomBesideDecoding) {
  ss_engine_options options = plainOptions(1);
  options.consolidate_every = 1000;
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidation_lag = 2;
  expectExactRun(GetParam(), options);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Consolidation,
                         onEveryBackEnd(withBothCores(kExactGraphs)), caseName);

class DenseFallback : public ConformanceTest {};

TEST_P(DenseFallback, KeepsRunsExact) {
  expectExactRun(GetParam(), optionsFor(1));
}

TEST_P(DenseFallback, TakesStatesOfFullRank) {
  Running run(GetParam());
  RequestStyle style;
  style.gateMean = -40; // hardly any decay
  DrivenRequest request = run.request(7, style);
  for (int step = 0; step < 120; ++step)
    run.driver.step({&request});
  EXPECT_GT(run.engine.statistics().went_dense, 0);
  EXPECT_GT(run.engine.statistics().folds, 0);
}

INSTANTIATE_TEST_SUITE_P(Conformance, DenseFallback,
                         onEveryBackEnd(withBothCores(kExactGraphs)), caseName);

class ComingBack : public ConformanceTest {};

constexpr int kFull = 160;

RequestStyle rankFallsAt(int64_t token) {
  RequestStyle style;
  style.adjust = [token](int64_t position, TokenValues &values) {
    for (float &gate : values.gate) // hardly any decay, then a lot
      gate += position < token ? -40.0f : 14.0f;
  };
  return style;
}

// On every device, in every storage that holds matrices: states of full rank go
// dense, and come back at the first attempt after their rank fell, or soon after
// where many try at once.
TEST_P(ComingBack, StatesOfLowRankAreFactorsAgain) {
  constexpr int kMost = 600;
  Running run(GetParam());
  DrivenRequest request = run.request(7, rankFallsAt(kFull));
  for (int step = 0; step < kFull; ++step)
    run.driver.step({&request});
  const ss_statistics full = run.engine.statistics();
  ASSERT_GT(full.went_dense, 0);
  EXPECT_EQ(full.went_factored, 0);
  for (int step = kFull; step < kMost; ++step)
    run.driver.step({&request});
  const ss_statistics low = run.engine.statistics();
  EXPECT_EQ(low.went_factored, low.went_dense);
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    if (run.layers[layer].denseForm)
      continue;
    const auto now = run.engine.layerStatistics(int32_t(layer));
    EXPECT_EQ(now.dense_states, 0) << layer;
    EXPECT_EQ(now.status, 0) << layer;
    EXPECT_GT(now.rank_sum, 0) << layer;
    EXPECT_LE(run.driver.stateError(request, layer), 0.05) << layer;
  }
}

// More states than a device decomposes in a step: the others come soon after.
TEST_P(ComingBack, WhereManyTryAtOnce) {
  constexpr int kRequests = 12, kTurns = 16 * 16 + 64;
  Running run(GetParam(), optionsFor(kRequests), false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < kRequests; ++seed)
    requests.push_back(run.request(seed, rankFallsAt(kFull)));
  for (DrivenRequest &request : requests)
    batch.push_back(&request);
  for (int step = 0; step < kFull + kTurns; ++step)
    run.driver.step(batch);
  const ss_statistics found = run.engine.statistics();
  EXPECT_GE(found.went_dense, kRequests * run.layers[0].heads);
  EXPECT_EQ(found.went_factored, found.went_dense);
}

INSTANTIATE_TEST_SUITE_P(Conformance, ComingBack,
                         onEveryBackEnd({"init_80x128", "init_hybrid",
                                         "init_f16", "init_bf16",
                                         "hybrid_relative"}),
                         caseName);

//===----------------------------------------------------------------------===//
// Truncated runs
//===----------------------------------------------------------------------===//

/// Runs beside the float64 run of the same policy.
void expectTruncatedRun(const Case &parameter,
                        const ss_engine_options &options) {
  Running run(parameter, options);
  RequestStyle style;
  style.rank = 12; // a state worth truncating: some directions, and noise
  style.noise = 0.05;
  DrivenRequest request = run.request(7, style);
  const LayerSpec &layer = run.layers[0];
  FactoredOracle oracle(layer, run.driver.weights(0),
                        options.consolidate_every);
  for (int64_t step = 0; step < 200; ++step) {
    oracle.step(request.inputs(0).token(step));
    run.driver.step({&request});
    // Never right behind a compaction, whose consolidation lands with the next token.
    if (step % 20 != 18)
      continue;
    SCOPED_TRACE("token " + std::to_string(step));
    run.engine.synchronize();
    const std::vector<float> h = run.engine.densify(0, request.slot);
    const std::vector<int32_t> ranks = run.engine.ranks(0, request.slot);
    for (int64_t head = 0; head < layer.heads; ++head) {
      const FactoredOracle::Head &expected = oracle.heads()[size_t(head)];
      using RowMajor =
          Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      const Eigen::MatrixXd state =
          Eigen::Map<const RowMajor>(h.data() + head * layer.dv * layer.dk,
                                     layer.dv, layer.dk)
              .cast<double>();
      const double size = expected.exact.h.norm();
      // A component at the threshold may fall on either side: a tenth more.
      EXPECT_LE((state - expected.exact.h).norm(),
                1.1 * expected.bound + 1e-4 * size);
      EXPECT_LE(std::abs(ranks[size_t(head)] - expected.factored.rank()), 2)
          << "head " << head << " has " << ranks[size_t(head)]
          << " components, float64 " << expected.factored.rank();
    }
  }
}

class TruncatedRuns : public ConformanceTest {};

TEST_P(TruncatedRuns, StayWithinWhatWasDropped) {
  expectTruncatedRun(GetParam(), plainOptions(1));
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, TruncatedRuns,
    onEveryBackEnd(withBothCores(
        {"gdn_relative", "mamba2_relative", "kda_relative", "gdn_fixed",
         "mamba2_fixed", "kda_fixed", "gdn_energy", "mamba2_energy",
         "kda_energy", "gdn_budget", "mamba2_budget"})),
    caseName);

class ConsolidatedRuns : public ConformanceTest {};

TEST_P(ConsolidatedRuns, StayWithinWhatWasDropped) {
  ss_engine_options options = plainOptions(1);
  options.consolidate_every = 2;
  options.consolidation_lag = 0;
  expectTruncatedRun(GetParam(), options);
}

// Results land whenever they are there, as late as they may.
TEST_P(ConsolidatedRuns, ThatWaitForNothingStayClose) {
  ss_engine_options options = plainOptions(2);
  options.consolidate_every = 1;
  options.consolidation = SS_CONSOLIDATION_ASYNCHRONOUS;
  options.consolidation_threads = 2;
  Running run(GetParam(), options);
  RequestStyle style;
  style.rank = 12;
  style.noise = 0.05;
  std::vector<DrivenRequest> requests;
  for (uint64_t seed = 1; seed < 3; ++seed)
    requests.push_back(run.request(seed, style));
  for (int step = 0; step < 200; ++step) {
    run.driver.step({&requests[0], &requests[1]});
    if (step % 16 == 9)
      run.engine.synchronize();
    if (step % 50 == 49) { // with jobs under way
      run.engine.freeSlot(requests[1].slot);
      requests[1] = run.request(uint64_t(step), style);
    }
  }
  // Each of 25 compactions drops at most its share.
  for (DrivenRequest &request : requests)
    EXPECT_LT(run.driver.stateError(request, 0), 0.5);
  // What the other policies have left is far above rounding.
  const bool removes = run.layers[0].policyKind == "relative";
  test::decodeUntilLanded(
      run.engine, [&] { run.driver.step({&requests[0], &requests[1]}); }, removes);
  run.engine.synchronize();
  const ss_statistics s = run.engine.statistics();
  EXPECT_EQ(s.consolidation_waits, 0);
  EXPECT_EQ(s.consolidations_started,
            s.consolidations_landed + s.consolidations_dropped);
}

INSTANTIATE_TEST_SUITE_P(Conformance, ConsolidatedRuns,
                         onEveryBackEnd({"gdn_relative", "mamba2_relative",
                                         "kda_relative", "gdn_energy",
                                         "mamba2_budget"}),
                         caseName);

//===----------------------------------------------------------------------===//
// Modes of consolidation
//===----------------------------------------------------------------------===//

class DeterministicRuns : public ConformanceTest {};

// With states that go dense, where the graph's may: what a state becomes must
// not depend on when its SVD is done.
TEST_P(DeterministicRuns, WithoutLagHaveTheBitsOfInlineOnes) {
  for (int32_t every : {1, 4}) {
    SCOPED_TRACE(every);
    std::vector<std::vector<std::vector<float>>> outputs[2];
    for (int mode : {0, 1}) {
      ss_engine_options options = optionsFor(1);
      options.consolidate_every = every;
      options.consolidation = mode == 0 ? SS_CONSOLIDATION_INLINE
                                        : SS_CONSOLIDATION_DETERMINISTIC;
      options.consolidation_lag = 0;
      Running run(GetParam(), options, /*withOracle=*/false);
      RequestStyle style;
      style.rank = 12;
      style.noise = 0.1;
      style.gateMean = -1;
      DrivenRequest request = run.request(17, style);
      for (int step = 0; step < 120; ++step)
        outputs[mode].push_back(run.driver.step({&request}).y);
      EXPECT_GT(run.engine.statistics().consolidations, 0);
    }
    EXPECT_EQ(outputs[0], outputs[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, DeterministicRuns,
    onEveryBackEnd({"gdn_relative", "mamba2_relative", "kda_relative",
                    "hybrid_relative", "hybrid", "gdn_f16", "gdn_bf16",
                    "mamba2_f16", "mamba2_bf16", "kda_f16", "kda_bf16",
                    "hybrid_f16", "hybrid_bf16"}),
    caseName);

} // namespace
