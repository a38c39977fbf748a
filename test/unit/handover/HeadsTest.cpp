//===- HeadsTest.cpp - Shares of the heads for another parallel width -----===//

#include "HandOverUnderTest.h"

#include <gtest/gtest.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Layers with `part` of `parts` of the heads of `layers`.
std::vector<LayerSpec> shareOf(std::vector<LayerSpec> layers, int32_t parts) {
  for (LayerSpec &layer : layers) {
    layer.heads /= parts;
    layer.keyHeads = std::max(1, layer.keyHeads / parts);
  }
  return layers;
}

std::vector<LayerSpec> wholeLayers() {
  std::vector<LayerSpec> layers = {gdnLayer(4, 2, 16, 24),
                                   mamba2Layer(4, 1, 24, 16),
                                   kdaLayer(2, 2, 16, 16)};
  layers.push_back(gdnLayer(2, 2, 8, 16));
  layers.back().denseForm = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = "layer" + std::to_string(i);
    layers[i].phase = layers[i].denseForm ? 0 : int32_t(3 * i);
    layers[i].policyValue = 1e-2;
  }
  return layers;
}

/// Decodes one token of a request of the whole model in an engine that has
/// part `part` of the heads; y is that part of the whole's.
Outputs decodePart(EngineUnderTest &test, const std::vector<LayerSpec> &whole,
                   int32_t slot, int64_t token, int32_t part) {
  Outputs outputs(whole.size());
  // As long as the step runs.
  std::vector<TokenValues> tokens(whole.size());
  std::vector<LayerWeights> allWeights(whole.size());
  test.engine.beginStep(&slot, 1);
  for (size_t i = 0; i < whole.size(); ++i) {
    const LayerSpec &mine = test.kernels.layers()[i];
    const TokenValues &t = tokens[i] = RandomRequest(whole[i], 77 + i).token(token);
    const LayerWeights &weights = allWeights[i] = randomWeights(whole[i], i);
    const size_t head = size_t(part * mine.heads);
    const size_t keyHead =
        head / size_t(whole[i].heads / whole[i].keyHeads);
    const size_t perHead = whole[i].channelDecay() ? size_t(mine.dk) : 1;
    outputs[i].resize(size_t(mine.valueFloats()));
    ss_decode_args args = decodeArgs();
    args.batch = 1;
    args.slots = &slot;
    args.q = {t.q.data() + keyHead * size_t(mine.dk), 0};
    args.k = {t.k.data() + keyHead * size_t(mine.dk), 0};
    args.v = {t.v.data() + head * size_t(mine.dv), 0};
    args.gate = {t.gate.data() + head * perHead, 0};
    if (mine.hasBeta())
      args.beta = {t.beta.data() + head, 0};
    args.a_log = weights.aLog.data() + head;
    args.dt_bias = weights.dtBias.data() + head * perHead;
    args.y = outputs[i].data();
    test.engine.decodeLayer(int32_t(i), args);
  }
  test.engine.endStep(&slot, 1);
  (void)test.engine.position(slot); // waits for all of it
  return outputs;
}

Outputs joined(const Outputs &left, const Outputs &right) {
  Outputs both = left;
  for (size_t i = 0; i < both.size(); ++i)
    both[i].insert(both[i].end(), right[i].begin(), right[i].end());
  return both;
}

std::vector<ss_head_range> ranges(const std::vector<LayerSpec> &counted,
                                  int32_t from, int32_t to) {
  std::vector<ss_head_range> all;
  for (const LayerSpec &layer : counted)
    all.push_back({from * layer.heads, to * layer.heads, layer.heads});
  return all;
}

// One engine hands over to two with half the heads each, in the middle of the
// buffers; together they go on with its bits.
TEST(Heads, TwoHalvesEqualTheWhole) {
  const std::vector<LayerSpec> whole = wholeLayers();
  EngineUnderTest one(whole);
  EngineUnderTest left(shareOf(whole, 2)), right(shareOf(whole, 2));
  const int32_t slot = one.engine.allocateSlot();
  int64_t token = 0;
  for (; token < 37; ++token)
    (void)decodePart(one, whole, slot, token, 0);
  const auto bytes = one.engine.snapshot(slot);
  const int32_t a = left.engine.allocateSlot(), b = right.engine.allocateSlot();
  const auto &half = left.kernels.layers();
  left.engine.restoreHeads(a, bytes, ranges(half, 0, 0));
  right.engine.restoreHeads(b, bytes, ranges(half, 1, 0));
  for (; token < 100; ++token)
    ASSERT_EQ(joined(decodePart(left, whole, a, token, 0),
                     decodePart(right, whole, b, token, 1)),
              decodePart(one, whole, slot, token, 0))
        << token;
}

TEST(Heads, TwoHalvesJoinToTheWhole) {
  const std::vector<LayerSpec> whole = wholeLayers();
  EngineUnderTest one(whole), other(whole);
  EngineUnderTest left(shareOf(whole, 2)), right(shareOf(whole, 2));
  const int32_t slot = one.engine.allocateSlot();
  const int32_t a = left.engine.allocateSlot(), b = right.engine.allocateSlot();
  int64_t token = 0;
  for (; token < 45; ++token) {
    (void)decodePart(left, whole, a, token, 0);
    (void)decodePart(right, whole, b, token, 1);
    (void)decodePart(one, whole, slot, token, 0);
  }
  const int32_t into = other.engine.allocateSlot();
  const auto &half = left.kernels.layers();
  other.engine.restoreHeads(into, left.engine.snapshot(a), ranges(half, 0, 0));
  other.engine.restoreHeads(into, right.engine.snapshot(b),
                            ranges(half, 0, 1));
  EXPECT_EQ(other.engine.snapshot(into), one.engine.snapshot(slot));
  for (; token < 80; ++token)
    ASSERT_EQ(decodePart(other, whole, into, token, 0),
              decodePart(one, whole, slot, token, 0));
}

// Another graph of the same model: its policy, phases and drafts shape no state.
TEST(Heads, WithoutRangesAllAreTaken) {
  const std::vector<LayerSpec> whole = wholeLayers();
  std::vector<LayerSpec> looser = whole;
  for (LayerSpec &layer : looser) {
    layer.policyValue = 0.1;
    layer.draft = layer.denseForm ? 0 : 2;
  }
  EngineUnderTest from(whole), to(looser);
  const int32_t a = from.engine.allocateSlot(), b = to.engine.allocateSlot();
  for (int64_t token = 0; token < 45; ++token)
    (void)decodePart(from, whole, a, token, 0);
  to.engine.restoreHeads(b, from.engine.snapshot(a), {});
  EXPECT_EQ(to.engine.position(b), 45);
  for (int32_t layer = 0; layer < from.engine.layerCount(); ++layer)
    EXPECT_EQ(to.engine.densify(layer, b), from.engine.densify(layer, a));
  (void)decodePart(to, whole, b, 45, 0);
}

ss_result restoreResult(EngineUnderTest &test, int32_t slot,
                        const std::vector<std::byte> &bytes,
                        const std::vector<ss_head_range> &ranges) {
  return ss_snapshot_restore_heads(test.engine.get(), slot, bytes.data(),
                                   bytes.size(), ranges.data(),
                                   int32_t(ranges.size()), nullptr);
}

TEST(Heads, WhatDoesNotFitIsRefused) {
  const std::vector<LayerSpec> whole = {gdnLayer(4, 2, 16, 24)};
  EngineUnderTest one(whole), half(shareOf(whole, 2));
  const int32_t slot = one.engine.allocateSlot();
  for (int64_t token = 0; token < 5; ++token)
    (void)decodePart(one, whole, slot, token, 0);
  const auto bytes = one.engine.snapshot(slot);
  const int32_t a = half.engine.allocateSlot();
  EXPECT_EQ(restoreResult(half, a, bytes, {{3, 0, 2}}), SS_INVALID_ARGUMENT);
  EXPECT_EQ(restoreResult(half, a, bytes, {{0, 1, 2}}), SS_INVALID_ARGUMENT);
  EXPECT_EQ(restoreResult(half, a, bytes, {{-1, 0, 2}}), SS_INVALID_ARGUMENT);
  EXPECT_EQ(restoreResult(half, a, bytes, {{0, 0, 0}}), SS_INVALID_ARGUMENT);
  EXPECT_EQ(restoreResult(half, a, bytes, {{INT32_MAX, 0, 2}}),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(ss_snapshot_restore_heads(half.engine.get(), a, bytes.data(),
                                      bytes.size(), nullptr, 1, nullptr),
            SS_INVALID_ARGUMENT);
  // All heads, which this engine has not.
  EXPECT_EQ(restoreResult(half, a, bytes, {}), SS_FOREIGN_SNAPSHOT);
  // Heads 1 and 2 have different keys; in the half they share one.
  EXPECT_EQ(restoreResult(half, a, bytes, {{1, 0, 2}}), SS_FOREIGN_SNAPSHOT);
  EXPECT_EQ(half.engine.position(a), 0);
  EXPECT_EQ(restoreResult(half, a, bytes, {{2, 0, 2}}), SS_OK);
  // Another position does not join.
  (void)decodePart(one, whole, slot, 5, 0);
  EXPECT_EQ(restoreResult(half, a, one.engine.snapshot(slot), {{2, 0, 2}}),
            SS_FOREIGN_SNAPSHOT);
}

} // namespace
