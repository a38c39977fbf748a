//===- RollbackTest.cpp - Several tokens in one call, and forgetting them -===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

#include <random>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

ss_result resultOf(const std::function<void()> &call) {
  try {
    call();
    return SS_OK;
  } catch (const Exception &e) {
    return e.code();
  }
}

TEST(Tokens, ACallOfManyTokensHasTheBitsOfSingleSteps) {
  EngineUnderTest one(threeLayers(0)), many(threeLayers(0));
  const int32_t a = one.engine.allocateSlot(), b = many.engine.allocateSlot();
  Outputs expected = decode(one, a, 7, 0, 61, true);
  Outputs chunks(expected.size());
  int64_t from = 0;
  for (int32_t tokens : {1, 5, 8, 3, 17, 2, 25}) {
    Outputs part = decode(many, b, 7, from, tokens);
    for (size_t i = 0; i < part.size(); ++i)
      chunks[i].insert(chunks[i].end(), part[i].begin(), part[i].end());
    from += tokens;
  }
  ASSERT_EQ(from, 61);
  EXPECT_EQ(chunks, expected);
  EXPECT_EQ(look(many, b), look(one, a));
  EXPECT_GT(many.engine.statistics().compactions, 0);
}

// Deferring a compaction to the next step changes no output of single steps.
TEST(Tokens, DraftsDeclaredChangeNoBitsOfSingleSteps) {
  EngineUnderTest without(threeLayers(0)), with(threeLayers(4));
  const int32_t a = without.engine.allocateSlot();
  const int32_t b = with.engine.allocateSlot();
  EXPECT_EQ(decode(with, b, 3, 0, 60, true),
            decode(without, a, 3, 0, 60, true));
}

// So does compacting before the token, and calls of several tokens have them too.
TEST(Tokens, CompactingBeforeThemChangesNoBits) {
  EngineUnderTest after(threeLayers(0)), one(mixedLayers()),
      many(mixedLayers());
  const int32_t a = after.engine.allocateSlot();
  const int32_t b = one.engine.allocateSlot();
  const int32_t c = many.engine.allocateSlot();
  int64_t from = 0;
  for (int32_t tokens : {1, 7, 1, 1, 9, 16, 2, 1, 21}) {
    const Outputs expected = decode(after, a, 3, from, tokens, true);
    ASSERT_EQ(decode(one, b, 3, from, tokens, true), expected) << from;
    ASSERT_EQ(decode(many, c, 3, from, tokens), expected) << from;
    ASSERT_EQ(look(many, c), look(one, b)) << from;
    from += tokens;
  }
  // Behind the last due token one has compacted already and the other will.
  const int64_t compacted = after.engine.statistics().compactions;
  EXPECT_GT(compacted, 0);
  EXPECT_LE(one.engine.statistics().compactions, compacted);
}

TEST(Tokens, RowsMayTakeDifferentNumbersOfTokens) {
  const LayerSpec layer = gdnLayer(1, 1, 8, 8);
  EngineUnderTest test({layer}, optionsFor(3));
  EngineUnderTest alone({layer}, optionsFor(3));
  const int32_t tokens = 6;
  const std::vector<int32_t> counts = {6, 0, 4};
  std::vector<float> k, v, gate, beta, y(3 * 6 * 8, NAN);
  std::vector<int32_t> slots;
  for (uint64_t row = 0; row < 3; ++row) {
    slots.push_back(test.engine.allocateSlot());
    alone.engine.allocateSlot();
    for (int64_t token = 0; token < tokens; ++token) {
      TokenValues t = RandomRequest(layer, row * 1009).token(token);
      k.insert(k.end(), t.k.begin(), t.k.end());
      v.insert(v.end(), t.v.begin(), t.v.end());
      gate.push_back(t.gate[0]);
      beta.push_back(t.beta[0]);
    }
  }
  ss_decode_args args = decodeArgs();
  args.batch = 3;
  args.slots = slots.data();
  args.q = args.k = {k.data(), 0};
  args.v = {v.data(), 0};
  args.gate = {gate.data(), 0};
  args.beta = {beta.data(), 0};
  args.a_log = test.driver.weights(0).aLog.data();
  args.dt_bias = test.driver.weights(0).dtBias.data();
  args.y = y.data();
  ss_token_args several = {};
  several.struct_size = sizeof several;
  several.tokens = tokens;
  several.row_tokens = counts.data();
  test.engine.beginStep(slots.data(), 3);
  test.engine.decodeTokens(0, args, several);
  test.engine.endStep(slots);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(test.engine.position(slots[row]), counts[row]);
    for (size_t i = size_t(counts[row]) * 8; i < 6 * 8; ++i)
      EXPECT_EQ(y[row * 48 + i], 0) << "a row's end is padding";
    if (counts[row] == 0)
      continue;
    (void)decode(alone, slots[row], row, 0, counts[row], true);
    EXPECT_EQ(test.engine.densify(0, slots[row]),
              alone.engine.densify(0, slots[row]));
  }
}

// Random drafts, verified in one call and partly forgotten: the same bits as a
// request that never saw what was forgotten.
TEST(Rollback, EqualsNeverHavingDecodedTheDrafts) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EngineUnderTest drafting(threeLayers(4)), plain(threeLayers(4));
    const int32_t a = drafting.engine.allocateSlot();
    const int32_t b = plain.engine.allocateSlot();
    std::mt19937 random{unsigned(seed)};
    int64_t position = 0;
    for (int round = 0; round < 40; ++round) {
      const int32_t drafted = 1 + int32_t(random() % 5);
      const int32_t kept = 1 + int32_t(random() % unsigned(drafted));
      Outputs all = decode(drafting, a, seed, position, drafted);
      ASSERT_GE(drafting.engine.rollbackRoom(a), drafted);
      drafting.engine.rollback(a, drafted - kept);
      Outputs expected = decode(plain, b, seed, position, kept);
      for (size_t i = 0; i < all.size(); ++i) {
        all[i].resize(expected[i].size());
        ASSERT_EQ(all[i], expected[i]) << "round " << round;
      }
      position += kept;
      ASSERT_EQ(look(drafting, a), look(plain, b)) << "round " << round;
    }
    EXPECT_GT(plain.engine.statistics().compactions, 0);
    // Every kept token counts, so that what follows is the same as well.
    EXPECT_EQ(decode(drafting, a, seed, position, 20, true),
              decode(plain, b, seed, position, 20, true));
  }
}

// All but the newest D + 1 tokens of a longer call are steps of one token each, and
// those are a call of their own.
TEST(Rollback, OfALongCallIsOfItsNewestTokens) {
  const int32_t draft = 3;
  for (int32_t before : {0, 5})
    for (int32_t tokens = draft + 2; tokens < 15; ++tokens)
      for (int32_t forgotten = 0; forgotten <= draft + 1; ++forgotten) {
        SCOPED_TRACE(testing::Message()
                     << before << " " << tokens << " " << forgotten);
        EngineUnderTest longer(threeLayers(draft)), parts(threeLayers(draft));
        const int32_t a = longer.engine.allocateSlot();
        const int32_t b = parts.engine.allocateSlot();
        (void)decode(longer, a, 7, 0, before, true);
        (void)decode(parts, b, 7, 0, before, true);
        (void)decode(longer, a, 7, before, tokens);
        ASSERT_GE(longer.engine.rollbackRoom(a), draft + 1);
        longer.engine.rollback(a, forgotten);
        const int32_t single = tokens - draft - 1, last = draft + 1 - forgotten;
        (void)decode(parts, b, 7, before, single, true);
        if (last > 0) {
          (void)decode(parts, b, 7, before + single, last);
          ASSERT_EQ(look(longer, a), look(parts, b));
        }
        const int64_t end = before + single + last;
        ASSERT_EQ(longer.engine.position(a), end);
        ASSERT_EQ(decode(longer, a, 7, end, 12, true),
                  decode(parts, b, 7, end, 12, true));
      }
}

TEST(Positions, HaveABound) {
  EngineUnderTest test(threeLayers(0));
  const int32_t slot = test.engine.allocateSlot();
  const int64_t most = int64_t(1) << 62;
  for (int64_t position : {most + 1, INT64_MAX}) {
    EXPECT_EQ(ss_slot_set_position(test.engine.get(), slot, position, nullptr),
              SS_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(ss_last_error()),
              "position " + std::to_string(position) + " of slot " +
                  std::to_string(slot) + ", expected at most 2^62");
    EXPECT_EQ(test.engine.position(slot), 0);
  }
  test.engine.setPosition(slot, most);
  EXPECT_EQ(test.engine.position(slot), most);
  const auto snapshot = test.engine.snapshot(slot);
  test.engine.restore(slot, snapshot);
  EXPECT_EQ(test.engine.snapshot(slot), snapshot);
}

// Other tokens in place of those forgotten; decays of the forgotten included.
TEST(Rollback, LeavesNothingOfOtherDrafts) {
  EngineUnderTest drafting(threeLayers(3)), plain(threeLayers(3));
  const int32_t a = drafting.engine.allocateSlot();
  const int32_t b = plain.engine.allocateSlot();
  for (int64_t position = 0; position < 40; ++position) {
    (void)decode(drafting, a, 99, position, 4);
    drafting.engine.rollback(a, 4);
    EXPECT_EQ(decode(drafting, a, 1, position, 1),
              decode(plain, b, 1, position, 1));
  }
  EXPECT_EQ(look(drafting, a), look(plain, b));
}

// A layer that compacts before its tokens can always forget the newest one, and
// never fewer than one that compacts after them.
TEST(Rollback, HasMoreRoomWhereCompactionWaitsForTheNextToken) {
  std::vector<LayerSpec> all = mixedLayers();
  all[0].before = true;
  EngineUnderTest waits(all), plain(all), after(threeLayers(0));
  const int32_t a = waits.engine.allocateSlot();
  const int32_t b = plain.engine.allocateSlot();
  const int32_t c = after.engine.allocateSlot();
  for (int64_t position = 0; position < 40; ++position) {
    (void)decode(waits, a, 99, position, 1);
    const int32_t room = waits.engine.rollbackRoom(a);
    ASSERT_GE(room, 1) << position;
    waits.engine.rollback(a, 1);
    (void)decode(waits, a, 1, position, 1);
    (void)decode(plain, b, 1, position, 1);
    (void)decode(after, c, 1, position, 1);
    ASSERT_GE(room, after.engine.rollbackRoom(c)) << position;
    ASSERT_EQ(look(waits, a), look(plain, b)) << position;
  }
  EXPECT_GT(waits.engine.statistics().compactions, 0);
}

TEST(Rollback, BeyondTheBufferIsAnErrorThatChangesNothing) {
  EngineUnderTest test(threeLayers(0), optionsFor(2));
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 11, true); // layer 1 has compacted after 11
  const Seen before = look(test, slot);
  EXPECT_EQ(test.engine.rollbackRoom(slot), 0);
  try {
    test.engine.rollback(slot, 1);
    FAIL() << "expected an error";
  } catch (const Exception &e) {
    EXPECT_EQ(e.code(), SS_NOT_IN_BUFFER);
    EXPECT_STREQ(e.what(),
                 "1 tokens to forget of slot 0, expected at most 0, what layer "
                 "'layer1' has not compacted: declare so many draft tokens in "
                 "the graph");
  }
  EXPECT_EQ(resultOf([&] { test.engine.rollback(slot, 12); }),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(resultOf([&] { test.engine.rollback(slot, -1); }),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(resultOf([&] { test.engine.rollback(1, 0); }),
            SS_INVALID_ARGUMENT);
  // In a batch one bad entry changes none.
  const int32_t other = test.engine.allocateSlot();
  (void)decode(test, other, 2, 0, 2, true);
  const std::vector<int32_t> slots = {other, slot}, tokens = {1, 1};
  EXPECT_EQ(ss_slot_rollback_batch(test.engine.get(), slots.data(),
                                   tokens.data(), 2, nullptr),
            SS_NOT_IN_BUFFER);
  EXPECT_EQ(test.engine.position(other), 2);
  EXPECT_EQ(look(test, slot), before);
}

TEST(Rollback, WithinAStepIsAnError) {
  EngineUnderTest test({gdnLayer(1, 1, 8, 8)});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 2);
  const LayerSpec &layer = test.kernels.layers()[0];
  TokenValues t = RandomRequest(layer, 1).token(2);
  ss_decode_args args = decodeArgs();
  std::vector<float> y(8);
  args.batch = 1;
  args.slots = &slot;
  args.q = {t.q.data(), 0}, args.k = {t.k.data(), 0}, args.v = {t.v.data(), 0};
  args.gate = {t.gate.data(), 0}, args.beta = {t.beta.data(), 0};
  args.a_log = test.driver.weights(0).aLog.data();
  args.dt_bias = test.driver.weights(0).dtBias.data();
  args.y = y.data();
  test.engine.beginStep(&slot, 1);
  test.engine.decodeLayer(0, args);
  EXPECT_EQ(resultOf([&] { test.engine.rollback(slot, 1); }),
            SS_INVALID_ARGUMENT);
  test.engine.endStep(&slot, 1);
  test.engine.rollback(slot, 3);
  EXPECT_EQ(test.engine.position(slot), 0);
  for (float value : test.engine.densify(0, slot))
    EXPECT_EQ(value, 0);
}

TEST(Rollback, ADenseLayerKeepsNothingToForget) {
  LayerSpec layer = gdnLayer(1, 1, 8, 8);
  layer.denseForm = true;
  EngineUnderTest test({layer});
  const int32_t slot = test.engine.allocateSlot();
  (void)decode(test, slot, 1, 0, 2, true);
  EXPECT_EQ(resultOf([&] { test.engine.rollback(slot, 1); }),
            SS_NOT_IN_BUFFER);
  test.engine.rollback(slot, 0);
  EXPECT_EQ(test.engine.position(slot), 2);
}

} // namespace
