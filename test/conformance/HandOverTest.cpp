//===- HandOverTest.cpp - What an engine does besides decoding ------------===//
//
// Several tokens in a call, rollback, forks, snapshots between devices and
// dense states out, over every back end's own kernels. The many cases of each
// are in test/unit/handover; here it is that they hold for kernels as they are
// compiled and for memory that is not the host's.
//
//===----------------------------------------------------------------------===//

#include "TokenDecoder.h"

#include <algorithm>
#include <cmath>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

RequestStyle lowRank() {
  RequestStyle style;
  style.rank = 4;
  return style;
}

/// With mean values in layers that take some.
struct Prepared : Running {
  explicit Prepared(const Case &parameter, const ss_engine_options &options)
      : Running(parameter, options, /*withOracle=*/false) {
    giveSinks(engine, layers);
  }
};

/// Ranks and matrices of a slot.
void expectEqualSlots(Engine &a, int32_t slotA, Engine &b, int32_t slotB) {
  EXPECT_EQ(a.position(slotA), b.position(slotB));
  for (int32_t layer = 0; layer < a.layerCount(); ++layer) {
    EXPECT_EQ(a.ranks(layer, slotA), b.ranks(layer, slotB)) << layer;
    EXPECT_EQ(a.status(layer, slotA), b.status(layer, slotB)) << layer;
    EXPECT_EQ(a.densify(layer, slotA), b.densify(layer, slotB)) << layer;
  }
}

class HandOver : public ConformanceTest {};

TEST_P(HandOver, SeveralTokensAreAsManySteps) {
  Prepared run(GetParam(), optionsFor(2));
  TokenDecoder request(run, 3, lowRank());
  const int32_t a = run.engine.allocateSlot(), b = run.engine.allocateSlot();
  const bool drafts = std::any_of(
      run.layers.begin(), run.layers.end(),
      [](const LayerSpec &layer) { return layer.draft > 0; });
  int64_t from = 0;
  // Calls longer than the drafts compact within them, where single steps do.
  for (int32_t tokens : {3, 1, 4, 2, 3, 4, 9, 21}) {
    const Outputs many = request.decode(a, from, tokens);
    const Outputs one = request.decodeSingle(b, from, tokens);
    from += tokens;
    if (!drafts) {
      ASSERT_EQ(many, one) << from;
      continue;
    }
    // The newest ones are decoded before the compaction that they make due.
    for (size_t layer = 0; layer < many.size(); ++layer)
      for (size_t i = 0; i < many[layer].size(); ++i)
        ASSERT_TRUE(std::isfinite(many[layer][i]));
    ASSERT_EQ(run.engine.position(a), run.engine.position(b));
  }
  if (!drafts)
    expectEqualSlots(run.engine, a, run.engine, b);
}

// The same where rows take different numbers of tokens.
TEST_P(HandOver, RowsOfOneCallTakeTheirOwnTokens) {
  Prepared run(GetParam(), optionsFor(4));
  if (std::any_of(run.layers.begin(), run.layers.end(),
                  [](const LayerSpec &layer) { return layer.draft > 0; }))
    return; // other bits where a compaction falls within a call
  TokenDecoder request(run, 3, lowRank());
  int32_t slots[2], twins[2];
  int64_t from[2] = {0, 0};
  for (int row = 0; row < 2; ++row) {
    slots[row] = run.engine.allocateSlot();
    twins[row] = run.engine.allocateSlot();
  }
  for (const std::vector<int32_t> &tokens :
       std::vector<std::vector<int32_t>>{{3, 1}, {0, 4}, {5, 9}, {2, 0}, {11, 6}}) {
    TokenCall call(request, tokens);
    for (size_t row = 0; row < 2; ++row)
      call.fill(row, slots[row], from[row]);
    call.enqueue(nullptr);
    for (size_t row = 0; row < 2; ++row) {
      ASSERT_EQ(call.outputs(row),
                request.decodeSingle(twins[row], from[row], tokens[row]))
          << "row " << row << " from " << from[row];
      from[row] += tokens[row];
    }
  }
  for (int row = 0; row < 2; ++row)
    expectEqualSlots(run.engine, slots[row], run.engine, twins[row]);
}

class Drafts : public ConformanceTest {};

TEST_P(Drafts, ForgottenWereNeverDecoded) {
  Prepared drafting(GetParam(), optionsFor(1));
  Prepared plain(GetParam(), optionsFor(1));
  TokenDecoder wrong(drafting, 77, lowRank()), right(drafting, 5, lowRank());
  TokenDecoder alone(plain, 5, lowRank());
  const int32_t a = drafting.engine.allocateSlot();
  const int32_t b = plain.engine.allocateSlot();
  int64_t position = 0;
  for (int round = 0; round < 24; ++round) {
    const int32_t kept = 1 + round % 4;
    // Drafts of another request, all forgotten; then some that are kept.
    (void)wrong.decode(a, position, 1 + round % 4);
    drafting.engine.rollback(a, 1 + round % 4);
    Outputs found = right.decode(a, position, 4);
    ASSERT_GE(drafting.engine.rollbackRoom(a), 4);
    drafting.engine.rollback(a, 4 - kept);
    const Outputs expected = alone.decode(b, position, kept);
    for (size_t layer = 0; layer < found.size(); ++layer) {
      found[layer].resize(expected[layer].size());
      ASSERT_EQ(found[layer], expected[layer]) << "round " << round;
    }
    position += kept;
  }
  expectEqualSlots(drafting.engine, a, plain.engine, b);
  EXPECT_GT(plain.engine.statistics().compactions, 0);
}

TEST_P(HandOver, AForkAndItsSourceGoTheirOwnWays) {
  Prepared run(GetParam(), optionsFor(4));
  TokenDecoder shared(run, 1, lowRank()), other(run, 2, lowRank());
  std::vector<int32_t> slots;
  for (int i = 0; i < 4; ++i)
    slots.push_back(run.engine.allocateSlot());
  // A fork rounds as its source does.
  run.engine.setRoundingKey(slots[0], 7);
  run.engine.setRoundingKey(slots[1], 7);
  (void)shared.decodeSingle(slots[0], 0, 29);
  (void)shared.decodeSingle(slots[1], 0, 29);
  (void)other.decodeSingle(slots[2], 0, 5); // is lost
  run.engine.fork(slots[0], slots[2]);
  run.engine.fork(slots[2], slots[3]);
  expectEqualSlots(run.engine, slots[0], run.engine, slots[3]);
  // Each in turn decodes on, and none touches the others.
  const Outputs first = shared.decodeSingle(slots[0], 29, 20);
  const Outputs branch = other.decodeSingle(slots[2], 29, 20);
  EXPECT_EQ(first, shared.decodeSingle(slots[1], 29, 20));
  EXPECT_EQ(branch, other.decodeSingle(slots[3], 29, 20));
  expectEqualSlots(run.engine, slots[0], run.engine, slots[1]);
  expectEqualSlots(run.engine, slots[2], run.engine, slots[3]);
}

/// Largest difference over the largest value.
double difference(const std::vector<float> &a, const std::vector<float> &b) {
  double most = 0, scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::fabs(double(a[i]) - b[i]));
    scale = std::max(scale, std::fabs(double(b[i])));
  }
  return scale > 0 ? most / scale : most;
}

// From this device to the CPU and back, in the middle of a buffer.
TEST_P(HandOver, SnapshotsCrossBetweenDevices) {
  Prepared here(GetParam(), plainOptions(2));
  ss_engine_options options = plainOptions(1);
  Engine onCpu(GetParam().backEnd->model(*GetParam().graph).package(),
               options);
  giveSinks(onCpu, here.layers);
  TokenDecoder request(here, 9, lowRank());
  const int32_t a = here.engine.allocateSlot(), b = onCpu.allocateSlot();
  const int32_t c = here.engine.allocateSlot();
  here.engine.setRoundingKey(a, 0x123456789abcdef0);
  (void)request.decodeSingle(a, 0, 21);
  const std::vector<std::byte> bytes = here.engine.snapshot(a);
  onCpu.restore(b, bytes);
  EXPECT_EQ(onCpu.snapshot(b), bytes);
  EXPECT_EQ(onCpu.position(b), 21);
  for (int32_t layer = 0; layer < onCpu.layerCount(); ++layer) {
    EXPECT_EQ(onCpu.ranks(layer, b), here.engine.ranks(layer, a));
    // The same rows; each device sums them in its own order.
    EXPECT_LE(difference(onCpu.densify(layer, b), here.engine.densify(layer, a)),
              1e-5);
  }
  here.engine.restore(c, onCpu.snapshot(b));
  EXPECT_EQ(here.engine.snapshot(c), bytes);
  EXPECT_EQ(request.decodeSingle(a, 21, 12), request.decodeSingle(c, 21, 12));
  here.engine.resetSlot(a);
  EXPECT_EQ(here.engine.position(a), 0);
}

// Into an array of the caller's on the device, in its layout.
TEST_P(HandOver, DensifyWritesTheCallersLayout) {
  Prepared run(GetParam(), optionsFor(2));
  TokenDecoder request(run, 4, lowRank());
  const int32_t a = run.engine.allocateSlot(), b = run.engine.allocateSlot();
  (void)request.decodeSingle(a, 0, 19);
  (void)request.decodeSingle(b, 0, 6);
  const std::vector<int32_t> slots = {a, b}, places = {2, 0};
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer) {
    const LayerSpec &spec = run.layers[size_t(layer)];
    ss_dense_layout layout = {};
    layout.struct_size = sizeof layout;
    layout.dv_stride = 1; // [.., dk, dv], with gaps
    layout.dk_stride = spec.dv + 4;
    layout.head_stride = layout.dk_stride * spec.dk + 8;
    layout.slot_stride = layout.head_stride * spec.heads;
    DeviceArray<float> out(run.engine, size_t(3 * layout.slot_stride));
    out.copyIn(std::vector<float>(out.size(), -77.0f));
    check(ss_state_densify_to(run.engine.get(), layer, slots.data(),
                              places.data(), 2, out.data(), &layout, nullptr));
    const std::vector<float> found = out.copyOut();
    size_t written = 0;
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<float> expected = run.engine.densify(layer, slots[i]);
      for (int64_t head = 0; head < spec.heads; ++head)
        for (int64_t v = 0; v < spec.dv; ++v)
          for (int64_t k = 0; k < spec.dk; ++k, ++written)
            ASSERT_EQ(found[size_t(places[i] * layout.slot_stride +
                                   head * layout.head_stride + v +
                                   k * layout.dk_stride)],
                      expected[size_t((head * spec.dv + v) * spec.dk + k)]);
    }
    EXPECT_EQ(size_t(std::count(found.begin(), found.end(), -77.0f)),
              found.size() - written);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Drafts,
                         onEveryBackEnd({"gdn_draft", "gdn_draft_qr",
                                         "draft_forms"}),
                         caseName);

INSTANTIATE_TEST_SUITE_P(Conformance, HandOver,
                         onEveryBackEnd({"gdn_draft", "gdn_draft_qr",
                                         "mamba2_60x100_qr", "kda_relative_qr",
                                         "hybrid_relative", "hybrid_relative_qr",
                                         "gdn_f16", "kda_bf16", "init_hybrid",
                                         "mixed_sink", "narrow_sink",
                                         "hybrid_fp8", "hybrid_random",
                                         "draft_forms"}),
                         caseName);

class RandomHeads : public ConformanceTest {};

// Half of the heads round as they do in the whole model: random bits go by a
// head's place there. In the middle of the buffers two engines take over from one.
TEST_P(RandomHeads, OfTwoHalvesAreThoseOfTheWhole) {
  const Case half{GetParam().backEnd, &graphNamed("random_half")};
  Running one(GetParam(), optionsFor(1), false);
  Running left(half, optionsFor(1), false), right(half, optionsFor(1), false);
  std::vector<ss_head_range> lower, upper;
  for (size_t i = 0; i < one.layers.size(); ++i) {
    const int32_t heads = left.layers[i].heads;
    ASSERT_EQ(left.layers[i].phase, one.layers[i].phase);
    right.engine.setFirstHead(int32_t(i), heads);
    lower.push_back({0, 0, heads});
    upper.push_back({heads, 0, heads});
  }
  TokenDecoder whole(one, 3, RequestStyle());
  TokenDecoder first(left, one.layers, 0, 3, RequestStyle());
  TokenDecoder second(right, one.layers, 1, 3, RequestStyle());
  const int32_t slot = one.engine.allocateSlot();
  const int32_t a = left.engine.allocateSlot(), b = right.engine.allocateSlot();
  one.engine.setRoundingKey(slot, 77);
  (void)whole.decodeSingle(slot, 0, 21);
  const std::vector<std::byte> bytes = one.engine.snapshot(slot);
  left.engine.restoreHeads(a, bytes, lower);
  right.engine.restoreHeads(b, bytes, upper);
  for (int64_t token = 21; token < 60; ++token) {
    const Outputs all = whole.decode(slot, token, 1);
    Outputs joined = first.decode(a, token, 1);
    const Outputs other = second.decode(b, token, 1);
    for (size_t i = 0; i < joined.size(); ++i)
      joined[i].insert(joined[i].end(), other[i].begin(), other[i].end());
    ASSERT_EQ(joined, all) << "token " << token;
  }
  EXPECT_THROW(right.engine.setFirstHead(0, 1), Exception); // a slot has an owner
}

INSTANTIATE_TEST_SUITE_P(Conformance, RandomHeads,
                         onEveryBackEnd({"random_whole"}), caseName);

} // namespace
