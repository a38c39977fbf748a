//===- CancelStepTest.cpp - Steps that are given up -----------------------===//
//
// On both devices: what a step that was given up has changed is to be reset, and is
// nothing else's concern.
//
//===----------------------------------------------------------------------===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

#include <functional>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Three requests, of which two have decoded; a third slot is fresh.
class CancelledSteps : public testing::Test {
protected:
  explicit CancelledSteps()
      : test(threeLayers(0), optionsFor(3), false),
        first(test.kernels.layers(), 1), second(test.kernels.layers(), 2) {
    first.slot = test.engine.allocateSlot();
    second.slot = test.engine.allocateSlot();
    fresh = test.engine.allocateSlot();
    for (int step = 0; step < 11; ++step)
      test.driver.step({&first, &second});
    before = look(test, second.slot);
    snapshot = test.engine.snapshot(second.slot);
  }

  /// Begins a step of the first request and decodes some layers of it.
  void begin(size_t layers) {
    test.driver.step({&first}); // the arrays are those of a batch of one
    test.engine.beginStep(&first.slot, 1);
    for (size_t layer = 0; layer < layers; ++layer)
      test.driver.enqueueLayer(1, layer, nullptr);
  }

  void expectLeft(ss_result result, int32_t slot) {
    EXPECT_EQ(result, SS_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(ss_last_error()),
              "slot " + std::to_string(slot) +
                  " is of a step that was given up, expected ss_slot_reset or "
                  "ss_slot_free first: its states are of no token");
  }

  /// Whatever the first request's slot is used for.
  void expectNothingIsDoneWith(int32_t slot) {
    ss_engine *engine = test.engine.get();
    size_t bytes = 0;
    const int32_t none = 0;
    const ss_dense_layout layout = {sizeof layout, 0, 0, 0, 0, 0};
    std::vector<float> dense(test.engine.densify(0, second.slot));
    const std::vector<std::function<ss_result()>> uses = {
        [&] { return ss_snapshot_size(engine, slot, &bytes, nullptr); },
        [&] {
          return ss_snapshot_restore(engine, slot, snapshot.data(),
                                     snapshot.size(), nullptr);
        },
        [&] {
          return ss_snapshot_restore_heads(engine, slot, snapshot.data(),
                                           snapshot.size(), nullptr, 0, nullptr);
        },
        [&] { return ss_slot_fork(engine, slot, fresh, nullptr); },
        [&] { return ss_slot_fork(engine, second.slot, slot, nullptr); },
        [&] { return ss_slot_rollback(engine, slot, 0, nullptr); },
        [&] {
          return ss_slot_rollback_batch(engine, &slot, &none, 1, nullptr);
        },
        [&] { return ss_slot_set_position(engine, slot, 99, nullptr); },
        [&] {
          return ss_state_densify_to(engine, 0, &slot, nullptr, 1, dense.data(),
                                     &layout, nullptr);
        },
        [&] {
          return ss_state_init(engine, 0, &slot, nullptr, 1, dense.data(),
                               &layout, nullptr, nullptr);
        }};
    for (const auto &use : uses)
      expectLeft(use(), slot);
#ifdef SS_ON_FAKE_GPU
    expectLeft(ss_slot_set_rounding_key(engine, slot, 5, nullptr), slot);
    test.engine.beginStep(&slot, 1);
    test.driver.enqueueLayers(1, nullptr);
    test.engine.endStep(&slot, 1);
    EXPECT_EQ(ss_engine_synchronize(engine, nullptr), SS_INVALID_ARGUMENT);
    EXPECT_STREQ(ss_last_error(),
                 "a batch named a slot of a step that was given up, expected "
                 "ss_slot_reset or ss_slot_free first: its states are of no token");
#else
    try {
      test.driver.enqueueLayer(1, 0, nullptr);
      ADD_FAILURE() << "a step goes on that was given up";
    } catch (const Exception &error) {
      expectLeft(error.code(), slot);
    }
    expectLeft(ss_end_step(engine, &slot, 1, nullptr), slot);
#endif
  }

  void expectTheOthersAreAsBefore() {
    EXPECT_EQ(look(test, second.slot), before);
    EXPECT_EQ(test.engine.snapshot(second.slot), snapshot);
    test.engine.fork(second.slot, fresh);
    EXPECT_EQ(look(test, fresh), before);
    test.engine.rollback(second.slot, 0);
    test.engine.setPosition(second.slot, 11);
    test.engine.resetSlot(fresh);
  }

  /// Like a request that has never been.
  void expectFresh(int32_t slot) {
    EXPECT_EQ(test.engine.position(slot), 0);
    EngineUnderTest other(threeLayers(0), optionsFor(3), false);
    const int32_t there = other.engine.allocateSlot();
    EXPECT_EQ(decode(test, slot, 7, 0, 20, true),
              decode(other, there, 7, 0, 20, true));
    EXPECT_EQ(look(test, slot), look(other, there));
    EXPECT_EQ(ss_engine_synchronize(test.engine.get(), nullptr), SS_OK);
  }

  EngineUnderTest test;
  DrivenRequest first, second;
  int32_t fresh = -1;
  Seen before;
  std::vector<std::byte> snapshot;
};

TEST_F(CancelledSteps, BeforeAnyLayerHaveNotBeen) {
  begin(0);
  const Seen mine = look(test, first.slot);
  test.engine.cancelStep();
  test.engine.cancelStep();
  EXPECT_EQ(look(test, first.slot), mine);
  expectTheOthersAreAsBefore();
  size_t bytes = 0;
  EXPECT_EQ(ss_snapshot_size(test.engine.get(), first.slot, &bytes, nullptr),
            SS_OK);
  test.driver.step({&first});
  EXPECT_EQ(ss_engine_synchronize(test.engine.get(), nullptr), SS_OK);
  EXPECT_EQ(test.engine.position(first.slot), mine.position + 1);
}

TEST_F(CancelledSteps, LeaveTheirSlotsToBeReset) {
  for (size_t layers = 1; layers <= 3; ++layers) {
    begin(layers);
    test.engine.cancelStep();
    expectTheOthersAreAsBefore();
    expectNothingIsDoneWith(first.slot);
    test.engine.resetSlot(first.slot);
    expectFresh(first.slot);
    expectTheOthersAreAsBefore();
  }
}

TEST_F(CancelledSteps, LeaveTheirSlotsToBeFreed) {
  begin(2);
  test.engine.cancelStep();
  test.engine.freeSlot(first.slot);
  const int32_t again = test.engine.allocateSlot();
  EXPECT_EQ(again, first.slot);
  expectFresh(again);
}

TEST_F(CancelledSteps, AreThoseThatAreBegunAgain) {
  begin(2);
  test.engine.beginStep(&first.slot, 1);
  test.engine.cancelStep();
  expectNothingIsDoneWith(first.slot);
  expectTheOthersAreAsBefore();
  test.engine.resetSlot(first.slot);
  expectFresh(first.slot);
}

TEST_F(CancelledSteps, OfSeveralTokensLeaveTheirSlotsToo) {
  (void)decode(test, first.slot, 3, 40, 2);
  begin(0);
  const LayerSpec &layer = test.kernels.layers()[0];
  std::vector<float> zeros(size_t(2 * (layer.keyFloats() + layer.valueFloats() +
                                       layer.gateFloats() + layer.heads)));
  std::vector<float> y(size_t(2 * layer.valueFloats()));
  ss_decode_args args = decodeArgs();
  args.batch = 1;
  args.slots = &first.slot;
  args.q = args.k = args.v = args.gate = args.beta = {zeros.data(), 0};
  args.a_log = test.driver.weights(0).aLog.data();
  args.dt_bias = test.driver.weights(0).dtBias.data();
  args.y = y.data();
  ss_token_args tokens = {};
  tokens.struct_size = sizeof tokens;
  tokens.tokens = 2;
  test.engine.decodeTokens(0, args, tokens);
  test.engine.cancelStep();
  expectNothingIsDoneWith(first.slot);
  expectTheOthersAreAsBefore();
  test.engine.resetSlot(first.slot);
  expectFresh(first.slot);
}

} // namespace
