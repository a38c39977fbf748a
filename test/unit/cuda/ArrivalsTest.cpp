//===- ArrivalsTest.cpp - Rows for slots with new owners, fake GPU --------===//
//
// What a slot's first steps ask nobody has foreseen, nor its next ones where its
// position changes. Memory for it has to be there whether or not there are more slots
// in use than before.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"

#include "capi/CheckedArguments.h"
#include "engine/MemoryParts.h"

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int64_t kLayers = 64, kHeads = 6, kDim = 8;
/// Of the blocks of a request's first step: two rows a state.
constexpr int64_t kFirstBytes = kLayers * kHeads * 2 * (2 * kDim + 1) * int64_t(sizeof(float));

/// All layers in one pool, compacting at the first token of a request: the blocks of
/// that are smaller than anybody else's. A chunk is shared by both slots.
std::vector<LayerSpec> eagerLayers(int32_t buffer) {
  LayerSpec layer = gdnLayer(kHeads, 3, kDim, kDim);
  layer.buffer = buffer;
  layer.phase = 1;
  layer.policyValue = 1e-2;
  return numbered(std::vector<LayerSpec>(kLayers, layer));
}

/// Two requests in a steady state, so long that memory holds what they have and
/// hardly more.
class Arrivals : public OnFakeGpu {
protected:
  struct Running : CudaUnderTest {
    /// The second one waits behind so many tokens, where these are not 0.
    Running(FakePackage &source, const ss_engine_options &options, int waits)
        : CudaUnderTest(source, options, false), source(source) {
      for (uint64_t seed = 0; seed < 2; ++seed)
        requests.push_back(request(source, seed));
      for (int token = 0; token < waits; ++token)
        driver.step({&requests[1]});
      for (int step = 0; step < 500; ++step)
        driver.step({&requests[0], waits > 0 ? nullptr : &requests[1]});
    }
    void steps(int count) {
      for (int step = 0; step < count; ++step)
        driver.step({&requests[0], &requests[1]});
    }
    /// Bytes that may be taken, and are in no chunk that is used.
    int64_t bytesToCome() const {
      const runtime::MemoryParts parts = engine.get()->engine->memoryParts();
      for (const runtime::MemoryPart &part : parts.list())
        if (part.purpose == runtime::purpose::kToCome)
          return part.bytes;
      return -1;
    }
    int32_t replaced() const { return requests[1].slot; }
    /// From here on `slot` has another request than the second one.
    void begin(int32_t slot) {
      requests[1] = DrivenRequest(source.layers(), 100, lowRankStyle());
      requests[1].slot = slot;
    }
    FakePackage &source;
    std::vector<DrivenRequest> requests;
  };

  /// Nothing is lost of a request that `arrive` makes the second one, or that has
  /// waited and goes on after it.
  template <typename Arrive>
  void expectRoomFor(const Arrive &arrive, int32_t buffer = 4, int waits = 0) {
    FakePackage source(eagerLayers(buffer));
    fake_set_granularity(4096);
    ss_engine_options options = cudaOptions(3);
    options.dense_fallback = 0;
    Running run(source, options, waits);
    ASSERT_LT(run.bytesToCome(), kFirstBytes);
    arrive(run);
    run.steps(8);
    EXPECT_EQ(run.engine.statistics().tightened, 0);
    run.engine.synchronize();
  }
};

TEST_F(Arrivals, InSlotsOfOthersHaveRoom) {
  expectRoomFor([](Running &run) {
    run.engine.freeSlot(run.replaced());
    run.begin(run.engine.allocateSlot());
  });
}

TEST_F(Arrivals, InSlotsThatAreResetHaveRoom) {
  expectRoomFor([](Running &run) {
    run.engine.resetSlot(run.replaced());
    run.begin(run.replaced());
  });
}

// Whose position changes is compacted when nobody has foreseen it: this one at once,
// with five pairs, where its blocks have room for one.
TEST_F(Arrivals, AtOtherPositionsHaveRoom) {
  expectRoomFor(
      [](Running &run) { run.engine.setPosition(run.requests[1].slot, 16); },
      /*buffer=*/8, /*waits=*/5);
}

// A slot that is handed out within a step has nothing from what its beginning mapped.
TEST_F(Arrivals, WithinAStepHaveRoom) {
  expectRoomFor([](Running &run) {
    DeviceArray<int32_t> none(run.engine, 1);
    none.copyIn({-1});
    run.engine.beginStep(none.data(), 1);
    run.engine.freeSlot(run.replaced());
    run.begin(run.engine.allocateSlot());
  });
}

} // namespace
