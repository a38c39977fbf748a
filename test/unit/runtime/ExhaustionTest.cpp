//===- ExhaustionTest.cpp - The limit of the states' memory ---------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

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
