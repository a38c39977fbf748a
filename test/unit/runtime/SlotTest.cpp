//===- SlotTest.cpp - Slots change their owners ---------------------------===//

#include "EngineUnderTest.h"

#include "engine/Engine.h"

#include <gtest/gtest.h>

#include <limits>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> twoLayers() {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 16, 24),
                                   mamba2Layer(2, 1, 16, 24)};
  layers[1].name = "layer1";
  layers[1].denseForm = true;
  return layers;
}

std::vector<std::vector<std::vector<float>>> run(EngineUnderTest &test,
                                                 DrivenRequest &request,
                                                 int steps) {
  std::vector<std::vector<std::vector<float>>> outputs;
  for (int step = 0; step < steps; ++step)
    outputs.push_back(test.driver.step({&request}).y);
  return outputs;
}

/// Leaves NaN in rows, weights, buffers and dense states of a slot.
void poison(EngineUnderTest &test, int32_t slot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int step = 0; step < 19; ++step) {
    for (size_t i = 0; i < test.kernels.layers().size(); ++i) {
      const LayerSpec &layer = test.kernels.layers()[i];
      std::vector<float> bad(4096, nan);
      ss_decode_args args = decodeArgs();
      args.batch = 1;
      args.slots = &slot;
      for (ss_input *in : {&args.q, &args.k, &args.v, &args.gate, &args.beta})
        *in = {bad.data(), 0};
      args.a_log = args.dt_bias = bad.data();
      std::vector<float> y(size_t(layer.valueFloats()));
      args.y = y.data();
      test.engine.decodeLayer(int32_t(i), args);
    }
    test.engine.endStep({slot});
  }
}

TEST(Slots, AFreedSlotComesBackClean) {
  EngineUnderTest test(twoLayers());
  DrivenRequest expected = test.request(5);
  auto fresh = run(test, expected, 30);
  test.engine.freeSlot(expected.slot);

  DrivenRequest bad = test.request(6);
  poison(test, bad.slot);
  test.engine.freeSlot(bad.slot);

  DrivenRequest again = test.request(5);
  EXPECT_EQ(again.slot, bad.slot);
  EXPECT_EQ(test.engine.status(0, again.slot), (std::vector<int32_t>{0, 0}));
  for (float value : test.engine.densify(0, again.slot))
    ASSERT_EQ(value, 0.0f);
  for (float value : test.engine.densify(1, again.slot))
    ASSERT_EQ(value, 0.0f);
  EXPECT_EQ(run(test, again, 30), fresh);
}

TEST(Slots, AResetSlotIsAFreshOne) {
  EngineUnderTest test(twoLayers());
  DrivenRequest request = test.request(5);
  auto fresh = run(test, request, 21);
  poison(test, request.slot);
  test.engine.resetSlot(request.slot);
  DrivenRequest again(test.kernels.layers(), 5);
  again.slot = request.slot;
  EXPECT_EQ(run(test, again, 21), fresh);
}

// The tables themselves: whatever bytes are there, rank 0 and count 0 mean
// the zero state.
TEST(Slots, AFreshSlotIsZeroWhateverBytesItsMemoryHolds) {
  KernelSet kernels({gdnLayer(2, 1, 16, 24)});
  auto package = runtime::Package::fromMemory(kernels.manifest(),
                                              &KernelSet::lookup, &kernels);
  runtime::Engine engine(package, optionsFor(1));
  runtime::LayerState &layer = engine.layerState(0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(layer.bufferK.data(), layer.layout().bufferKFloats, nan);
  std::fill_n(layer.bufferU.data(), layer.layout().bufferUFloats, nan);
  std::fill_n(layer.bufferG.data(), layer.layout().bufferGFloats, nan);
  runtime::RowBlock block = layer.pool().allocate(8);
  std::fill_n(reinterpret_cast<float *>(layer.pool().rows()), 8 * 40, nan);
  std::fill_n(layer.pool().weights(), 8, nan);
  layer.pool().free(block);
  layer.rank[0] = 8, layer.status[1] = 1, layer.count[0] = 3;

  int32_t slot = engine.allocateSlot(nullptr);
  std::vector<float> state(2 * 16 * 24, nan);
  engine.densify(0, slot, state.data());
  for (float value : state)
    EXPECT_EQ(value, 0.0f);
  EXPECT_EQ(layer.status[1], 0);
}

TEST(Slots, AllSlotsCanBeOwnedAndNoMore) {
  EngineUnderTest test(twoLayers(), optionsFor(3));
  std::vector<int32_t> slots;
  for (int i = 0; i < 3; ++i)
    slots.push_back(test.engine.allocateSlot());
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(slots, (std::vector<int32_t>{0, 1, 2}));
  int32_t slot = 77;
  EXPECT_EQ(ss_slot_alloc(test.engine.get(), &slot, nullptr),
            SS_SLOTS_EXHAUSTED);
  EXPECT_EQ(slot, 77);
  EXPECT_STREQ(ss_last_error(), "all 3 slots have owners: free one first or "
                                "create the engine with more");
  test.engine.freeSlot(1);
  EXPECT_EQ(test.engine.allocateSlot(), 1);
}

TEST(Slots, AnOwnerFreesItsSlotAtTheEndOfItsLife) {
  EngineUnderTest test(twoLayers());
  int32_t index;
  {
    Slot slot(test.engine);
    index = slot.index();
    EXPECT_THROW(Slot(test.engine).index(), Exception);
    Slot moved(std::move(slot));
    EXPECT_EQ(moved.index(), index);
  }
  EXPECT_EQ(Slot(test.engine).index(), index);
}

} // namespace
