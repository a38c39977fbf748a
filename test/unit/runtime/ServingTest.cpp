//===- ServingTest.cpp - What engines pass, and how they are used ---------===//

#include "EngineUnderTest.h"

#include "numeric/Elements.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> oneLayer() { return {gdnLayer(2, 1, 16, 24)}; }

std::vector<LayerSpec> twoLayers() {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 16, 24),
                                   kdaLayer(1, 1, 16, 16)};
  layers[1].name = "layer1";
  return layers;
}

/// Values that bf16 and f16 hold exactly: few bits of mantissa.
float coarse(float value) {
  return float(int(value * 16)) / 16;
}

std::vector<uint16_t> halvesOf(int32_t type, const std::vector<float> &values) {
  std::vector<uint16_t> bits(values.size());
  numeric::storeElements(type == SS_ELEMENT_F16 ? numeric::ElementType::F16
                                                : numeric::ElementType::BF16,
                         bits.data(), values.data(), int64_t(values.size()));
  return bits;
}

/// One token of one request in f32, and what it gives.
struct Token {
  Token(const LayerSpec &layer, uint64_t seed, int64_t position)
      : values(RandomRequest(layer, seed).token(position)),
        y(size_t(layer.valueFloats())) {
    for (std::vector<float> *v :
         {&values.q, &values.k, &values.v, &values.gate, &values.beta})
      for (float &x : *v)
        x = coarse(x);
  }
  TokenValues values;
  std::vector<float> y;
};

ss_decode_args argsOf(const EngineUnderTest &test, const int32_t *slots,
                      Token &token) {
  ss_decode_args args = decodeArgs();
  args.batch = 1;
  args.slots = slots;
  args.q = {token.values.q.data(), 0};
  args.k = {token.values.k.data(), 0};
  args.v = {token.values.v.data(), 0};
  args.gate = {token.values.gate.data(), 0};
  args.beta = {token.values.beta.data(), 0};
  args.a_log = test.driver.weights(0).aLog.data();
  args.dt_bias = test.driver.weights(0).dtBias.data();
  args.y = token.y.data();
  return args;
}

template <typename T> const float *asFloats(const std::vector<T> &values) {
  return reinterpret_cast<const float *>(values.data());
}

/// Halves of one type beside the same numbers in f32.
void compareHalves(int32_t type, uint16_t nan) {
  ss_engine_options options = optionsFor(2);
  options.max_batch = 3;
  EngineUnderTest test(oneLayer(), options, false);
  const int32_t plain = test.engine.allocateSlot();
  const int64_t wide = test.engine.allocateSlot();
  for (int step = 0; step < 20; ++step) {
    Token token(test.kernels.layers()[0], 3, step);
    test.engine.decodeLayer(0, argsOf(test, &plain, token));
    // The same in halves with int64 slots, between rows of padding whose inputs
    // are NaN.
    auto padded = [&](const std::vector<float> &values) {
      std::vector<uint16_t> bits(values.size(), nan);
      for (uint16_t b : halvesOf(type, values))
        bits.push_back(b);
      bits.insert(bits.end(), values.size(), nan);
      return bits;
    };
    const auto q = padded(token.values.q), k = padded(token.values.k),
               v = padded(token.values.v), gate = padded(token.values.gate),
               beta = padded(token.values.beta);
    const int64_t slots[] = {-1, wide, -7};
    std::vector<uint16_t> y(3 * token.y.size(), nan);
    ss_decode_args args = argsOf(test, nullptr, token);
    args.batch = 3;
    args.slots = reinterpret_cast<const int32_t *>(slots);
    args.slot_type = SS_SLOT_I64;
    args.input_type = args.gate_type = args.y_type = type;
    args.q = {asFloats(q), 0};
    args.k = {asFloats(k), 0};
    args.v = {asFloats(v), 0};
    args.gate = {asFloats(gate), 0};
    args.beta = {asFloats(beta), 0};
    args.y = reinterpret_cast<float *>(y.data());
    test.engine.decodeLayer(0, args);
    const size_t width = token.y.size();
    const std::vector<uint16_t> expected = halvesOf(type, token.y);
    for (size_t i = 0; i < width; ++i) {
      EXPECT_EQ(y[i], 0);
      EXPECT_EQ(y[2 * width + i], 0);
      EXPECT_EQ(y[width + i], expected[i]);
    }
    test.engine.endStep({plain});
    test.engine.endStepRows({sizeof(ss_rows), 3, slots, SS_SLOT_I64,
                         SS_PADDING_NEGATIVE, 0, nullptr});
  }
  EXPECT_EQ(test.engine.densify(0, plain), test.engine.densify(0, int32_t(wide)));
  EXPECT_GT(test.engine.statistics().conversion_bytes, 0);
}

TEST(ElementTypes, HalvesThatAreExactGiveTheBitsOfF32) {
  compareHalves(SS_ELEMENT_BF16, 0x7fc0);
  compareHalves(SS_ELEMENT_F16, 0x7e00);
}

TEST(Padding, TheNullSlotIsNobodysAndItsRowIsZero) {
  ss_engine_options options = optionsFor(3);
  options.max_batch = 2;
  options.reserved_slots = 1;
  EngineUnderTest test(oneLayer(), options, false);
  const int32_t slot = test.engine.allocateSlot();
  EXPECT_EQ(slot, 1);
  Token token(test.kernels.layers()[0], 3, 0);
  for (std::vector<float> *v : {&token.values.q, &token.values.k,
                                &token.values.v, &token.values.gate,
                                &token.values.beta})
    v->insert(v->end(), v->begin(), v->begin() + int64_t(v->size()));
  for (int32_t rule : {SS_PADDING_VALUE, SS_PADDING_UP_TO}) {
    const int32_t slots[] = {0, slot};
    std::vector<float> y(2 * token.y.size(), 42.0f);
    ss_decode_args args = argsOf(test, slots, token);
    args.batch = 2;
    args.y = y.data();
    args.padding = rule;
    test.engine.decodeLayer(0, args);
    for (size_t i = 0; i < token.y.size(); ++i) {
      EXPECT_EQ(y[i], 0.0f);
      EXPECT_NE(y[token.y.size() + i], 42.0f);
    }
    test.engine.endStepRows({sizeof(ss_rows), 2, slots, SS_SLOT_I32, rule, 0,
                         nullptr});
  }
  // The null slot was never written.
  EXPECT_EQ(test.engine.layerStatistics(0).states, 2);
  EXPECT_EQ(test.engine.allocateSlot(), 2);
  EXPECT_THROW(test.engine.allocateSlot(), Exception);
}

std::string errorOf(const EngineUnderTest &test, const ss_decode_args &args) {
  EXPECT_EQ(ss_decode_layer(test.engine.get(), 0, &args), SS_INVALID_ARGUMENT);
  return ss_last_error();
}

TEST(Padding, AValueThatARequestCanOwnIsRefused) {
  ss_engine_options options = optionsFor(2);
  options.max_batch = 2;
  EngineUnderTest test(oneLayer(), options, false);
  const int32_t slot = test.engine.allocateSlot();
  Token token(test.kernels.layers()[0], 3, 0);
  ss_decode_args args = argsOf(test, &slot, token);
  args.padding = SS_PADDING_VALUE;
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.padding_value is 0, which a request can own, expected no "
            "slot: reserve it (options.reserved_slots)");
  args.padding = SS_PADDING_UP_TO;
  args.padding_value = 2; // and with it every slot below
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.padding_value is 2, up to which there are slots that a request "
            "can own, expected less than options.reserved_slots");
  args.padding = SS_PADDING_VALUE;
  args.padding_value = -5;
  const int32_t negative = -1;
  args.slots = &negative;
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.slots[0] is -1, expected 0 to 1 or padding by "
            "args.padding");
  args.padding = 3;
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.padding is 3, expected an ss_padding (0 to 2)");
  args.padding = 0, args.slot_type = 2;
  EXPECT_EQ(errorOf(test, args), "layer 'layer0': args.slot_type is 2, expected SS_SLOT_I32 "
                                 "(0) or SS_SLOT_I64 (1)");
  args.slot_type = 0, args.y_type = 3;
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.y_type is 3, expected SS_ELEMENT_F32 (0), SS_ELEMENT_F16 (1) "
            "or SS_ELEMENT_BF16 (2)");
  args.y_type = 1, args.batch = 3;
  EXPECT_EQ(errorOf(test, args),
            "layer 'layer0': args.batch is 3, expected at most 2 rows to convert "
            "(options.max_batch): create the engine with more");
  args.y_type = 0, args.batch = 1, args.reserved = 1;
  EXPECT_EQ(errorOf(test, args), "layer 'layer0': args.reserved is 1, expected 0: set the "
                                 "whole struct to zero first");
}

TEST(Padding, WithoutRoomToConvertTheErrorSaysSo) {
  EngineUnderTest test(oneLayer(), optionsFor(1), false);
  const int32_t slot = test.engine.allocateSlot();
  Token token(test.kernels.layers()[0], 3, 0);
  ss_decode_args args = argsOf(test, &slot, token);
  args.y_type = SS_ELEMENT_F16;
  EXPECT_NE(errorOf(test, args).find("options.max_batch is 0"),
            std::string::npos);
}

TEST(Versions, StructsOfTheFirstHeaderAreTaken) {
  EngineUnderTest test(oneLayer(), optionsFor(1), false);
  ss_engine_options old;
  std::memset(&old, 0xff, sizeof old);
#undef ss_engine_options_init
  ss_engine_options_init_sized(&old, 32);
  EXPECT_EQ(old.struct_size, 32u);
  EXPECT_EQ(old.slots, 1);
  EXPECT_EQ(old.consolidation, -1); // 0xffffffff: not written
  EXPECT_EQ(old.max_batch, -1);     // not written either
  ss_engine *engine = nullptr;
  ASSERT_EQ(ss_engine_create(test.package.get(), &old, &engine), SS_OK);
  ss_statistics statistics;
  std::memset(&statistics, 0x55, sizeof statistics);
  statistics.struct_size = offsetof(ss_statistics, consolidations_started);
  ASSERT_EQ(ss_engine_statistics(engine, &statistics), SS_OK);
  EXPECT_EQ(statistics.compactions, 0);
  EXPECT_EQ(statistics.refused, 0x5555555555555555);
  ss_memory_plan plan;
  std::memset(&plan, 0x55, sizeof plan);
  plan.struct_size = offsetof(ss_memory_plan, hand_over);
  ASSERT_EQ(ss_engine_plan(test.package.get(), &old, &plan), SS_OK);
  EXPECT_LE(plan.expected, plan.worst_case);
  EXPECT_EQ(plan.hand_over, 0x5555555555555555); // not written
  ss_engine_destroy(engine);
  old.struct_size = sizeof(ss_engine_options) + 8;
  EXPECT_EQ(ss_engine_create(test.package.get(), &old, &engine),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(ss_abi_version(), int32_t(SS_ABI_VERSION));
  EXPECT_GE(ss_version_number(), 100);
}

TEST(Threads, ASecondCallInOneEngineIsBusy) {
  // The callback of the log stands in a call.
  struct Inside {
    ss_engine *engine = nullptr;
    int calls = 0;
    ss_result result = SS_OK;
  } inside;
  ss_engine_options options = optionsFor(1);
  std::vector<LayerSpec> layers = {mamba2Layer(1, 1, 64, 64)};
  layers[0].policyValue = 1e-4;
  KernelSet kernels(layers);
  Package package = Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                        &kernels);
  options.dense_fallback = 0;
  options.state_bytes_limit = package.plan(options).expected + 8192;
  options.exhaustion = SS_EXHAUSTION_TIGHTEN;
  Engine engine(package, options);
  inside.engine = engine.get();
  setLog(
      [](void *context, ss_log_level level, const char *subject,
         const char *message) {
        auto &seen = *static_cast<Inside *>(context);
        EXPECT_EQ(level, SS_LOG_WARNING);
        EXPECT_STREQ(subject, "memory");
        EXPECT_NE(std::string(message).find("within the rows"),
                  std::string::npos);
        int32_t slot;
        ++seen.calls;
        seen.result = ss_slot_alloc(seen.engine, &slot, nullptr);
      },
      &inside, SS_LOG_WARNING);
  RequestDriver driver(engine, kernels.layers(), false);
  DrivenRequest request(kernels.layers(), 1);
  request.slot = engine.allocateSlot();
  for (int step = 0; step < 120; ++step)
    driver.step({&request});
  setLog(nullptr, nullptr);
  EXPECT_GT(inside.calls, 0);
  EXPECT_EQ(inside.result, SS_BUSY);
  EXPECT_NO_THROW(engine.freeSlot(request.slot));
}

TEST(Threads, TwoEnginesOnTwoThreadsAreIndependent) {
  auto outputs = [](uint64_t seed) {
    ss_engine_options options = optionsFor(1);
    options.threads = 1;
    options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
    EngineUnderTest test(twoLayers(), options, false);
    DrivenRequest request = test.request(seed);
    std::vector<std::vector<std::vector<float>>> y;
    for (int step = 0; step < 80; ++step)
      y.push_back(test.driver.step({&request}).y);
    return y;
  };
  const auto first = outputs(1), second = outputs(2);
  decltype(outputs(1)) a, b;
  std::thread one([&] { a = outputs(1); }), two([&] { b = outputs(2); });
  one.join();
  two.join();
  EXPECT_EQ(a, first);
  EXPECT_EQ(b, second);
}

TEST(Statistics, OfLayersAddUpToTheEngines) {
  EngineUnderTest test(twoLayers(), optionsFor(2), false);
  DrivenRequest a = test.request(1), b = test.request(2);
  for (int step = 0; step < 20; ++step)
    test.driver.step({&a, &b});
  const ss_statistics all = test.engine.statistics();
  ss_layer_statistics sum = {};
  for (int32_t layer = 0; layer < 2; ++layer) {
    const ss_layer_statistics s = test.engine.layerStatistics(layer);
    sum.dense_bytes += s.dense_bytes;
    sum.live_bytes += s.live_bytes;
    sum.allocated_bytes += s.allocated_bytes;
    EXPECT_EQ(s.states, layer == 0 ? 4 : 2);
    EXPECT_LE(s.buffered_max, 8);
    int64_t ranks = 0, dense = 0;
    for (int32_t slot : {a.slot, b.slot})
      for (int32_t rank : test.engine.ranks(layer, slot))
        rank < 0 ? ++dense : ranks += rank;
    EXPECT_EQ(s.rank_sum, ranks);
    EXPECT_EQ(s.dense_states, dense);
  }
  EXPECT_EQ(sum.dense_bytes, all.dense_bytes);
  EXPECT_EQ(sum.live_bytes, all.live_bytes);
  EXPECT_EQ(sum.allocated_bytes, all.allocated_bytes);
  EXPECT_EQ(all.steps, 20);
  EXPECT_GT(all.mean_live_bytes, 0);
  EXPECT_LE(all.mean_allocated_bytes, double(all.allocated_peak));
  EXPECT_LE(all.used_bytes, all.allocated_bytes);
  EXPECT_GT(all.used_bytes, 0);
}

} // namespace
