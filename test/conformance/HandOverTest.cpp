//===- HandOverTest.cpp - What an engine does besides decoding ------------===//
//
// Several tokens in a call, rollback, forks, snapshots between devices and
// dense states out, over every back end's own kernels. The many cases of each
// are in test/unit/handover; here it is that they hold for kernels as they are
// compiled and for memory that is not the host's.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include <algorithm>
#include <cmath>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

/// y of every layer, [tokens, heads, dv].
using Outputs = std::vector<std::vector<float>>;

/// Decodes tokens of one request, from device memory.
class TokenDecoder {
public:
  TokenDecoder(Running &run, uint64_t seed, RequestStyle style)
      : run(run), inputs(run.layers, seed, std::move(style)) {
    for (size_t i = 0; i < run.layers.size(); ++i) {
      const reference::LayerWeights &weights = run.driver.weights(i);
      aLog.push_back(upload(weights.aLog));
      dtBias.push_back(upload(weights.dtBias));
    }
  }

  /// Tokens [from, from + tokens) in one call per layer.
  Outputs decode(int32_t slot, int64_t from, int32_t tokens) {
    DeviceArray<int32_t> slots(run.engine, 1);
    slots.copyIn({slot});
    run.engine.beginStep(slots.data(), 1);
    Outputs outputs;
    for (size_t i = 0; i < run.layers.size(); ++i)
      outputs.push_back(decodeLayer(i, slots, from, tokens));
    run.engine.endStep(slots.data(), 1);
    return outputs;
  }
  /// The same, a step for every token.
  Outputs decodeSingle(int32_t slot, int64_t from, int32_t tokens) {
    Outputs outputs(run.layers.size());
    for (int32_t token = 0; token < tokens; ++token) {
      const Outputs one = decode(slot, from + token, 1);
      for (size_t i = 0; i < outputs.size(); ++i)
        outputs[i].insert(outputs[i].end(), one[i].begin(), one[i].end());
    }
    return outputs;
  }

private:
  DeviceArray<float> upload(const std::vector<float> &values) {
    DeviceArray<float> array(run.engine, values.size());
    array.copyIn(values);
    return array;
  }

  std::vector<float> decodeLayer(size_t index, DeviceArray<int32_t> &slots,
                                 int64_t from, int32_t tokens) {
    const LayerSpec &layer = run.layers[index];
    std::vector<float> q, k, v, gate, beta;
    for (int32_t token = 0; token < tokens; ++token) {
      const TokenValues t = inputs.inputs(index).token(from + token);
      q.insert(q.end(), t.q.begin(), t.q.end());
      k.insert(k.end(), t.k.begin(), t.k.end());
      v.insert(v.end(), t.v.begin(), t.v.end());
      gate.insert(gate.end(), t.gate.begin(), t.gate.end());
      beta.insert(beta.end(), t.beta.begin(), t.beta.end());
    }
    const DeviceArray<float> onQ = upload(q), onK = upload(k), onV = upload(v),
                             onGate = upload(gate), onBeta = upload(beta);
    DeviceArray<float> y(run.engine, v.size());
    ss_decode_args args = decodeArgs();
    args.batch = 1;
    args.slots = slots.data();
    args.q = {onQ.data(), 0};
    args.k = {onK.data(), 0};
    args.v = {onV.data(), 0};
    args.gate = {onGate.data(), 0};
    args.beta = {layer.hasBeta() ? onBeta.data() : nullptr, 0};
    args.a_log = aLog[index].data();
    args.dt_bias = dtBias[index].data();
    args.y = y.data();
    ss_token_args several = {};
    several.struct_size = sizeof several;
    several.tokens = tokens;
    if (tokens == 1)
      run.engine.decodeLayer(int32_t(index), args);
    else
      run.engine.decodeTokens(int32_t(index), args, several);
    return y.copyOut();
  }

  Running &run;
  DrivenRequest inputs;
  std::vector<DeviceArray<float>> aLog, dtBias;
};

RequestStyle lowRank() {
  RequestStyle style;
  style.rank = 4;
  return style;
}

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
  Running run(GetParam(), optionsFor(2), false);
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

class Drafts : public ConformanceTest {};

TEST_P(Drafts, ForgottenWereNeverDecoded) {
  Running drafting(GetParam(), optionsFor(1), false);
  Running plain(GetParam(), optionsFor(1), false);
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
  Running run(GetParam(), optionsFor(4), false);
  TokenDecoder shared(run, 1, lowRank()), other(run, 2, lowRank());
  std::vector<int32_t> slots;
  for (int i = 0; i < 4; ++i)
    slots.push_back(run.engine.allocateSlot());
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
  Running here(GetParam(), plainOptions(2), false);
  ss_engine_options options = plainOptions(1);
  Engine onCpu(GetParam().backEnd->model(*GetParam().graph).package(),
               options);
  TokenDecoder request(here, 9, lowRank());
  const int32_t a = here.engine.allocateSlot(), b = onCpu.allocateSlot();
  const int32_t c = here.engine.allocateSlot();
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
  Running run(GetParam(), optionsFor(2), false);
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
                         onEveryBackEnd({"gdn_draft", "gdn_draft_qr"}),
                         caseName);

INSTANTIATE_TEST_SUITE_P(Conformance, HandOver,
                         onEveryBackEnd({"gdn_draft", "gdn_draft_qr",
                                         "mamba2_60x100_qr", "kda_relative_qr",
                                         "hybrid_relative", "hybrid_relative_qr",
                                         "gdn_f16", "kda_bf16", "init_hybrid"}),
                         caseName);

} // namespace
