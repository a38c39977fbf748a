//===- ConsolidatedCopiesTest.cpp - Hand-over while SVDs are under way ----===//
//
// In deterministic mode everything has the bits of a request that nobody copied,
// that never saw what it forgot, and that was alone.
//
//===----------------------------------------------------------------------===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

constexpr int32_t kBuffer = 8; // of threeLayers()

ss_engine_options deterministic(int32_t slots, int32_t every, int32_t lag) {
  ss_engine_options options = optionsFor(slots);
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidate_every = every;
  options.consolidation_lag = lag;
  options.dense_fallback = 0;
  return options;
}

/// Outputs of single tokens, [token].
std::vector<Outputs> tokensOf(EngineUnderTest &test, int32_t slot,
                              uint64_t seed, int64_t from, int32_t tokens) {
  std::vector<Outputs> all;
  for (int32_t i = 0; i < tokens; ++i)
    all.push_back(decode(test, slot, seed, from + i, 1, true));
  return all;
}

enum class Way { fork, restore };

/// Copies a request after `at` tokens to a slot whose former owner had results
/// under way too, and expects both to go on as the request did alone. The original
/// is freed after some tokens.
void expectCopyGoesOn(EngineUnderTest &test, Way way, int32_t at,
                      const std::vector<Outputs> &alone) {
  SCOPED_TRACE(testing::Message() << (way == Way::fork ? "fork" : "restore")
                                  << " after " << at);
  const int32_t left = int32_t(alone.size()) - at;
  const int32_t other = test.engine.allocateSlot();
  const int32_t original = test.engine.allocateSlot();
  (void)decode(test, original, 7, 0, at, true);
  (void)decode(test, other, 3, 0, 16 + at % kBuffer, true);
  const int32_t copy = test.engine.allocateSlot();
  (void)decode(test, copy, 4, 0, 17 + at % 5, true);
  if (way == Way::fork)
    test.engine.fork(original, copy);
  else
    test.engine.restore(copy, test.engine.snapshot(original));
  const int32_t together = at % 6;
  for (int32_t i = 0; i < left; ++i) {
    if (i == together)
      test.engine.freeSlot(original);
    if (i < together)
      ASSERT_EQ(decode(test, original, 7, at + i, 1, true), alone[size_t(at + i)])
          << "original, token " << at + i;
    ASSERT_EQ(decode(test, copy, 7, at + i, 1, true), alone[size_t(at + i)])
        << "copy, token " << at + i;
    if (i % 3 == 0)
      (void)decode(test, other, 3, test.engine.position(other), 1, true);
  }
  test.engine.freeSlot(copy);
  test.engine.freeSlot(other);
  if (left <= together)
    test.engine.freeSlot(original);
}

// At every token of a window: before its results are due, while they are under
// way, and behind them.
TEST(DeterministicCopies, GoOnWithTheBitsOfTheOriginal) {
  for (int32_t every : {1, 2})
    for (int32_t lag : {-1, 0}) {
      SCOPED_TRACE(testing::Message() << every << " " << lag);
      const ss_engine_options options = deterministic(3, every, lag);
      EngineUnderTest test(mixedLayers(1e-4), options, false);
      const int32_t first = 2 * kBuffer, window = every * kBuffer;
      const int32_t slot = test.engine.allocateSlot();
      const std::vector<Outputs> alone =
          tokensOf(test, slot, 7, 0, first + 2 * window + kBuffer + 1);
      test.engine.freeSlot(slot);
      EXPECT_GT(test.engine.statistics().components_removed, 0);
      for (int32_t at = first; at < first + window; ++at)
        for (Way way : {Way::fork, Way::restore})
          expectCopyGoesOn(test, way, at, alone);
    }
}

// A copy of a copy, before the first one has taken a token.
TEST(DeterministicCopies, CanBeCopiedThemselves) {
  EngineUnderTest test(threeLayers(0, 1e-4), deterministic(3, 1, -1), false);
  const int32_t a = test.engine.allocateSlot(), b = test.engine.allocateSlot();
  (void)decode(test, a, 7, 0, 21, true);
  test.engine.fork(a, b);
  const int32_t c = test.engine.allocateSlot();
  test.engine.restore(c, test.engine.snapshot(b));
  EXPECT_EQ(test.engine.snapshot(c), test.engine.snapshot(a));
  test.engine.freeSlot(b);
  const Outputs expected = decode(test, a, 7, 21, 30, true);
  EXPECT_EQ(decode(test, c, 7, 21, 30, true), expected);
  EXPECT_EQ(test.engine.snapshot(c), test.engine.snapshot(a));
}

// By any number of tokens that are in the buffers, of steps of one token and of
// drafts.
TEST(DeterministicRollback, EqualsNeverHavingDecodedTheTokens) {
  for (int32_t lag : {-1, 0, 3})
    for (int32_t draft : {0, 3}) {
      SCOPED_TRACE(testing::Message() << lag << " " << draft);
      EngineUnderTest test(threeLayers(draft, 1e-4), deterministic(1, 1, lag),
                           false);
      EngineUnderTest plain(threeLayers(draft, 1e-4), deterministic(1, 1, lag),
                            false);
      const int32_t a = test.engine.allocateSlot();
      const int32_t b = plain.engine.allocateSlot();
      std::mt19937 random(5);
      int64_t position = 0;
      for (int round = 0; round < 60; ++round) {
        const int32_t kept = 1 + int32_t(random() % 3);
        const Outputs expected = decode(plain, b, 7, position, kept, true);
        ASSERT_EQ(decode(test, a, 7, position, kept, true), expected) << round;
        position += kept;
        // Other tokens, of which all that can be forgotten are.
        const int32_t tried = 1 + int32_t(random() % 7);
        int32_t forgotten = 0;
        for (int32_t i = 0; i < tried; ++i) {
          (void)decode(test, a, 9, position + i, 1, true);
          if (test.engine.rollbackRoom(a) <= forgotten)
            break; // compacted: one token back would be one too many
          ++forgotten;
        }
        if (test.engine.position(a) != position + forgotten) {
          // Behind a compaction of tokens that were to be forgotten: begin anew.
          test.engine.resetSlot(a);
          (void)decode(test, a, 7, 0, int32_t(position), true);
          forgotten = 0;
        }
        test.engine.rollback(a, forgotten);
        // What comes before a token has come already, or will.
        if (lag != 0 && draft == 0)
          ASSERT_EQ(look(test, a), look(plain, b)) << round;
      }
      EXPECT_GT(plain.engine.statistics().components_removed, 0);
    }
}

// Steps of others, and waiting for them, land nothing of this request.
TEST(DeterministicStates, BetweenStepsDependOnNoOtherRequest) {
  for (int32_t lag : {-1, 0}) {
    EngineUnderTest busy(mixedLayers(1e-4), deterministic(2, 1, lag), false);
    EngineUnderTest alone(mixedLayers(1e-4), deterministic(2, 1, lag), false);
    const int32_t a = busy.engine.allocateSlot();
    const int32_t b = alone.engine.allocateSlot();
    const int32_t other = busy.engine.allocateSlot();
    for (int32_t token = 0; token < 40; ++token) {
      (void)decode(busy, a, 7, token, 1, true);
      (void)decode(alone, b, 7, token, 1, true);
      (void)decode(busy, other, 8, 2 * token, 2, true);
      if (token % 3 == 0)
        busy.engine.synchronize();
      ASSERT_EQ(look(busy, a), look(alone, b)) << token;
      ASSERT_EQ(busy.engine.snapshot(a), alone.engine.snapshot(b)) << token;
    }
    EXPECT_GT(alone.engine.statistics().components_removed, 0);
  }
}

} // namespace
