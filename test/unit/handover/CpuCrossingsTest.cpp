//===- CpuCrossingsTest.cpp - Consolidation and hand-over on the CPU ------===//
//
// What changes states outside a step while SVDs of them are under way on other
// threads. test/unit/cuda/CrossingsTest.cpp has the same for GPUs.
//
//===----------------------------------------------------------------------===//

#include "Crossings.h"
#include "EngineUnderTest.h"
#include "UntilLanded.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// The first layer compacts before its tokens. The last one does so behind: what it
/// starts lands in no step but the next.
std::vector<LayerSpec> layersWith(int32_t draft) { return crossingLayers(draft, 0); }

ss_engine_options asynchronous(int32_t slots) {
  ss_engine_options options = optionsFor(slots);
  options.consolidation = SS_CONSOLIDATION_ASYNCHRONOUS;
  options.consolidate_every = 1;
  return options;
}

int64_t underWay(const EngineUnderTest &test) {
  const ss_statistics s = test.engine.statistics();
  return s.consolidations_started - s.consolidations_landed -
         s.consolidations_dropped;
}

/// Decodes until an SVD of this request is under way, however often none is begun as
/// its result would be late.
bool decodeUntilUnderWay(EngineUnderTest &test, DrivenRequest &request) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (int step = 0; std::chrono::steady_clock::now() < end; ++step) {
    test.driver.step({&request});
    if (step > 12 && underWay(test) > 0)
      return true;
  }
  return false;
}

using Change = std::function<void(Engine &, int32_t slot, int32_t other)>;

TEST(Crossings, NoResultOfFormerRowsLandsAfterTheyWereReplaced) {
  const std::vector<LayerSpec> layers = layersWith(0);
  const std::pair<const char *, Change> changes[] = {
      {"reset", [](Engine &e, int32_t slot, int32_t) { e.resetSlot(slot); }},
      {"fork", [](Engine &e, int32_t slot, int32_t other) { e.fork(other, slot); }},
      {"restore",
       [](Engine &e, int32_t slot, int32_t other) {
         e.restore(slot, e.snapshot(other));
       }},
      {"heads",
       [&](Engine &e, int32_t slot, int32_t other) {
         joinHalves(e, layers, slot, other);
       }},
      {"init",
       [&](Engine &e, int32_t slot, int32_t) { initialise(e, layers, slot); }},
      {"another owner", [](Engine &e, int32_t slot, int32_t other) {
         e.freeSlot(slot);
         ASSERT_EQ(e.allocateSlot(), slot);
         e.fork(other, slot);
       }}};
  for (const auto &[name, change] : changes) {
    SCOPED_TRACE(name);
    EngineUnderTest test(layers, asynchronous(2));
    RequestStyle style;
    style.rank = 3; // full ranks go dense, which is no SVD
    DrivenRequest other = test.request(50, style);
    for (int step = 0; step < 14; ++step)
      test.driver.step({&other});
    test.engine.synchronize();
    DrivenRequest request = test.request(1, style);
    ASSERT_TRUE(decodeUntilUnderWay(test, request));
    change(test.engine, request.slot, other.slot);
    const auto expected = test.engine.snapshot(request.slot);
    test.engine.synchronize(); // all that may land has landed
    EXPECT_EQ(test.engine.snapshot(request.slot), expected);
    // Results of its own may have landed there.
    for (size_t layer = 0; layer < layers.size(); ++layer)
      EXPECT_LT(test.driver.stateError(other, layer), 0.05) << layer;
    EXPECT_GT(test.engine.statistics().consolidations_dropped, 0);
    EXPECT_EQ(underWay(test), 0);
  }
}

// A rollback changes counts alone: what was decomposed is still there, and may
// land. The matrix is the same to what the policy drops.
TEST(Crossings, ARollbackBesideAnSvdForgetsItsTokensAlone) {
  for (int32_t draft : {0, 2}) {
    SCOPED_TRACE(draft);
    EngineUnderTest test(layersWith(draft), asynchronous(1));
    RequestStyle style;
    style.rank = 3;
    DrivenRequest request = test.request(3, style);
    int beside = 0;
    for (int round = 0; round < 12; ++round) {
      beside += decodeUntilUnderWay(test, request);
      const DrivenRequest before = request;
      test.driver.step({&request});
      if (test.engine.rollbackRoom(request.slot) < 1)
        continue;
      test.engine.rollback(request.slot, 1);
      request = before;
      if (round % 2 == 0)
        test.engine.synchronize();
      for (size_t layer = 0; layer < 3; ++layer)
        EXPECT_LT(test.driver.stateError(request, layer), 0.15) << layer;
      EXPECT_EQ(test.engine.position(request.slot), request.position);
    }
    if (draft == 0) {
      EXPECT_GT(beside, 0) << "a test of nothing";
    }
  }
}

TEST(Crossings, EverythingBesideSvdsKeepsStatesRight) {
  for (int32_t draft : {0, 2})
    for (int32_t rank : {3, 0}) {
      SCOPED_TRACE(testing::Message() << "draft " << draft << ", rank " << rank);
      RequestStyle style;
      style.rank = rank;
      EngineUnderTest test(layersWith(draft), asynchronous(4));
      Crossed crossed(test.engine, test.driver, test.kernels.layers(), style);
      crossed.run(200);
      for (DrivenRequest &request : crossed.all())
        for (size_t layer = 0; layer < 3; ++layer)
          EXPECT_LT(test.driver.stateError(request, layer), 0.15);
      decodeUntilLanded(test.engine,
                        [&] { test.driver.step({&crossed.all()[0]}); });
      EXPECT_EQ(underWay(test), 0);
    }
}

} // namespace
