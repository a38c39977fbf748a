//===- ErrorsTest.cpp - Every misuse gets one clear line ------------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// A two-slot engine whose decode arguments are right until a test spoils them.
class Misuse : public testing::Test {
protected:
  Misuse()
      : layer(gdnLayer(4, 2, 16, 8)), test({layer}, optionsFor(3), false),
        q(2 * 16), k(2 * 16), v(2 * 64), gate(2 * 4), beta(2 * 4), y(2 * 64),
        aLog(4), dtBias(4) {
    slots = {test.engine.allocateSlot(), test.engine.allocateSlot()};
    args = decodeArgs();
    args.batch = 2;
    args.slots = slots.data();
    args.q = {q.data(), 0};
    args.k = {k.data(), 0};
    args.v = {v.data(), 0};
    args.gate = {gate.data(), 0};
    args.beta = {beta.data(), 0};
    args.a_log = aLog.data();
    args.dt_bias = dtBias.data();
    args.y = y.data();
  }

  /// `call` fails with this result and line, and nothing has changed.
  void expect(ss_result call, ss_result result, const std::string &line) {
    EXPECT_EQ(call, result);
    EXPECT_EQ(ss_last_error(), line);
  }
  void expectDecode(ss_result result, const std::string &line) {
    std::fill(y.begin(), y.end(), 42.0f);
    expect(ss_decode_layer(test.engine.get(), 0, &args), result, line);
    EXPECT_EQ(y, std::vector<float>(y.size(), 42.0f));
    for (float value : test.engine.densify(0, slots[0] < 0 ? 0 : slots[0]))
      ASSERT_EQ(value, 0.0f);
  }

  LayerSpec layer;
  EngineUnderTest test;
  std::vector<float> q, k, v, gate, beta, y, aLog, dtBias;
  std::vector<int32_t> slots;
  ss_decode_args args;
};

TEST_F(Misuse, TheArgumentsAreRightBeforeTheyAreSpoiled) {
  std::fill(k.begin(), k.end(), 1.0f);
  std::fill(v.begin(), v.end(), 1.0f);
  EXPECT_EQ(ss_decode_layer(test.engine.get(), 0, &args), SS_OK);
  EXPECT_EQ(y, std::vector<float>(y.size(), 0.0f)); // q is zero
}

TEST_F(Misuse, StructSizes) {
  args.struct_size = 8;
  expectDecode(SS_INVALID_ARGUMENT,
               "args->struct_size is 8, expected " +
                   std::to_string(sizeof(ss_decode_args)) +
                   ": set it to sizeof(ss_decode_args) of this library's "
                   "header");
  ss_statistics statistics = {};
  expect(ss_engine_statistics(test.engine.get(), &statistics),
         SS_INVALID_ARGUMENT,
         "out->struct_size is 0, expected " +
             std::to_string(sizeof(ss_statistics)) +
             ": set it to sizeof(ss_statistics) of this library's header");
}

TEST_F(Misuse, Layers) {
  expect(ss_decode_layer(test.engine.get(), 1, &args), SS_INVALID_ARGUMENT,
         "layer 1, expected 0 to 0 (the recurrent layers of model "
         "'reference')");
  int32_t ranks[4];
  expect(ss_state_ranks(test.engine.get(), -1, 0, ranks), SS_INVALID_ARGUMENT,
         "layer -1, expected 0 to 0 (the recurrent layers of model "
         "'reference')");
}

TEST_F(Misuse, BatchesAndSlots) {
  args.batch = 0;
  expectDecode(SS_INVALID_ARGUMENT, "layer 'layer0': args.batch is 0, expected at least 1");
  args.batch = 2;
  args.slots = nullptr;
  expectDecode(SS_INVALID_ARGUMENT, "layer 'layer0': args.slots is null, expected 2 slots");
  args.slots = slots.data();
  slots[1] = slots[0];
  expectDecode(SS_INVALID_ARGUMENT,
               "slot 0 appears twice in the batch, expected every slot once");
  slots[1] = 3;
  expectDecode(SS_INVALID_ARGUMENT, "slot 3, expected 0 to 2");
  slots[1] = 2;
  expectDecode(SS_INVALID_ARGUMENT,
               "slot 2 has no owner, expected a slot from ss_slot_alloc");
  expect(ss_slot_free(test.engine.get(), 2), SS_INVALID_ARGUMENT,
         "slot 2 has no owner, expected a slot from ss_slot_alloc");
  expect(ss_slot_reset(test.engine.get(), -1, nullptr), SS_INVALID_ARGUMENT,
         "slot -1, expected 0 to 2");
  expect(ss_slot_set_rounding_key(test.engine.get(), 2, 1, nullptr),
         SS_INVALID_ARGUMENT,
         "slot 2 has no owner, expected a slot from ss_slot_alloc");
  test.engine.freeSlot(1);
  expect(ss_slot_free(test.engine.get(), 1), SS_INVALID_ARGUMENT,
         "slot 1 has no owner, expected a slot from ss_slot_alloc");
}

TEST_F(Misuse, NullArrays) {
  struct Case {
    const char *name, *width;
    std::function<void(bool)> set;
  };
  const Case cases[] = {
      {"q", "16", [&](bool on) { args.q.data = on ? q.data() : nullptr; }},
      {"k", "16", [&](bool on) { args.k.data = on ? k.data() : nullptr; }},
      {"v", "64", [&](bool on) { args.v.data = on ? v.data() : nullptr; }},
      {"gate", "4",
       [&](bool on) { args.gate.data = on ? gate.data() : nullptr; }},
      {"beta", "4",
       [&](bool on) { args.beta.data = on ? beta.data() : nullptr; }},
      {"a_log", "4", [&](bool on) { args.a_log = on ? aLog.data() : nullptr; }},
      {"dt_bias", "4",
       [&](bool on) { args.dt_bias = on ? dtBias.data() : nullptr; }},
  };
  for (const Case &c : cases) {
    c.set(false);
    expectDecode(SS_INVALID_ARGUMENT, std::string("layer 'layer0': args.") + c.name +
                                          " is null, expected rows of " +
                                          c.width + " floats");
    c.set(true);
  }
  args.y = nullptr;
  expect(ss_decode_layer(test.engine.get(), 0, &args), SS_INVALID_ARGUMENT,
         "layer 'layer0': args.y is null, expected rows of 64 floats");
}

TEST_F(Misuse, Strides) {
  args.v.stride = 63;
  expectDecode(SS_INVALID_ARGUMENT, "layer 'layer0': args.v has stride 63, expected 0 (packed) "
                                    "or at least 64 floats");
  args.v.stride = 0;
  args.y_stride = -64;
  expectDecode(SS_INVALID_ARGUMENT, "layer 'layer0': args.y has stride -64, expected 0 "
                                    "(packed) or at least 64 floats");
}

TEST_F(Misuse, ALayerTakesOneTokenPerStep) {
  ASSERT_EQ(ss_decode_layer(test.engine.get(), 0, &args), SS_OK);
  expect(ss_decode_layer(test.engine.get(), 0, &args), SS_BUFFER_FULL,
         "layer 'layer0' has decoded position 0 of slot 0 already, expected "
         "one token per step: call ss_end_step first");
  ASSERT_EQ(ss_end_step(test.engine.get(), slots.data(), 2, nullptr), SS_OK);
  EXPECT_EQ(ss_decode_layer(test.engine.get(), 0, &args), SS_OK);
}

TEST_F(Misuse, EndOfAStep) {
  expect(ss_end_step(test.engine.get(), slots.data(), 0, nullptr), SS_INVALID_ARGUMENT,
         "batch is 0, expected at least 1");
  slots[1] = slots[0];
  expect(ss_end_step(test.engine.get(), slots.data(), 2, nullptr), SS_INVALID_ARGUMENT,
         "slot 0 appears twice in the step, expected every slot once");
  slots[1] = 2;
  expect(ss_end_step(test.engine.get(), slots.data(), 2, nullptr), SS_INVALID_ARGUMENT,
         "slot 2 has no owner, expected a slot from ss_slot_alloc");
}

/// Two layers and two slots, decoded one by one.
struct Stepwise {
  Stepwise() : test({gdnLayer(1, 1, 8, 8), second()}, optionsFor(2), false) {
    slots = {test.engine.allocateSlot(), test.engine.allocateSlot()};
  }
  static LayerSpec second() {
    LayerSpec layer = gdnLayer(1, 1, 8, 8);
    layer.name = "layer1";
    return layer;
  }
  /// `tokens` of every row.
  ss_result decode(int32_t layer, std::vector<int32_t> batch,
                   std::vector<int32_t> tokens = {}) {
    const int32_t most =
        tokens.empty() ? 1 : *std::max_element(tokens.begin(), tokens.end());
    std::vector<float> rows(batch.size() * size_t(most) * 8, 0.5f), y = rows;
    ss_decode_args args = decodeArgs();
    args.batch = int32_t(batch.size());
    args.slots = batch.data();
    args.q = args.k = args.v = args.gate = args.beta = {rows.data(), 0};
    args.a_log = args.dt_bias = rows.data();
    args.y = y.data();
    if (tokens.empty())
      return ss_decode_layer(test.engine.get(), layer, &args);
    ss_token_args several = {};
    several.struct_size = sizeof several;
    several.tokens = most;
    several.row_tokens = tokens.data();
    return ss_decode_layer_tokens(test.engine.get(), layer, &args, &several);
  }
  void expectEnds(std::vector<int32_t> batch) {
    EXPECT_EQ(ss_end_step(test.engine.get(), batch.data(),
                          int32_t(batch.size()), nullptr),
              SS_OK);
  }
  /// Nothing has changed.
  void expectLacks(std::vector<int32_t> batch, const std::string &what) {
    const int64_t before[] = {test.engine.position(0), test.engine.position(1)};
    EXPECT_EQ(ss_end_step(test.engine.get(), batch.data(),
                          int32_t(batch.size()), nullptr),
              SS_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(ss_last_error()),
              "the step of slot " + what +
                  " tokens are decoded), expected every layer to decode them");
    EXPECT_EQ(test.engine.position(0), before[0]);
    EXPECT_EQ(test.engine.position(1), before[1]);
  }

  EngineUnderTest test;
  std::vector<int32_t> slots;
};

TEST(EndOfAStep, NeedsEveryLayerOfEverySlot) {
  Stepwise run;
  run.expectLacks({0, 1}, "0 ends without layer 'layer0' (0 of 1");
  ASSERT_EQ(run.decode(0, {1, 0}), SS_OK);
  run.expectLacks({0, -1}, "0 ends without layer 'layer1' (0 of 1");
  ASSERT_EQ(run.decode(1, {0, -1}), SS_OK);
  run.expectLacks({0, 1}, "1 ends without layer 'layer1' (0 of 1");
  run.expectEnds({-1, 0}); // each of the requests may end by itself
  EXPECT_EQ(run.test.engine.position(0), 1);
  ASSERT_EQ(run.decode(1, {1}), SS_OK);
  run.expectEnds({1});
  EXPECT_EQ(run.test.engine.position(1), 1);
  // Layers in another order are as good.
  ASSERT_EQ(run.decode(1, {0, 1}), SS_OK);
  run.expectLacks({1}, "1 ends without layer 'layer0' (0 of 1");
  ASSERT_EQ(run.decode(0, {0, 1}), SS_OK);
  run.expectEnds({0, 1});
}

TEST(EndOfAStep, NeedsEveryTokenOfACall) {
  Stepwise run;
  ASSERT_EQ(run.decode(0, {0, 1}, {3, 0}), SS_OK);
  run.expectLacks({0, 1}, "0 ends without layer 'layer1' (0 of 3");
  run.expectEnds({1}); // no tokens are none too few
  EXPECT_EQ(run.test.engine.position(1), 0);
  ASSERT_EQ(run.decode(1, {0}, {3}), SS_OK);
  run.expectEnds({0});
  EXPECT_EQ(run.test.engine.position(0), 3);
  // What was left in the middle begins again once its slot is reset.
  ASSERT_EQ(run.decode(0, {0}), SS_OK);
  run.test.engine.resetSlot(0);
  run.expectLacks({0}, "0 ends without layer 'layer0' (0 of 1");
  ASSERT_EQ(run.decode(0, {0}), SS_OK);
  ASSERT_EQ(run.decode(1, {0}), SS_OK);
  run.expectEnds({0});
  EXPECT_EQ(run.test.engine.position(0), 1);
}

TEST_F(Misuse, NullPointers) {
  ss_engine *engine = test.engine.get();
  const ss_engine_options options = engineOptions();
  float value;
  expect(ss_decode_layer(nullptr, 0, &args), SS_INVALID_ARGUMENT,
         "engine is null, expected a valid pointer");
  expect(ss_decode_layer(engine, 0, nullptr), SS_INVALID_ARGUMENT,
         "args is null, expected a valid pointer");
  expect(ss_slot_alloc(engine, nullptr, nullptr), SS_INVALID_ARGUMENT,
         "slot is null, expected a valid pointer");
  expect(ss_state_densify(engine, 0, 0, nullptr), SS_INVALID_ARGUMENT,
         "out is null, expected a valid pointer");
  expect(ss_state_densify(nullptr, 0, 0, &value), SS_INVALID_ARGUMENT,
         "engine is null, expected a valid pointer");
  expect(ss_engine_create(nullptr, &options, &engine), SS_INVALID_ARGUMENT,
         "package is null, expected a valid pointer");
  expect(ss_package_open(nullptr, nullptr), SS_INVALID_ARGUMENT,
         "folder is null, expected a valid pointer");
  EXPECT_EQ(ss_layer_count(nullptr), 0);
  ss_engine_destroy(nullptr);
  ss_package_close(nullptr);
  ss_engine_options_init(nullptr);
}

TEST_F(Misuse, Options) {
  auto create = [&](auto spoil) {
    ss_engine_options options = engineOptions();
    spoil(options);
    ss_engine *engine = nullptr;
    ss_result result =
        ss_engine_create(test.package.get(), &options, &engine);
    EXPECT_EQ(engine, nullptr);
    return result;
  };
  expect(create([](ss_engine_options &o) { o.slots = 0; }),
         SS_INVALID_ARGUMENT, "options.slots is 0, expected at least 1");
  expect(create([](ss_engine_options &o) { o.threads = -1; }),
         SS_INVALID_ARGUMENT,
         "options.threads is -1, expected 0 (all processors) to 1024");
  expect(create([](ss_engine_options &o) { o.dense_fallback = 2; }),
         SS_INVALID_ARGUMENT,
         "options.dense_fallback is 2, expected 0 or 1, or -1 for what the "
         "device does");
  expect(create([](ss_engine_options &o) { o.consolidate_every = -2; }),
         SS_INVALID_ARGUMENT,
         "options.consolidate_every is -2, expected 0 (never) or more, or -1 "
         "for what the device does");
  expect(create([](ss_engine_options &o) { o.device = 2; }),
         SS_INVALID_ARGUMENT,
         "options.device is 2, expected SS_DEVICE_CPU (0) or SS_DEVICE_CUDA "
         "(1)");
  expect(create([](ss_engine_options &o) { o.row_capacity = 32; }),
         SS_INVALID_ARGUMENT,
         "options.row_capacity is 32, expected 0: the CPU device gives a state "
         "the rows it has; the policy of a layer bounds them");
  expect(create([](ss_engine_options &o) { o.compaction_streams = -1; }),
         SS_INVALID_ARGUMENT,
         "options.compaction_streams is -1, expected 0: the CPU device has no "
         "streams");
  expect(create([](ss_engine_options &o) { o.device_ordinal = 1; }),
         SS_INVALID_ARGUMENT,
         "options.device_ordinal is 1, expected 0: it chooses a GPU; set "
         "device to SS_DEVICE_CUDA");
  expect(create([](ss_engine_options &o) { o.slots = INT32_MAX; }),
         SS_INVALID_ARGUMENT,
         "2147483647 slots of 4 heads in layer 'layer0', expected at most "
         "2147483647 states: create the engine with fewer slots");
}

/// No more address space than this while it lives: a call that takes what it should
/// refuse fails, and does not take the machine. Sanitizers need more than that for
/// themselves.
class SmallProcess {
public:
  explicit SmallProcess(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before);
    rlimit small = before;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    small.rlim_cur = std::min(bytes, before.rlim_max);
#else
    (void)bytes;
#endif
    setrlimit(RLIMIT_AS, &small);
  }
  ~SmallProcess() { setrlimit(RLIMIT_AS, &before); }

private:
  rlimit before;
};

// Pages that are committed and not there end a process without a word.
TEST(Slots, ThatTheMachineHasNoMemoryForAreRefusedBeforeItIsTouched) {
  const int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  LayerSpec dense = gdnLayer(2, 2, 64, 64);
  dense.denseForm = true;
  for (const LayerSpec &layer : {gdnLayer(2, 2, 64, 64), dense}) {
    KernelSet kernels({layer});
    const std::string manifest = kernels.manifest();
    Package package = Package::fromMemory(manifest, &KernelSet::lookup, &kernels);
    ss_engine_options options = engineOptions();
    options.threads = 1;
    // The smallest block of two states, or two matrices, are 8 KiB at least.
    const int64_t tooMany = std::min<int64_t>(physical / 8192 + 1, INT32_MAX / 2);
    for (int64_t slots : {tooMany, int64_t(INT32_MAX / 2)}) {
      options.slots = int32_t(slots);
      const SmallProcess small(rlim_t(1) << 33);
      ss_engine *engine = nullptr;
      EXPECT_EQ(ss_engine_create(package.get(), &options, &engine), SS_OUT_OF_MEMORY);
      EXPECT_NE(std::string(ss_last_error())
                    .find("bytes, and the machine has " + std::to_string(physical) +
                          ": create the engine with fewer slots"),
                std::string::npos)
          << ss_last_error();
    }
    options.slots = 64;
    Engine fits(package, options);
    EXPECT_GE(fits.allocateSlot(), 0);
  }
}

TEST(LastError, BelongsToTheThread) {
  EXPECT_EQ(ss_package_open(nullptr, nullptr), SS_INVALID_ARGUMENT);
  std::string other = "unset";
  std::thread([&] { other = ss_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STRNE(ss_last_error(), "");
}

TEST(LastError, TheWrapperThrowsIt) {
  try {
    Package::open("/nowhere");
    FAIL();
  } catch (const Exception &error) {
    EXPECT_EQ(error.code(), SS_NOT_FOUND);
    EXPECT_STREQ(error.what(),
                 "'/nowhere/manifest.json' cannot be read, expected a kernel "
                 "package folder: give the folder that ss-compile wrote");
  }
}

TEST(Version, NamesTheAbi) { EXPECT_STREQ(ss_version(), "0.1.0 (abi 4)"); }

} // namespace
