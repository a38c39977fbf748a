//===- ForkTest.cpp - Rows that forks share, on the CPU -------------------===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

// A fork takes no rows; a compaction of either side takes its own.
TEST(SharedRows, AreCopiedByTheFirstThatWrites) {
  EngineUnderTest test(threeLayers(0), optionsFor(3));
  const int32_t a = test.engine.allocateSlot();
  (void)decode(test, a, 1, 0, 40, true);
  const ss_statistics one = test.engine.statistics();
  EXPECT_EQ(one.shared_bytes, 0);
  const int32_t b = test.engine.allocateSlot();
  const int32_t c = test.engine.allocateSlot();
  test.engine.fork(a, b);
  test.engine.fork(b, c);
  const ss_statistics shared = test.engine.statistics();
  EXPECT_EQ(shared.allocated_bytes, one.allocated_bytes);
  EXPECT_EQ(shared.used_bytes, one.used_bytes);
  EXPECT_GT(shared.shared_bytes, 0);
  EXPECT_EQ(shared.shared_bytes % 2, 0); // two forks of the same rows
  const int64_t rows = shared.shared_bytes / 2;
  // 16 tokens: every layer has compacted.
  (void)decode(test, b, 2, 40, 16, true);
  EXPECT_EQ(test.engine.statistics().shared_bytes, rows); // a and c
  (void)decode(test, a, 3, 40, 16, true);
  EXPECT_EQ(test.engine.statistics().shared_bytes, 0);
  const Seen before = look(test, b);
  (void)decode(test, c, 4, 40, 16, true);
  EXPECT_EQ(look(test, b), before);
}

// Freed, reset, restored, initialised: whatever takes the rows from one owner
// leaves them to the other, and the last one gives them back.
TEST(SharedRows, OutliveTheirFirstOwner) {
  enum { Free, Reset, Restore, Fork, Init, kWays };
  for (int way = 0; way < kWays; ++way) {
    EngineUnderTest test(threeLayers(2, 0.05), optionsFor(3));
    const int32_t a = test.engine.allocateSlot();
    (void)decode(test, a, 1, 0, 43, true);
    const int32_t other = test.engine.allocateSlot();
    (void)decode(test, other, 5, 0, 21, true);
    const auto snapshot = test.engine.snapshot(other);
    const int32_t b = test.engine.allocateSlot();
    test.engine.fork(a, b);
    const Seen before = look(test, b);
    if (way == Free)
      test.engine.freeSlot(a);
    if (way == Reset)
      test.engine.resetSlot(a);
    if (way == Restore)
      test.engine.restore(a, snapshot);
    if (way == Fork)
      test.engine.fork(other, a);
    if (way == Init) {
      ss_dense_layout layout = {};
      layout.struct_size = sizeof layout;
      for (int32_t layer = 0; layer < 3; ++layer) {
        const std::vector<float> h = test.engine.densify(layer, other);
        check(ss_state_init(test.engine.get(), layer, &a, nullptr, 1, h.data(),
                            &layout, nullptr, nullptr));
      }
    }
    EXPECT_EQ(look(test, b), before) << way;
    EngineUnderTest plain(threeLayers(2, 0.05));
    const int32_t d = plain.engine.allocateSlot();
    (void)decode(plain, d, 1, 0, 43, true);
    EXPECT_EQ(decode(test, b, 1, 43, 40, true),
              decode(plain, d, 1, 43, 40, true))
        << way;
    for (int32_t slot : {a, b, other})
      if (way != Free || slot != a)
        test.engine.freeSlot(slot);
    // Nothing is left behind: tables alone.
    EngineUnderTest fresh(threeLayers(2, 0.05), optionsFor(3));
    EXPECT_EQ(test.engine.statistics().used_bytes,
              fresh.engine.statistics().used_bytes);
    EXPECT_EQ(test.engine.statistics().allocated_bytes,
              fresh.engine.statistics().allocated_bytes);
  }
}

// SVDs read rows on other threads while forks share, rewrite and leave them.
TEST(SharedRows, AreRightWhileConsolidationIsUnderWay) {
  for (auto mode :
       {SS_CONSOLIDATION_ASYNCHRONOUS, SS_CONSOLIDATION_DETERMINISTIC}) {
    ss_engine_options options = optionsFor(4);
    options.consolidation = mode;
    options.consolidate_every = 1;
    options.consolidation_threads = 2;
    EngineUnderTest test(threeLayers(0, 1e-4), options);
    std::vector<int32_t> slots;
    for (int i = 0; i < 4; ++i)
      slots.push_back(test.engine.allocateSlot());
    int64_t position = 0;
    for (int round = 0; round < 60; ++round) {
      (void)decode(test, slots[0], 1, position, 3, true);
      position += 3;
      const int32_t to = slots[size_t(1 + round % 3)];
      test.engine.fork(slots[0], to);
      const Seen source = look(test, slots[0]);
      EXPECT_EQ(look(test, to).states, source.states);
      // The others go on with other tokens, over rows that they share.
      for (int i = 1; i < 4; ++i)
        if (slots[size_t(i)] != to)
          (void)decode(test, slots[size_t(i)], uint64_t(10 * round + i),
                       test.engine.position(slots[size_t(i)]), 5, true);
      for (int32_t layer = 0; layer < 3; ++layer)
        for (int32_t slot : slots)
          for (int32_t status : test.engine.status(layer, slot))
            ASSERT_EQ(status, 0);
    }
    // The one that was forked from follows the recurrence all the same.
    EngineUnderTest exact(threeLayers(0, 1e-6));
    const int32_t d = exact.engine.allocateSlot();
    (void)decode(exact, d, 1, 0, int32_t(position), true);
    test.engine.synchronize();
    for (int32_t layer = 0; layer < 3; ++layer) {
      const auto found = test.engine.densify(layer, slots[0]);
      const auto expected = exact.engine.densify(layer, d);
      double error = 0, norm = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        error += (found[i] - expected[i]) * (found[i] - expected[i]);
        norm += expected[i] * expected[i];
      }
      EXPECT_LE(std::sqrt(error), 0.02 * std::sqrt(norm));
    }
  }
}

} // namespace
