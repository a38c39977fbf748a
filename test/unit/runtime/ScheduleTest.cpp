//===- ScheduleTest.cpp - When states are compacted -----------------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> staggeredLayers() {
  std::vector<LayerSpec> layers;
  for (int32_t i = 0; i < 8; ++i) {
    layers.push_back(gdnLayer(2, 2, 16, 16));
    layers.back().name = "layer" + std::to_string(i);
    layers.back().phase = i;
  }
  return layers;
}

// With phases 0..7 and K = 8 one layer of eight compacts per step.
TEST(Schedule, OneLayerInEightCompactsPerStep) {
  EngineUnderTest test(staggeredLayers(), optionsFor(1), false);
  DrivenRequest request = test.request(1);
  int64_t before = 0;
  for (int step = 0; step < 32; ++step) {
    test.driver.step({&request});
    ss_statistics s = test.engine.statistics();
    EXPECT_EQ(s.compactions + s.folds - before, 2) << step;
    before = s.compactions + s.folds;
  }
}

// The same where half of them do it before their tokens: then the phase is one
// less.
TEST(Schedule, OneLayerInEightCompactsPerStepOnEitherSideOfItsToken) {
  std::vector<LayerSpec> layers = staggeredLayers();
  for (size_t i = 4; i < layers.size(); ++i) {
    layers[i].before = true;
    --layers[i].phase;
  }
  EngineUnderTest test(layers, optionsFor(1), false);
  DrivenRequest request = test.request(1);
  int64_t before = 0;
  for (int step = 0; step < 32; ++step) {
    test.driver.step({&request});
    ss_statistics s = test.engine.statistics();
    EXPECT_EQ(s.compactions + s.folds - before, 2) << step;
    before = s.compactions + s.folds;
    EXPECT_EQ(test.engine.layerInfo(step % 8).compacts_before, step % 8 > 3);
  }
}

// The request's own position decides, not the step of the engine.
TEST(Schedule, ALateRequestHasItsOwnPhase) {
  EngineUnderTest test({gdnLayer(1, 1, 16, 16)}, optionsFor(2), false);
  DrivenRequest first = test.request(1);
  for (int step = 0; step < 3; ++step)
    test.driver.step({&first});
  DrivenRequest second = test.request(2);
  std::vector<int64_t> compactions;
  for (int step = 3; step < 12; ++step) {
    test.driver.step({&first, &second});
    compactions.push_back(test.engine.statistics().compactions);
  }
  // First after its 8th token (step 7), second after its 8th (step 10).
  EXPECT_EQ(compactions, (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 2, 2}));
}

// Where the position of a request is set to another one, its compaction may be more
// than a buffer away; it still comes before the buffer overflows.
TEST(Schedule, AFullBufferCompactsWhateverThePhase) {
  LayerSpec layer = gdnLayer(1, 1, 16, 16);
  layer.phase = 3;
  EngineUnderTest test({layer}, optionsFor(1), true);
  DrivenRequest request = test.request(1);
  for (int step = 0; step < 4; ++step) // compacts at position 2
    test.driver.step({&request});
  test.engine.setPosition(request.slot, 8); // with one pair in the buffer
  for (int step = 0; step < 30; ++step)
    ASSERT_LE(test.driver.step({&request}).worstError, 1e-5);
}

} // namespace
