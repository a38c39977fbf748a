//===- CpuCrossingsTest.cpp - Consolidation and hand-over on the CPU ------===//
//
// What changes states outside a step while SVDs of them are under way on other
// threads. test/unit/cuda/CrossingsTest.cpp has the same for GPUs.
//
//===----------------------------------------------------------------------===//

#include "EngineUnderTest.h"
#include "UntilLanded.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> layersWith(int32_t draft) {
  std::vector<LayerSpec> layers = {gdnLayer(4, 2, 24, 16),
                                   mamba2Layer(2, 1, 16, 24),
                                   kdaLayer(2, 2, 16, 16)};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].index = int32_t(i);
    layers[i].active = 2;
    layers[i].buffer = i == 1 ? 3 : 4;
    layers[i].draft = draft;
    layers[i].phase = int32_t(i) % layers[i].buffer;
    layers[i].policyValue = 1e-2;
  }
  // The last layer compacts behind its token: what it starts lands in no step
  // but the next.
  layers[0].before = true;
  return layers;
}

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

void initialise(Engine &engine, const std::vector<LayerSpec> &layers,
                int32_t slot) {
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerSpec &spec = layers[layer];
    std::vector<float> dense(size_t(spec.heads * spec.dv * spec.dk));
    for (int64_t head = 0; head < spec.heads; ++head)
      for (int64_t i = 0; i < 5; ++i)
        dense[size_t((head * spec.dv + i) * spec.dk + i)] = float(1 + i);
    const ss_dense_layout packed = {sizeof packed, 0, 0, 0, 0, 0};
    const ss_init_options options = {sizeof options, 1e-6f, 0};
    ASSERT_EQ(ss_state_init(engine.get(), int32_t(layer), &slot, nullptr, 1,
                            dense.data(), &packed, &options, nullptr),
              SS_OK)
        << ss_last_error();
  }
}

/// All heads from another slot, first the upper half of every layer.
void joinHalves(Engine &engine, const std::vector<LayerSpec> &layers,
                int32_t slot, int32_t other) {
  const auto bytes = engine.snapshot(other);
  std::vector<ss_head_range> lower, upper;
  for (const LayerSpec &layer : layers) {
    const int32_t half = layer.heads / 2;
    lower.push_back({0, 0, half});
    upper.push_back({half, half, half});
  }
  engine.resetSlot(slot);
  engine.restoreHeads(slot, bytes, upper);
  engine.restoreHeads(slot, bytes, lower);
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

/// Four requests and what is done to them between steps.
struct Everything {
  Everything(std::vector<LayerSpec> layers, RequestStyle style)
      : style(std::move(style)), test(std::move(layers), asynchronous(4)) {
    for (int i = 0; i < 4; ++i)
      requests.push_back(fresh(test.engine.allocateSlot()));
  }
  DrivenRequest fresh(int32_t slot) {
    DrivenRequest request(test.kernels.layers(), ++seed, style);
    request.slot = slot;
    return request;
  }
  /// The oracle of `to` becomes that of `from`.
  void equate(size_t from, size_t to) {
    const int32_t slot = requests[to].slot;
    requests[to] = requests[from];
    requests[to].slot = slot;
  }
  void rollBack(DrivenRequest &request) {
    const DrivenRequest before = request;
    test.driver.step({&request});
    if (test.engine.rollbackRoom(request.slot) < 1)
      return;
    test.engine.rollback(request.slot, 1);
    request = before;
  }
  void change(unsigned which, size_t from, size_t to) {
    Engine &engine = test.engine;
    DrivenRequest &request = requests[to];
    switch (which) {
    case 0:
      engine.resetSlot(request.slot);
      request = fresh(request.slot);
      break;
    case 1:
      engine.fork(requests[from].slot, request.slot);
      equate(from, to);
      break;
    case 2:
      engine.restore(request.slot, engine.snapshot(requests[from].slot));
      equate(from, to);
      break;
    case 3:
      engine.freeSlot(request.slot);
      request = fresh(engine.allocateSlot());
      break;
    case 4:
      joinHalves(engine, test.kernels.layers(), request.slot,
                 requests[from].slot);
      equate(from, to);
      break;
    default:
      rollBack(request);
    }
  }

  RequestStyle style;
  uint64_t seed = 100;
  EngineUnderTest test;
  std::vector<DrivenRequest> requests;
};

TEST(Crossings, EverythingBesideSvdsKeepsStatesRight) {
  for (int32_t draft : {0, 2})
    for (int32_t rank : {3, 0}) {
      SCOPED_TRACE(testing::Message() << "draft " << draft << ", rank " << rank);
      RequestStyle style;
      style.rank = rank;
      Everything all(layersWith(draft), style);
      std::mt19937 random(7);
      for (int step = 0; step < 200; ++step) {
        const size_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
        if (step % 4 == 1)
          all.test.driver.step({&all.requests[first]});
        else
          all.test.driver.step({&all.requests[first], &all.requests[second]});
        if (step % 3 == 2)
          all.change(random() % 7, first, second);
        if (step % 7 == 6)
          all.test.engine.synchronize();
      }
      all.test.engine.synchronize();
      for (DrivenRequest &request : all.requests)
        for (size_t layer = 0; layer < 3; ++layer)
          EXPECT_LT(all.test.driver.stateError(request, layer), 0.15);
      decodeUntilLanded(all.test.engine,
                        [&] { all.test.driver.step({&all.requests[0]}); });
      EXPECT_EQ(underWay(all.test), 0);
    }
}

} // namespace
