//===- CrossingsTest.cpp - Pools, consolidation and hand-over together ----===//
//
// What changes states outside a step, during a slow consolidation of them, in
// steps that are replayed graphs with compactions beside decodes. The rows are
// in pools, so that they move, and some states go dense.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

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
  layers[2].before = true;
  return layers;
}

ss_engine_options asynchronous(ss_engine_options options) {
  options.consolidation = SS_CONSOLIDATION_ASYNCHRONOUS;
  options.consolidate_every = 1;
  return options;
}

void expectClosed(const ss_statistics &s) {
  EXPECT_EQ(s.consolidations_started,
            s.consolidations_landed + s.consolidations_dropped);
}

using Change = std::function<void(Engine &, int32_t slot, int32_t other)>;

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

class CudaCrossings : public OnFakeGpu {
protected:
  FakePackage source{layersWith(0)};
};

TEST_F(CudaCrossings, NoResultOfFormerRowsLandsAfterTheyWereReplaced) {
  const std::vector<LayerSpec> layers = source.layers();
  const std::pair<const char *, Change> changes[] = {
      {"reset", [](Engine &e, int32_t slot, int32_t) { e.resetSlot(slot); }},
      {"fork", [](Engine &e, int32_t slot, int32_t other) { e.fork(other, slot); }},
      {"restore",
       [](Engine &e, int32_t slot, int32_t other) {
         e.restore(slot, e.snapshot(other));
       }},
      {"init",
       [&](Engine &e, int32_t slot, int32_t) { initialise(e, layers, slot); }},
      {"another owner",
       [](Engine &e, int32_t slot, int32_t other) {
         e.freeSlot(slot);
         e.tend(); // its rows are released here
         ASSERT_EQ(e.allocateSlot(), slot);
         e.fork(other, slot);
       }}};
  for (const auto &[name, change] : changes) {
    SCOPED_TRACE(name);
    CudaUnderTest cuda(source, asynchronous(cudaOptions(3)), false);
    DrivenRequest other = cuda.request(source, 50);
    for (int step = 0; step < 14; ++step)
      cuda.driver.step({&other});
    cuda.engine.synchronize();
    DrivenRequest request = cuda.request(source, 1);
    HeldCalls held("cuMemcpyDtoHAsync"); // a slow consolidation
    held.decodeUntilReached(cuda, request);
    change(cuda.engine, request.slot, other.slot);
    const auto expected = cuda.engine.snapshot(request.slot);
    const auto others = cuda.engine.snapshot(other.slot);
    held.release();
    cuda.engine.synchronize(); // all that may land has landed
    EXPECT_EQ(cuda.engine.snapshot(request.slot), expected);
    EXPECT_EQ(cuda.engine.snapshot(other.slot), others);
    EXPECT_GT(cuda.engine.statistics().consolidations_dropped, 0);
    expectClosed(cuda.engine.statistics());
  }
}

// A job whose slot is freed before it is read: the memory of its rows may be
// unmapped by then.
TEST_F(CudaCrossings, FreedRowsOfAllSlotsAreNotReadAnyMore) {
  CudaUnderTest cuda(source, asynchronous(cudaOptions(2)), false);
  for (uint64_t round = 0; round < 5; ++round) {
    DrivenRequest request = cuda.request(source, round);
    HeldCalls held("ss_gather");
    held.decodeUntilReached(cuda, request);
    cuda.engine.freeSlot(request.slot);
    for (int call = 0; call < 80; ++call)
      cuda.engine.tend(); // unmaps what it may: no state is left
    held.release();
    cuda.engine.synchronize();
  }
  expectClosed(cuda.engine.statistics());
}

// Within a step the device has not been told what was compacted in it.
TEST_F(CudaCrossings, ASynchronizationWithinAStepLandsNothing) {
  CudaUnderTest cuda(source, asynchronous(cudaOptions(1)));
  DrivenRequest request = cuda.request(source, 3);
  bool within = false;
  std::optional<HeldCalls> held;
  cuda.driver.setSubmit([&](size_t batch) {
    if (!within)
      return cuda.driver.enqueue(batch, nullptr);
    // The pieces of enqueue(), with a synchronization in the middle.
    DeviceArray<int32_t> slots(cuda.engine, 1);
    slots.copyIn({request.slot});
    cuda.engine.beginStep(slots.data(), 1);
    cuda.driver.enqueueLayers(batch, nullptr);
    held->release();
    const int64_t before = cuda.engine.statistics().consolidations_landed;
    cuda.engine.synchronize();
    EXPECT_EQ(cuda.engine.statistics().consolidations_landed, before);
    cuda.engine.endStep(slots.data(), 1);
  });
  for (int round = 0; round < 8; ++round) {
    held.emplace("cuMemcpyDtoHAsync");
    for (int step = 0; step < 9 + round; ++step)
      cuda.driver.step({&request});
    within = true;
    cuda.driver.step({&request});
    within = false;
    held->release();
    cuda.engine.synchronize();
  }
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
  expectClosed(cuda.engine.statistics());
}

//===----------------------------------------------------------------------===//
// Everything at once, in graphs
//===----------------------------------------------------------------------===//

struct Everything {
  Everything(FakePackage &source, const ss_engine_options &options,
             RequestStyle style)
      : source(source), style(std::move(style)), cuda(source, options),
        graphs(cuda.driver) {
    for (int i = 0; i < 4; ++i)
      requests.push_back(fresh(cuda.engine.allocateSlot()));
  }
  DrivenRequest fresh(int32_t slot) {
    DrivenRequest request(source.layers(), ++seed, style);
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
    cuda.driver.step({&request});
    if (cuda.engine.rollbackRoom(request.slot) < 1)
      return;
    cuda.engine.rollback(request.slot, 1);
    request = before;
  }
  void change(unsigned which, size_t from, size_t to) {
    Engine &engine = cuda.engine;
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
      engine.tend();
      request = fresh(engine.allocateSlot());
      break;
    default:
      rollBack(request);
    }
  }

  FakePackage &source;
  RequestStyle style;
  uint64_t seed = 100;
  CudaUnderTest cuda;
  GraphReplay graphs;
  std::vector<DrivenRequest> requests;
};

TEST_F(CudaCrossings, EverythingBesideReplayedGraphsKeepsStatesRight) {
  for (int32_t draft : {0, 2})
    for (int32_t rank : {3, 0}) {
      SCOPED_TRACE(testing::Message() << "draft " << draft << ", rank " << rank);
      FakePackage package(layersWith(draft));
      RequestStyle style;
      style.rank = rank;
      Everything all(package, asynchronous(cudaOptions(6)), style);
      std::mt19937 random(7);
      for (int step = 0; step < 160; ++step) {
        all.cuda.engine.tend();
        const size_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
        if (step % 4 == 1)
          all.cuda.driver.step({&all.requests[first]});
        else
          all.cuda.driver.step({&all.requests[first], &all.requests[second]});
        if (step % 3 == 2)
          all.change(random() % 6, first, second);
        if (step % 7 == 6)
          all.cuda.engine.synchronize();
      }
      all.cuda.engine.synchronize();
      for (DrivenRequest &request : all.requests)
        for (size_t layer = 0; layer < package.layers().size(); ++layer)
          EXPECT_LT(all.cuda.driver.stateError(request, layer), 0.15);
      EXPECT_EQ(fake_forbidden_calls(), 0);
      if (rank > 0)
        decodeUntilLanded(all.cuda.engine,
                          [&] { all.cuda.driver.step({&all.requests[0]}); });
      const ss_statistics s = all.cuda.engine.statistics();
      if (rank <= 0)
        EXPECT_GT(s.went_dense, 0);
      expectClosed(s);
    }
}

} // namespace
