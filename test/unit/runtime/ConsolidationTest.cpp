//===- ConsolidationTest.cpp - Consolidation beside decoding --------------===//

#include "EngineUnderTest.h"
#include "UntilLanded.h"

#include <gtest/gtest.h>

#include <limits>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> layers() {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 32, 24),
                                   mamba2Layer(2, 1, 24, 32),
                                   kdaLayer(2, 2, 24, 24)};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].policyValue = 3e-2;
    layers[i].phase = int32_t(3 * i % 8);
  }
  return layers;
}

ss_engine_options modeOptions(int32_t slots, ss_consolidation mode) {
  ss_engine_options options = optionsFor(slots);
  options.consolidation = mode;
  options.dense_fallback = 0;
  options.consolidate_every = 1;
  return options;
}

using Outputs = std::vector<std::vector<std::vector<float>>>;

Outputs run(EngineUnderTest &test, DrivenRequest &request, int steps) {
  Outputs outputs;
  for (int step = 0; step < steps; ++step)
    outputs.push_back(test.driver.step({&request}).y);
  return outputs;
}

Outputs runAlone(const ss_engine_options &options, uint64_t seed, int steps) {
  EngineUnderTest test(layers(), options, false);
  DrivenRequest request = test.request(seed);
  return run(test, request, steps);
}

TEST(Consolidation, InlineIsTheDefault) {
  ss_engine_options plain = optionsFor(1);
  plain.dense_fallback = 0;
  plain.consolidate_every = 1;
  EXPECT_EQ(runAlone(plain, 4, 70),
            runAlone(modeOptions(1, SS_CONSOLIDATION_INLINE), 4, 70));
}

TEST(Consolidation, DeterministicWithoutLagIsInlineToTheBit) {
  for (int32_t dense : {0, 1})
    for (int32_t every : {1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << dense << " " << every);
      auto runWith = [&](ss_consolidation mode) {
        ss_engine_options options = modeOptions(1, mode);
        options.consolidation_lag = 0;
        options.dense_fallback = dense;
        options.consolidate_every = every;
        return runAlone(options, 4, 150);
      };
      EXPECT_EQ(runWith(SS_CONSOLIDATION_DETERMINISTIC),
                runWith(SS_CONSOLIDATION_INLINE));
    }
}

// A state that is larger than its dense form, but not once it is consolidated:
// whether it goes dense is decided after its SVD in every mode that is to give
// the same results.
TEST(Consolidation, DecidesBeforeAStateGoesDense) {
  std::vector<LayerSpec> layer = {mamba2Layer(2, 1, 24, 24)};
  layer[0].active = 2;
  layer[0].policyValue = 0.2;
  ss_statistics statistics[2];
  Outputs outputs[2];
  for (int i : {0, 1}) {
    ss_engine_options options =
        modeOptions(1, i == 0 ? SS_CONSOLIDATION_INLINE
                              : SS_CONSOLIDATION_DETERMINISTIC);
    options.consolidation_lag = 0;
    options.dense_fallback = 1;
    options.consolidate_every = 2;
    EngineUnderTest test(layer, options, false);
    DrivenRequest request = test.request(4, {0, 0, -2.0});
    outputs[i] = run(test, request, 200);
    statistics[i] = test.engine.statistics();
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(statistics[0].went_dense, statistics[1].went_dense);
  EXPECT_EQ(statistics[0].consolidations, statistics[1].consolidations);
  EXPECT_EQ(statistics[0].components_removed, statistics[1].components_removed);
  EXPECT_GT(statistics[0].consolidations, 0);
  EXPECT_GT(statistics[0].components_removed, 0);
  EXPECT_EQ(statistics[0].consolidation_waits, 0);
}

// Whether a step comes before its result is a matter of time: in some run it does.
TEST(Consolidation, CountsTheStepsThatWait) {
  ss_engine_options options = modeOptions(1, SS_CONSOLIDATION_DETERMINISTIC);
  options.consolidation_lag = 0;
  waitUntil("a step that waits", [&] {
    EngineUnderTest test(layers(), options, false);
    DrivenRequest request = test.request(4);
    run(test, request, 40);
    const ss_statistics s = test.engine.statistics();
    EXPECT_LE(s.consolidation_waits, s.consolidations_started);
    return s.consolidation_waits > 0;
  });
}

TEST(Consolidation, DeterministicIsTheSameWhateverElseIsGoingOn) {
  const ss_engine_options options =
      modeOptions(5, SS_CONSOLIDATION_DETERMINISTIC);
  const Outputs alone = runAlone(options, 9, 60);
  EngineUnderTest test(layers(), options, false);
  std::vector<DrivenRequest> others;
  for (uint64_t seed = 20; seed < 24; ++seed)
    others.push_back(test.request(seed));
  DrivenRequest request = test.request(9);
  for (int step = 0; step < 60; ++step) {
    std::vector<DrivenRequest *> batch;
    for (size_t i = 0; i < others.size(); ++i)
      if ((step + i) % 3 != 0)
        batch.push_back(&others[i]);
    batch.insert(batch.begin() + step % (int(batch.size()) + 1), &request);
    const size_t row = size_t(
        std::find(batch.begin(), batch.end(), &request) - batch.begin());
    const StepResult result = test.driver.step(batch);
    for (size_t layer = 0; layer < result.y.size(); ++layer) {
      const size_t width = alone[0][layer].size();
      const auto begin = result.y[layer].begin() + int64_t(row * width);
      ASSERT_EQ(std::vector<float>(begin, begin + int64_t(width)),
                alone[size_t(step)][layer])
          << step;
    }
    // Tenants come and go while their jobs are under way.
    if (step % 7 == 6) {
      DrivenRequest &leaving = others[size_t(step) % others.size()];
      test.engine.freeSlot(leaving.slot);
      leaving = test.request(uint64_t(100 + step));
    }
  }
  const ss_statistics s = test.engine.statistics();
  EXPECT_GT(s.consolidations_landed, 0);
  EXPECT_GT(s.consolidations_dropped, 0); // of tenants that left
  EXPECT_EQ(s.consolidation_lag_max, 7);  // before the token of the next
}

TEST(Consolidation, AsynchronousKeepsTheStatesAndNeverWaits) {
  for (ss_consolidation mode :
       {SS_CONSOLIDATION_ASYNCHRONOUS, SS_CONSOLIDATION_OFF}) {
    EngineUnderTest test(layers(), modeOptions(3, mode), true);
    std::vector<DrivenRequest> requests;
    for (uint64_t seed = 0; seed < 3; ++seed)
      requests.push_back(test.request(seed));
    std::vector<DrivenRequest *> batch;
    for (DrivenRequest &request : requests)
      batch.push_back(&request);
    for (int step = 0; step < 120; ++step) {
      test.driver.step(batch);
      // At some points everything lands, whatever the machine is busy with.
      if (step % 8 == 3)
        test.engine.synchronize();
    }
    // Truncation at 3e-2, sixteen times.
    for (DrivenRequest &request : requests)
      for (size_t layer = 0; layer < 3; ++layer)
        EXPECT_LT(test.driver.stateError(request, layer), 0.35);
    if (mode != SS_CONSOLIDATION_OFF)
      decodeUntilLanded(
          test.engine, [&] { test.driver.step(batch); }, /*removes=*/true);
    test.engine.synchronize();
    const ss_statistics s = test.engine.statistics();
    EXPECT_EQ(s.consolidation_waits, 0);
    EXPECT_EQ(s.consolidations_started,
              s.consolidations_landed + s.consolidations_dropped);
    if (mode == SS_CONSOLIDATION_OFF) {
      EXPECT_EQ(s.consolidations_started, 0);
    } else {
      EXPECT_GT(s.components_removed, 0);
    }
  }
}

TEST(Consolidation, ADroppedResultIsStartedAgain) {
  EngineUnderTest test(layers(), modeOptions(1, SS_CONSOLIDATION_ASYNCHRONOUS),
                       false);
  auto dropped = [&] { return test.engine.statistics().consolidations_dropped; };
  for (int round = 0; round < 12 || (round < 5000 && dropped() == 0); ++round) {
    DrivenRequest request = test.request(uint64_t(round));
    run(test, request, 9 + round % 12);
    test.engine.freeSlot(request.slot); // with jobs under way
  }
  EXPECT_GT(dropped(), 0);
  DrivenRequest request = test.request(77);
  decodeUntilLanded(test.engine, [&] { run(test, request, 1); });
  test.engine.synchronize();
  ss_statistics s = test.engine.statistics();
  EXPECT_EQ(s.consolidations_started,
            s.consolidations_landed + s.consolidations_dropped);
}

TEST(Consolidation, ADenseStateComesBackFromTheHost) {
  std::vector<LayerSpec> layer = {mamba2Layer(1, 1, 32, 32)};
  layer[0].policyValue = 1e-4;
  for (ss_consolidation mode :
       {SS_CONSOLIDATION_ASYNCHRONOUS, SS_CONSOLIDATION_DETERMINISTIC}) {
    ss_engine_options options = modeOptions(1, mode);
    options.dense_fallback = 1;
    EngineUnderTest test(layer, options, true);
    DrivenRequest request = test.request(1);
    run(test, request, 40);
    EXPECT_EQ(test.engine.ranks(0, request.slot)[0], -1);
    // Tokens that decay fast: little is left of what filled it.
    DrivenRequest fading(test.kernels.layers(), 2, {2, 0, 4.0});
    fading.slot = request.slot;
    for (int step = 0; step < 300; ++step) {
      test.driver.step({&fading});
      test.engine.synchronize();
    }
    EXPECT_GE(test.engine.ranks(0, request.slot)[0], 0);
    EXPECT_GT(test.engine.statistics().went_factored, 0);
  }
}

TEST(Consolidation, NanStaysInItsSlot) {
  EngineUnderTest test(layers(), modeOptions(2, SS_CONSOLIDATION_ASYNCHRONOUS),
                       true);
  DrivenRequest good = test.request(3), bad = test.request(4);
  for (int step = 0; step < 40; ++step) {
    test.driver.step({&good, &bad});
    if (step == 20)
      for (size_t layer = 0; layer < 3; ++layer) {
        std::vector<float> nan(4096, std::numeric_limits<float>::quiet_NaN());
        std::vector<float> y(4096);
        ss_decode_args args = decodeArgs();
        args.batch = 1;
        args.slots = &bad.slot;
        for (ss_input *in : {&args.q, &args.k, &args.v, &args.gate, &args.beta})
          *in = {nan.data(), 0};
        args.a_log = args.dt_bias = nan.data();
        args.y = y.data();
        test.engine.decodeLayer(int32_t(layer), args);
      }
    if (step == 20)
      test.engine.endStep({bad.slot});
    test.engine.synchronize();
  }
  for (size_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(test.engine.status(int32_t(layer), good.slot),
              (std::vector<int32_t>{0, 0}));
    EXPECT_NE(test.engine.status(int32_t(layer), bad.slot)[0], 0);
    EXPECT_LT(test.driver.stateError(good, layer), 0.3);
  }
}

TEST(Consolidation, OptionsAreChecked) {
  KernelSet kernels(layers());
  Package package = Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                        &kernels);
  auto error = [&](auto change) {
    ss_engine_options options = optionsFor(1);
    change(options);
    ss_engine *engine = nullptr;
    EXPECT_EQ(ss_engine_create(package.get(), &options, &engine),
              SS_INVALID_ARGUMENT);
    return std::string(ss_last_error());
  };
  EXPECT_EQ(error([](auto &o) { o.consolidation = 4; }),
            "options.consolidation is 4, expected an ss_consolidation (0 to "
            "3), or -1 for what the device does");
  EXPECT_EQ(error([](auto &o) { o.consolidation_threads = 257; }),
            "options.consolidation_threads is 257, expected 0 (a quarter of "
            "the processors) to 256");
  EXPECT_EQ(error([](auto &o) { o.consolidation_lag = -2; }),
            "options.consolidation_lag is -2, expected 0 (results land behind "
            "the compaction) or -1 (before the next one)");
  const int32_t cpu = 100000;
  EXPECT_EQ(error([&](auto &o) {
              o.consolidation_cpus = &cpu;
              o.consolidation_cpu_count = 1;
            }),
            "options.consolidation_cpus[0] is 100000, expected a processor "
            "that this process may run on");
  EXPECT_EQ(error([](auto &o) { o.consolidation_cpu_count = 1; }),
            "options.consolidation_cpu_count is 1 and consolidation_cpus is "
            "null, expected the number of processors that consolidation_cpus "
            "names");
}

} // namespace
