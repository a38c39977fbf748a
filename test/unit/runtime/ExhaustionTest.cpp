//===- ExhaustionTest.cpp - The limit of the states' memory ---------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> layers() {
  std::vector<LayerSpec> layers = {mamba2Layer(2, 1, 64, 64)};
  layers[0].policyValue = 1e-4;
  return layers;
}

/// What `requests` requests take without a limit.
int64_t peakOf(int requests, int steps) {
  ss_engine_options options = optionsFor(4);
  options.dense_fallback = 0;
  EngineUnderTest test(layers(), options, false);
  std::vector<DrivenRequest> all;
  for (int i = 0; i < requests; ++i)
    all.push_back(test.request(uint64_t(i)));
  std::vector<DrivenRequest *> batch;
  for (DrivenRequest &request : all)
    batch.push_back(&request);
  for (int step = 0; step < steps; ++step)
    test.driver.step(batch);
  return test.engine.statistics().allocated_peak;
}

ss_engine_options limited(int64_t bytes, ss_exhaustion exhaustion) {
  ss_engine_options options = optionsFor(4);
  options.dense_fallback = 0;
  options.state_bytes_limit = bytes;
  options.exhaustion = exhaustion;
  return options;
}

TEST(Exhaustion, IsRefusedBeforeItHarmsAndAFreedSlotHelps) {
  const int64_t limit = peakOf(2, 240) + 16384;
  EngineUnderTest test(layers(), limited(limit, SS_EXHAUSTION_REFUSE), false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < 4; ++seed)
    requests.push_back(test.request(seed));
  for (DrivenRequest &request : requests)
    batch.push_back(&request);
  int step = 0;
  for (bool refused = false; !refused; ++step) {
    ASSERT_LT(step, 200);
    const auto before = test.engine.densify(0, requests[0].slot);
    try {
      test.driver.step(batch);
    } catch (const Exception &error) {
      EXPECT_EQ(error.code(), SS_OUT_OF_MEMORY);
      EXPECT_NE(std::string(error.what()).find("options.state_bytes_limit"),
                std::string::npos);
      // Nothing has changed.
      EXPECT_EQ(test.engine.densify(0, requests[0].slot), before);
      refused = true;
    }
    EXPECT_LE(test.engine.statistics().allocated_bytes, limit);
  }
  EXPECT_GT(test.engine.statistics().refused, 0);
  // Two requests leave: the others go on.
  test.engine.freeSlot(requests[2].slot);
  test.engine.freeSlot(requests[3].slot);
  batch.resize(2);
  for (int more = 0; more < 20; ++more)
    EXPECT_NO_THROW(test.driver.step(batch));
  EXPECT_EQ(test.engine.statistics().tightened, 0);
}

TEST(Exhaustion, TightenedStatesGoOnWithWhatFits) {
  const int64_t limit = peakOf(2, 60);
  EngineUnderTest test(layers(), limited(limit, SS_EXHAUSTION_TIGHTEN), true);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < 4; ++seed)
    requests.push_back(test.request(seed));
  for (DrivenRequest &request : requests)
    batch.push_back(&request);
  for (int step = 0; step < 80; ++step) {
    test.driver.step(batch);
    EXPECT_LE(test.engine.statistics().allocated_bytes, limit);
  }
  const ss_statistics s = test.engine.statistics();
  EXPECT_GT(s.tightened, 0);
  EXPECT_NE(test.engine.layerStatistics(0).status & SS_STATUS_TIGHTENED, 0);
  for (DrivenRequest &request : requests)
    EXPECT_LT(test.driver.stateError(request, 0), 0.9);
}

TEST(Exhaustion, ALimitBelowTheBuffersIsRefusedAtOnce) {
  KernelSet kernels(layers());
  Package package = Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                        &kernels);
  ss_engine_options options = limited(4096, SS_EXHAUSTION_REFUSE);
  ss_engine *engine = nullptr;
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine),
            SS_OUT_OF_MEMORY);
  EXPECT_NE(std::string(ss_last_error()).find("buffers and tables of 4 slots"),
            std::string::npos);
}

TEST(Exhaustion, DeterminismExcludesTightening) {
  KernelSet kernels(layers());
  Package package = Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                        &kernels);
  ss_engine_options options = limited(1 << 30, SS_EXHAUSTION_TIGHTEN);
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  ss_engine *engine = nullptr;
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine),
            SS_INVALID_ARGUMENT);
}

/// Requests that come, go, are forked, reach full rank and fall back to a low one.
class FormWalk {
public:
  FormWalk(const std::vector<LayerSpec> &layers, ss_engine_options options,
           uint64_t seed)
      : layer(layers[0]), options(options), test(layers, options, false),
        random(seed) {
    most = test.package.plan(options).worst_case;
    fixed = statistics().allocated_bytes;
    for (int slot = 0; slot < options.slots / 2; ++slot)
      join();
  }

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      change();
      try {
        std::vector<DrivenRequest *> batch;
        for (DrivenRequest &request : requests)
          batch.push_back(&request);
        test.driver.step(batch);
      } catch (const Exception &error) {
        ASSERT_EQ(error.code(), SS_OUT_OF_MEMORY) << error.what();
        ASSERT_GT(requests.size(), 1u) << "one request has to go on";
        leave();
      }
      const ss_statistics s = test.engine.statistics();
      ASSERT_LE(s.allocated_peak, most) << step;
      if (options.state_bytes_limit > 0)
        ASSERT_LE(s.allocated_peak, options.state_bytes_limit) << step;
    }
  }
  ss_statistics statistics() const { return test.engine.statistics(); }
  int64_t fixed; ///< bytes that it takes without any state

private:
  void join() {
    requests.push_back(test.request(random()));
    full(requests.back());
  }
  void leave() {
    test.engine.freeSlot(requests.back().slot);
    requests.pop_back();
  }
  void full(DrivenRequest &request) {
    request.inputs(0) = RandomRequest(layer, random(), {});
  }
  void change() {
    DrivenRequest &one = requests[random() % requests.size()];
    switch (random() % 40) {
    case 0:
      if (int32_t(requests.size()) < options.slots)
        join();
      break;
    case 1:
      if (requests.size() > 2)
        leave();
      break;
    case 2:
    case 3:
    case 4: // to few directions, and forgets the rest
      one.inputs(0) = RandomRequest(layer, random(), {3, 0, 3.0});
      break;
    case 5:
      full(one);
      break;
    case 6:
      if (int32_t(requests.size()) < options.slots) {
        join();
        // join() has moved the requests.
        const DrivenRequest &from = requests[random() % (requests.size() - 1)];
        requests.back().position = from.position;
        test.engine.fork(from.slot, requests.back().slot);
      }
      break;
    default:
      break;
    }
  }

  LayerSpec layer;
  ss_engine_options options;
  EngineUnderTest test;
  std::mt19937_64 random;
  std::vector<DrivenRequest> requests;
  int64_t most = 0;
};

constexpr int kWalk = 600;

std::vector<LayerSpec> walkedLayers(int32_t dv, int32_t dk) {
  std::vector<LayerSpec> layers = {mamba2Layer(3, 3, dv, dk)};
  layers[0].policyValue = 1e-3;
  return layers;
}

struct WalkCase {
  int32_t consolidation, threads;
  ss_exhaustion exhaustion;
};

class ChangesOfForm : public testing::TestWithParam<WalkCase> {};

TEST_P(ChangesOfForm, StayWithinThePlanAndTheLimit) {
  // Where results land whenever they are there, time decides which ranks rise so far.
  const bool isRepeatable =
      GetParam().consolidation != SS_CONSOLIDATION_ASYNCHRONOUS;
  for (int32_t dk : {32, 48}) {
    const std::vector<LayerSpec> layers = walkedLayers(32, dk);
    ss_engine_options options = optionsFor(12);
    options.consolidation = GetParam().consolidation;
    options.threads = GetParam().threads;
    FormWalk without(layers, options, 5);
    without.run(kWalk);
    if (isRepeatable) {
      EXPECT_GT(without.statistics().went_dense, 10);
      EXPECT_GT(without.statistics().went_factored, 2);
    }
    const int64_t rows = without.statistics().allocated_peak - without.fixed;
    options.exhaustion = GetParam().exhaustion;
    for (int64_t part : {3, 6}) {
      options.state_bytes_limit = without.fixed + rows * part / 8;
      FormWalk walk(layers, options, 5);
      walk.run(kWalk);
      if (isRepeatable)
        EXPECT_GT(walk.statistics().went_dense, 2) << part;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ChangesOfForm,
    testing::Values(
        WalkCase{SS_CONSOLIDATION_INLINE, 1, SS_EXHAUSTION_REFUSE},
        WalkCase{SS_CONSOLIDATION_INLINE, 4, SS_EXHAUSTION_TIGHTEN},
        WalkCase{SS_CONSOLIDATION_ASYNCHRONOUS, 2, SS_EXHAUSTION_REFUSE},
        WalkCase{SS_CONSOLIDATION_ASYNCHRONOUS, 2, SS_EXHAUSTION_TIGHTEN},
        WalkCase{SS_CONSOLIDATION_DETERMINISTIC, 2, SS_EXHAUSTION_REFUSE}));

// All states of a batch reach their break-even rank in the same step.
TEST(Exhaustion, ABatchGoesDenseWithinTheMemoryOfItsFactors) {
  const std::vector<LayerSpec> layers = walkedLayers(64, 64);
  int before = 0;
  for (int64_t limit : {500000, 750000, 1000000, 1250000, 1600000, 2500000}) {
    ss_engine_options options = optionsFor(24);
    options.state_bytes_limit = limit;
    EngineUnderTest test(layers, options, false);
    std::vector<DrivenRequest> requests;
    std::vector<DrivenRequest *> batch;
    for (uint64_t seed = 0; seed < 24; ++seed)
      requests.push_back(test.request(seed));
    for (DrivenRequest &request : requests)
      batch.push_back(&request);
    int done = 0;
    try {
      for (; done < 120; ++done)
        test.driver.step(batch);
    } catch (const Exception &error) {
      EXPECT_EQ(error.code(), SS_OUT_OF_MEMORY);
    }
    EXPECT_LE(test.engine.statistics().allocated_peak, limit);
    EXPECT_GE(done, before) << limit;
    before = done;
    if (done < 120)
      continue;
    EXPECT_EQ(test.engine.statistics().went_dense, 24 * 3);
  }
  EXPECT_EQ(before, 120);
}

// One small request: its states, its buffers and little else.
TEST(Exhaustion, ASmallRequestTakesLittleMoreThanItsStates) {
  std::vector<LayerSpec> layer = {gdnLayer(2, 2, 128, 128)};
  layer[0].policyValue = 3e-2;
  EngineUnderTest test(layer, optionsFor(1), false);
  DrivenRequest request = test.request(1);
  for (int step = 0; step < 400; ++step)
    test.driver.step({&request});
  const ss_statistics s = test.engine.statistics();
  EXPECT_LT(double(s.allocated_peak), 2.0 * double(s.dense_bytes));
  EXPECT_LT(s.mean_allocated_bytes, 1.7 * double(s.dense_bytes));
}

} // namespace
