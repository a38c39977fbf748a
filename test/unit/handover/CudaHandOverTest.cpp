//===- CudaHandOverTest.cpp - What is CUDA's own in hand-over -------------===//
//
// Between devices, in captured steps, in batches larger than one launch takes.
//
//===----------------------------------------------------------------------===//

#include "GraphReplay.h"
#include "HandOverUnderTest.h"
#include "PackedCall.h"

#include "cuda/Context.h"
#include "cuda/PieceMover.h"
#include "cuda/device/elements.cuh"
#include "numeric/Elements.h"
#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;
namespace cuda = sinkstate::runtime::cuda;

namespace {

/// A CPU engine over the same kernels, without what CUDA has not.
struct CpuTwin {
  CpuTwin(EngineUnderTest &cuda, int32_t slots)
      : manifest(cuda.kernels.manifest()),
        package(Package::fromMemory(manifest, &KernelSet::lookup,
                                    &cuda.kernels)),
        engine(package, options(slots)) {}
  static ss_engine_options options(int32_t slots) {
    ss_engine_options options = engineOptions();
    options.slots = slots;
    options.threads = 1;
    options.dense_fallback = 0;
    options.consolidate_every = 0;
    return options;
  }
  std::string manifest;
  Package package;
  Engine engine;
};

/// Low ranks: states stay below their bound of rows without consolidation.
std::vector<LayerSpec> smallRanks(int32_t draft) {
  std::vector<LayerSpec> layers = threeLayers(draft, 0.1);
  for (LayerSpec &layer : layers)
    layer.active = 16;
  return layers;
}

/// Decodes on an engine that is not the test's own.
Outputs decodeOn(EngineUnderTest &test, Engine &engine, int32_t slot,
                 uint64_t seed, int64_t from, int32_t tokens) {
  std::swap(test.engine, engine);
  const Outputs outputs = decode(test, slot, seed, from, tokens, true);
  std::swap(test.engine, engine);
  return outputs;
}

TEST(CudaSnapshots, GoToTheCpuAndBack) {
  for (int32_t tokens : {0, 3, 21, 40, -6, -14, -16}) {
    ss_engine_options options = optionsFor(1);
    options.dense_fallback = 0; // each device decides at another compaction
    std::vector<LayerSpec> layers = smallRanks(tokens < 0 ? 0 : 2);
    // With full buffers, but not in all layers.
    layers[2].before = layers[1].before = true;
    tokens = std::abs(tokens);
    EngineUnderTest gpu(layers, options), stays(layers, options);
    CpuTwin cpu(gpu, 2);
    const int32_t a = gpu.engine.allocateSlot(), b = cpu.engine.allocateSlot();
    const int32_t c = stays.engine.allocateSlot();
    (void)decode(gpu, a, 7, 0, tokens, true);
    (void)decode(stays, c, 7, 0, tokens, true);
    const auto bytes = gpu.engine.snapshot(a);
    cpu.engine.restore(b, bytes);
    EXPECT_EQ(cpu.engine.snapshot(b), bytes);
    // The kernels are the same code on both, so the bits are.
    Outputs there = decodeOn(gpu, cpu.engine, b, 7, tokens, 30);
    EXPECT_EQ(there, decode(stays, c, 7, tokens, 30, true)) << tokens;
    gpu.engine.restore(a, cpu.engine.snapshot(b));
    EXPECT_EQ(decode(gpu, a, 7, tokens + 30, 30, true),
              decode(stays, c, 7, tokens + 30, 30, true));
    EXPECT_EQ(look(gpu, a), look(stays, c));
  }
}

TEST(CudaSnapshots, ThatNeedMoreRowsAreRefused) {
  ss_engine_options few = optionsFor(1);
  few.dense_fallback = 0;
  EngineUnderTest large(smallRanks(0), few);
  few.row_capacity = 24; // active 16, buffer 8
  EngineUnderTest small(smallRanks(0), few);
  const int32_t a = large.engine.allocateSlot();
  const int32_t b = small.engine.allocateSlot();
  const ss_dense_layout layout = {sizeof layout, 0, 0, 0, 0, 0};
  ss_init_options options = {sizeof options, 1e-6f, 0};
  const LayerSpec &spec = large.kernels.layers()[0];
  std::vector<float> eye(size_t(spec.heads * spec.dv * spec.dk));
  for (int64_t head = 0; head < spec.heads; ++head)
    for (int64_t i = 0; i < 16; ++i)
      eye[size_t((head * spec.dv + i) * spec.dk + i)] = 1;
  check(ss_state_init(large.engine.get(), 0, &a, nullptr, 1, eye.data(),
                      &layout, &options, nullptr));
  EXPECT_EQ(large.engine.ranks(0, a), (std::vector<int32_t>{16, 16}));
  small.engine.restore(b, large.engine.snapshot(a)); // 16 rows fit
  EXPECT_EQ(small.engine.densify(0, b), eye);
}

// What waits for its stream cannot while that is captured, and leaves no launch in it.
TEST(CudaCaptures, TakeInNothingThatWaits) {
  EngineUnderTest test(smallRanks(2), optionsFor(2));
  const int32_t a = test.engine.allocateSlot(), b = test.engine.allocateSlot();
  (void)decode(test, a, 7, 0, 12);
  const Seen before = look(test, a);
  const auto snapshot = test.engine.snapshot(a);
  ss_engine *engine = test.engine.get();
  const auto driver = cuda::Driver::get();
  const auto context = cuda::Context::open(driver, 0);
  const cuda::CurrentContext current(*context);
  const cuda::Driver::Functions &call = driver->functions();
  cuda::CUstream stream = nullptr;
  ASSERT_EQ(call.cuStreamCreate(&stream, cuda::kStreamNonBlocking), cuda::kSuccess);
  size_t bytes = 0;
  const int32_t padding = -1, none = 0;
  const std::vector<std::function<ss_result()>> calls = {
      [&] { return ss_slot_rollback(engine, a, 1, stream); },
      [&] {
        return ss_slot_rollback_batch(engine, &padding, &none, 1, stream);
      },
      [&] { return ss_slot_set_position(engine, a, 99, stream); },
      [&] { return ss_slot_set_rounding_key(engine, a, 3, stream); },
      [&] { return ss_snapshot_size(engine, a, &bytes, stream); },
      [&] {
        return ss_snapshot_restore(engine, b, snapshot.data(), snapshot.size(),
                                   stream);
      },
      [&] { return ss_slot_fork(engine, a, b, stream); }};
  for (const auto &waiting : calls) {
    ASSERT_EQ(call.cuStreamBeginCapture(stream, 0), cuda::kSuccess);
    fake_log(1);
    EXPECT_EQ(waiting(), SS_INVALID_ARGUMENT);
    EXPECT_STREQ(ss_last_error(),
                 "the call waits for its stream, which is captured, expected "
                 "another one, or this call between replays");
    cuda::CUgraph graph = nullptr;
    cuda::CUgraphExec executable = nullptr;
    ASSERT_EQ(call.cuStreamEndCapture(stream, &graph), cuda::kSuccess);
    ASSERT_EQ(call.cuGraphInstantiateWithFlags(&executable, graph, 0),
              cuda::kSuccess);
    ASSERT_EQ(call.cuGraphLaunch(executable, stream), cuda::kSuccess);
    ASSERT_EQ(call.cuStreamSynchronize(stream), cuda::kSuccess);
    EXPECT_STREQ(fake_logged(), "");
    fake_log(0);
    EXPECT_EQ(fake_forbidden_calls(), 0);
    EXPECT_EQ(look(test, a), before);
  }
  EXPECT_EQ(call.cuStreamDestroy(stream), cuda::kSuccess);
}

/// A step of one layer whose rows, one of them padding, take 4, 0 and 2 tokens.
struct RaggedStep {
  static constexpr int32_t kRows = 3, kTokens = 4;
  explicit RaggedStep(const LayerSpec &layer)
      : q(size_t(kRows * kTokens * layer.keyFloats())), k(q),
        v(size_t(kRows * kTokens * layer.valueFloats())),
        gate(size_t(kRows * kTokens * layer.heads)), beta(gate), y(v) {}
  void fill(uint64_t seed) {
    std::mt19937_64 random{seed};
    std::normal_distribution<float> gauss;
    for (auto *array : {&q, &k, &v, &gate, &beta})
      for (float &x : *array)
        x = gauss(random);
  }
  void enqueue(EngineUnderTest &test, void *stream) {
    const LayerWeights &weights = test.driver.weights(0);
    test.engine.beginStep(slots.data(), kRows, stream);
    decodePacked(test.engine, 0,
                 packedCall(test.kernels.layers()[0], *this, weights.aLog.data(),
                            weights.dtBias.data(), slots.data(), kRows, stream),
                 kTokens, counts.data());
    test.engine.endStep(slots.data(), kRows, stream);
  }
  std::vector<int32_t> slots = {0, -1, 1}, counts = {4, 0, 2};
  std::vector<float> q, k, v, gate, beta, y;
};

// Tokens per row, in one captured step that is replayed with other inputs.
TEST(CudaTokens, AStepOfSeveralCanBeCapturedAndReplayed) {
  for (int32_t draft : {0, -1, 3}) {
    LayerSpec layer = gdnLayer(2, 2, 8, 16);
    layer.before = draft < 0;
    layer.draft = std::max(0, draft);
    EngineUnderTest replayed({layer}, optionsFor(4));
    EngineUnderTest eager({layer}, optionsFor(4));
    for (int32_t slot : {0, 1}) {
      ASSERT_EQ(replayed.engine.allocateSlot(), slot);
      ASSERT_EQ(eager.engine.allocateSlot(), slot);
    }
    (void)replayed.engine.position(0); // replays are on another stream
    RaggedStep step(layer);
    const CapturedCalls graph(
        [&](void *stream) { step.enqueue(replayed, stream); });
    EXPECT_EQ(fake_forbidden_calls(), 0);
    for (uint64_t seed = 0; seed < 9; ++seed) {
      step.fill(seed);
      graph.replay();
      const std::vector<float> found = step.y;
      step.enqueue(eager, nullptr);
      (void)eager.engine.position(0); // waits for all of it
      ASSERT_EQ(found, step.y) << seed;
      for (int32_t slot : {0, 1})
        ASSERT_EQ(look(replayed, slot), look(eager, slot)) << seed;
    }
    EXPECT_EQ(replayed.engine.position(0), 9 * 4);
    EXPECT_EQ(replayed.engine.position(1), 9 * 2);
    EXPECT_GT(replayed.engine.statistics().compactions, 0);
    EXPECT_EQ(replayed.engine.statistics().compactions,
              eager.engine.statistics().compactions);
  }
}

TEST(CudaTokens, OfAStepAreTheSameInEveryLayer) {
  std::vector<LayerSpec> layers(2, gdnLayer(1, 1, 8, 8));
  layers[1].name = "layer1";
  EngineUnderTest test(layers);
  const int32_t slot = test.engine.allocateSlot();
  std::vector<float> floats(256);
  ss_decode_args args = decodeArgs();
  args.batch = 1;
  args.slots = &slot;
  args.q = args.k = args.v = args.gate = args.beta = {floats.data(), 0};
  args.a_log = args.dt_bias = args.y = floats.data();
  ss_token_args several = {};
  several.struct_size = sizeof several;
  several.tokens = 3;
  ss_engine *engine = test.engine.get();
  EXPECT_EQ(ss_decode_layer_tokens(engine, 0, &args, &several),
            SS_INVALID_ARGUMENT); // outside a step
  test.engine.beginStep(&slot, 1);
  ASSERT_EQ(ss_decode_layer_tokens(engine, 0, &args, &several), SS_OK);
  EXPECT_EQ(ss_decode_layer_tokens(engine, 0, &args, &several),
            SS_BUFFER_FULL);
  EXPECT_EQ(ss_decode_layer(engine, 1, &args), SS_INVALID_ARGUMENT);
  several.tokens = 2;
  EXPECT_EQ(ss_decode_layer_tokens(engine, 1, &args, &several),
            SS_INVALID_ARGUMENT);
  several.tokens = 3;
  ASSERT_EQ(ss_decode_layer_tokens(engine, 1, &args, &several), SS_OK);
  test.engine.endStep(&slot, 1);
  EXPECT_EQ(test.engine.position(slot), 3);
  const std::vector<int32_t> counts = {1, 1};
  const std::vector<int32_t> slots = {slot, -1};
  args.batch = 2;
  args.slots = slots.data();
  several.row_tokens = counts.data();
  test.engine.beginStep(slots.data(), 2);
  EXPECT_EQ(ss_decode_layer_tokens(engine, 0, &args, &several),
            SS_INVALID_ARGUMENT);
  EXPECT_STREQ(ss_last_error(),
               "layer 'layer0': args.batch is 2 with tokens.row_tokens, expected at most 1, "
               "the engine's slots");
}

// More rows than the parameters of one launch hold; one that cannot forget its
// tokens keeps all of them from it.
TEST(CudaRollback, OfManySlotsIsAllOrNone) {
  const int32_t n = 1000;
  EngineUnderTest test({gdnLayer(1, 1, 4, 4)}, optionsFor(n), false);
  std::vector<int32_t> slots, tokens;
  for (int32_t i = 0; i < n; ++i) {
    slots.push_back(test.engine.allocateSlot());
    tokens.push_back(1 + i % 3);
  }
  const LayerSpec &layer = test.kernels.layers()[0];
  std::vector<float> floats(size_t(n * 3 * layer.valueFloats()), 0.25f);
  std::vector<float> y = floats;
  ss_decode_args args = decodeArgs();
  args.batch = n;
  args.slots = slots.data();
  args.q = args.k = args.v = args.gate = args.beta = {floats.data(), 0};
  args.a_log = test.driver.weights(0).aLog.data();
  args.dt_bias = test.driver.weights(0).dtBias.data();
  args.y = y.data();
  ss_token_args several = {};
  several.struct_size = sizeof several;
  several.tokens = 3;
  several.row_tokens = tokens.data();
  test.engine.beginStep(slots.data(), n);
  test.engine.decodeTokens(0, args, several);
  test.engine.endStep(slots);
  ss_engine *engine = test.engine.get();
  ++tokens[777]; // one more than it has
  EXPECT_EQ(ss_slot_rollback_batch(engine, slots.data(), tokens.data(), n,
                                   nullptr),
            SS_INVALID_ARGUMENT);
  for (int32_t i : {0, 447, 448, 776, 999})
    EXPECT_EQ(test.engine.position(slots[size_t(i)]), 1 + i % 3);
  --tokens[777];
  ASSERT_EQ(ss_slot_rollback_batch(engine, slots.data(), tokens.data(), n,
                                   nullptr),
            SS_OK);
  for (int32_t slot : slots)
    ASSERT_EQ(test.engine.position(slot), 0);
}

/// Transfers of more bytes and pieces than fit at a time come through whole.
TEST(CudaPieces, AreCutWhereTheStagingAreaIsFull) {
  EngineUnderTest machine({gdnLayer(1, 1, 4, 4)});
  const auto context = cuda::Context::open(cuda::Driver::get(), 0);
  const cuda::CurrentContext current(*context);
  const cuda::KernelCompiler compiler(*context);
  const cuda::HandOverKernels kernels(context, compiler);
  cuda::PieceMover mover(context, kernels);
  const int64_t bytes = cuda::PieceMover::kStagingBytes / 2 * 3 + 6;
  const cuda::DeviceMemory memory(context, size_t(2 * bytes));
  std::vector<std::byte> sent(static_cast<size_t>(bytes)), back(sent.size());
  for (size_t i = 0; i < sent.size(); ++i)
    sent[i] = std::byte(i * 7 + i / 251);
  // One long piece and thousands of short ones, some of 2 bytes.
  std::vector<cuda::PieceMover::HostPiece> pieces;
  std::vector<cuda::PieceMover::Copy> copies;
  int64_t at = 0;
  auto add = [&](int64_t size) {
    pieces.push_back({memory.address() + cuda::CUdeviceptr(at),
                      sent.data() + at, size});
    copies.push_back({memory.address() + cuda::CUdeviceptr(at),
                      memory.address() + cuda::CUdeviceptr(bytes + at), size,
                      runtime::Storage::F32});
    at += size;
  };
  add(bytes - 400000);
  while (at < bytes)
    add(std::min<int64_t>(bytes - at, at % 3 == 0 ? 2 : 1000));
  mover.upload(pieces, nullptr);
  mover.copy(copies, nullptr);
  for (auto &piece : pieces) {
    piece.host = back.data() + (piece.host - sent.data());
    piece.device += cuda::CUdeviceptr(bytes);
  }
  mover.download(pieces, nullptr);
  EXPECT_TRUE(sent == back);
}

// Every 16-bit value, and every f32 with one of 2^20 leading parts.
TEST(CudaElements, AreThoseOfTheHost) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = uint16_t(bits);
    ASSERT_EQ(ss::bits_of(ss::from_f16(half)),
              ss::bits_of(numeric::F16::widen(half)));
    ASSERT_EQ(ss::bits_of(ss::from_bf16(half)),
              ss::bits_of(numeric::BF16::widen(half)));
  }
  std::mt19937 random(1);
  for (uint64_t lead = 0; lead < uint64_t(1) << 20; ++lead)
    for (const uint32_t rest : {0u, 0x800u, uint32_t(random() & 0xfff)}) {
      const float value = ss::float_of(uint32_t(lead << 12) | rest);
      ASSERT_EQ(ss::to_f16(value), numeric::F16::narrow(value)) << value;
      ASSERT_EQ(ss::to_bf16(value), numeric::BF16::narrow(value)) << value;
    }
}

TEST(CudaHandOver, KernelsCompileForGpus) {
  auto library = nvrtc::Library::open("");
  if (!library)
    GTEST_SKIP() << library.error();
  const std::string folder = SS_SOURCE_DIR "/runtime/src/cuda/device/";
  auto text = [&](const std::string &name) {
    std::ifstream file(folder + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*library)->compile(
        {"handover.cu", text("handover.cuh"),
         {{"cuda/device/elements.cuh", text("elements.cuh")},
          {"cuda/device/schedule.cuh", text("schedule.cuh")}},
         architecture, nvrtc::kernelFlags()});
    ASSERT_TRUE(cubin) << cubin.error();
    EXPECT_EQ(cubin->substr(1, 3), "ELF"); // the real compiler's
  }
}

} // namespace
