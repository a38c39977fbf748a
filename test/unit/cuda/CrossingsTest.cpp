//===- CrossingsTest.cpp - Pools, consolidation and hand-over together ----===//
//
// What changes states outside a step, during a slow consolidation of them, in
// steps that are replayed graphs with compactions beside decodes. The rows are
// in pools, so that they move, and some states go dense.
//
//===----------------------------------------------------------------------===//

#include "Crossings.h"
#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include <algorithm>
#include <functional>
#include <optional>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> layersWith(int32_t draft) { return crossingLayers(draft, 2); }

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

TEST_F(CudaCrossings, EverythingBesideReplayedGraphsKeepsStatesRight) {
  for (int32_t draft : {0, 2})
    for (int32_t rank : {3, 0}) {
      SCOPED_TRACE(testing::Message() << "draft " << draft << ", rank " << rank);
      FakePackage package(layersWith(draft));
      RequestStyle style;
      style.rank = rank;
      CudaUnderTest cuda(package, asynchronous(cudaOptions(6)));
      GraphReplay graphs(cuda.driver);
      Crossed crossed(cuda.engine, cuda.driver, package.layers(), style);
      crossed.run(160);
      for (DrivenRequest &request : crossed.all())
        for (size_t layer = 0; layer < package.layers().size(); ++layer)
          EXPECT_LT(cuda.driver.stateError(request, layer), 0.15);
      EXPECT_EQ(fake_forbidden_calls(), 0);
      if (rank > 0)
        decodeUntilLanded(cuda.engine,
                          [&] { cuda.driver.step({&crossed.all()[0]}); });
      const ss_statistics s = cuda.engine.statistics();
      if (rank <= 0)
        EXPECT_GT(s.went_dense, 0);
      expectClosed(s);
    }
}

} // namespace
