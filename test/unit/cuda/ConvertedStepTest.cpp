//===- ConvertedStepTest.cpp - Steps over rows of any type, fake GPU ------===//
//
// What a step over a caller's own types launches, allocates and refuses. That its
// numbers are right is in test/conformance/ConversionsTest.cpp, which the fake GPU
// runs too.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"
#include "TypedBatch.h"

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> twoLayers() {
  std::vector<LayerSpec> layers = {gdnLayer(4, 2, 24, 16),
                                   mamba2Layer(2, 1, 16, 24)};
  layers[1].name = "layer1";
  layers[1].index = 1;
  return layers;
}

constexpr int32_t kRows = 2;
constexpr RowForm kBf16 = {SS_ELEMENT_BF16, SS_ELEMENT_BF16, SS_ELEMENT_BF16,
                           SS_SLOT_I64,     SS_PADDING_UP_TO, 0};

class ConvertedSteps : public OnFakeGpu {
protected:
  static ss_engine_options options(int32_t maxBatch = kRows) {
    ss_engine_options options = cudaOptions(3);
    options.reserved_slots = 1;
    options.max_batch = maxBatch;
    return options;
  }
  /// A batch of one request and a row of padding, with numbers.
  std::unique_ptr<TypedBatch> batchOf(CudaUnderTest &cuda, const RowForm &form) {
    if (slot < 0)
      slot = cuda.engine.allocateSlot();
    auto batch = std::make_unique<TypedBatch>(cuda.engine, source.layers(),
                                              form, kRows);
    batch->setSlots({slot, -1});
    for (size_t layer = 0; layer < source.layers().size(); ++layer)
      batch->fill(layer, {RandomRequest(source.layers()[layer], layer).token(0),
                          TokenValues()});
    return batch;
  }
  /// Launches of one step of an engine whose first one is over.
  int launchesOf(const RowForm &form, int32_t maxBatch = kRows) {
    slot = -1;
    CudaUnderTest cuda(source, options(maxBatch), false);
    const auto batch = batchOf(cuda, form);
    batch->enqueue();
    const int before = fake_calls("cuLaunchKernel");
    batch->enqueue();
    return fake_calls("cuLaunchKernel") - before;
  }

  FakePackage source{twoLayers()};
  int32_t slot = -1;
};

TEST_F(ConvertedSteps, LaunchOneKernelBeforeALayerAndOneAfterIt) {
  const int plain = launchesOf(RowForm(), 0);
  RowForm form;
  EXPECT_EQ(launchesOf(form), plain);
  form.gap = 8; // strides that kernels take
  EXPECT_EQ(launchesOf(form), plain);
  form = kBf16; // the slots at the step's beginning alone, too
  EXPECT_EQ(launchesOf(form), plain + 1 + 2 * 2);
  form.slotType = SS_SLOT_I32, form.padding = SS_PADDING_NEGATIVE;
  EXPECT_EQ(launchesOf(form), plain + 2 * 2);
  form.yType = SS_ELEMENT_F32;
  EXPECT_EQ(launchesOf(form), plain + 2);
  form.inputType = form.gateType = SS_ELEMENT_F32, form.yType = SS_ELEMENT_F16;
  EXPECT_EQ(launchesOf(form), plain + 2);
  form = RowForm(), form.slotType = SS_SLOT_I64;
  EXPECT_EQ(launchesOf(form), plain + 1);
  form = RowForm(), form.gap = 3; // f32 where kernels cannot read it
  EXPECT_EQ(launchesOf(form), plain + 2 * 2);
}

TEST_F(ConvertedSteps, AllocateNothingAndWaitForNothing) {
  CudaUnderTest cuda(source, options(), false);
  const auto batch = batchOf(cuda, kBf16);
  for (int step = 0; step < 40; ++step)
    batch->enqueue();
  auto count = [] {
    std::vector<int> counts;
    for (const char *call :
         {"cuMemCreate", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync",
          "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuCtxSynchronize",
          "cuModuleLoadDataEx"})
      counts.push_back(fake_calls(call));
    return counts;
  };
  const std::vector<int> before = count();
  for (int step = 0; step < 9; ++step)
    batch->enqueue();
  EXPECT_EQ(count(), before);
}

// The rows, slots and padding of a graph are those of its replays.
TEST_F(ConvertedSteps, CanBeCapturedAndReplayed) {
  CudaUnderTest cuda(source, options(), false);
  const auto batch = batchOf(cuda, kBf16);
  const int32_t other = cuda.engine.allocateSlot();
  const CapturedCalls graph([&](void *stream) { batch->enqueue(stream); });
  EXPECT_EQ(fake_forbidden_calls(), 0);
  graph.replay();
  EXPECT_EQ(cuda.engine.position(slot), 1);
  EXPECT_EQ(cuda.engine.position(other), 0);
  const std::vector<float> first = batch->y(0);
  const size_t width = first.size() / kRows;
  const std::vector<float> zero(width);
  auto row = [&](const std::vector<float> &y, size_t b) {
    return std::vector<float>(y.begin() + int64_t(b * width),
                              y.begin() + int64_t((b + 1) * width));
  };
  EXPECT_NE(row(first, 0), zero);
  EXPECT_EQ(row(first, 1), zero);
  batch->setSlots({-1, other});
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    batch->fill(layer, {TokenValues(),
                        RandomRequest(source.layers()[layer], layer).token(0)});
  graph.replay();
  EXPECT_EQ(cuda.engine.position(slot), 1);
  EXPECT_EQ(cuda.engine.position(other), 1);
  EXPECT_EQ(row(batch->y(0), 0), zero);
  EXPECT_EQ(row(batch->y(0), 1), row(first, 0)); // a fresh request's too
}

// Whoever gives a layer other arrays has them converted, and the layers after it
// find theirs again. Each step reads its slots anew.
TEST_F(ConvertedSteps, ConvertTheSlotsOfEachArrayAndStep) {
  CudaUnderTest cuda(source, options(), false);
  const auto batch = batchOf(cuda, kBf16);
  const int32_t other = cuda.engine.allocateSlot();
  DeviceArray<int64_t> wide(cuda.engine, kRows);
  for (int32_t now : {slot, other, slot}) {
    const int64_t before = cuda.engine.position(now);
    batch->setSlots({now, -1});
    wide.copyIn({now, 0});
    cuda.engine.beginStepRows(batch->rows());
    ss_decode_args args = batch->args(0);
    args.slots = reinterpret_cast<const int32_t *>(wide.data());
    const int conversions = fake_calls("cuLaunchKernel");
    cuda.engine.decodeLayer(0, args);
    EXPECT_GT(fake_calls("cuLaunchKernel"), conversions);
    cuda.engine.decodeLayer(1, batch->args(1));
    cuda.engine.endStepRows(batch->rows());
    EXPECT_EQ(cuda.engine.position(now), before + 1);
    const std::vector<float> y = batch->y(1);
    EXPECT_NE(y[0], 0.0f);
    for (size_t i = y.size() / 2; i < y.size(); ++i)
      ASSERT_EQ(y[i], 0.0f);
  }
  EXPECT_EQ(cuda.engine.position(slot), 2);
  EXPECT_EQ(cuda.engine.position(other), 1);
  // Slots that were not converted are those of a step that begins with them.
  DeviceArray<int32_t> narrow(cuda.engine, kRows);
  narrow.copyIn({other, -1});
  batch->setSlots({other, -1});
  cuda.engine.beginStep(narrow.data(), kRows);
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    cuda.engine.decodeLayer(int32_t(layer), batch->args(layer));
  cuda.engine.endStep(narrow.data(), kRows);
  EXPECT_EQ(cuda.engine.position(other), 2);
  EXPECT_NE(batch->y(1)[0], 0.0f);
}

/// Four requests whose rows are int64 slots, as a batch of their own and at the end
/// of one of eight rows.
struct FourRequests {
  static constexpr RowForm kWide = {SS_ELEMENT_F32, SS_ELEMENT_F32, SS_ELEMENT_F32,
                                    SS_SLOT_I64,    SS_PADDING_NEGATIVE, 0};
  FourRequests(FakePackage &source, int32_t streams)
      : layers(source.layers()), cuda(source, options(streams), false),
        four(cuda.engine, layers, kWide, 4), eight(cuda.engine, layers, kWide, 8) {
    for (int i = 0; i < 4; ++i) {
      slots.push_back(cuda.engine.allocateSlot());
      requests.emplace_back(layers, uint64_t(i), lowRankStyle());
    }
    four.setSlots(slots);
    std::vector<int32_t> behind = {-1, -1, -1, -1};
    behind.insert(behind.end(), slots.begin(), slots.end());
    eight.setSlots(behind);
  }
  static ss_engine_options options(int32_t streams) {
    ss_engine_options options;
    ss_engine_options_init(&options);
    options.device = SS_DEVICE_CUDA;
    options.slots = 4;
    options.max_batch = 8;
    options.compaction_streams = streams;
    return options;
  }
  /// The batch of four rows has the next token of all.
  void fill() {
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      std::vector<TokenValues> rows;
      for (DrivenRequest &request : requests)
        rows.push_back(request.inputs(layer).token(position));
      four.fill(layer, rows);
    }
    ++position;
  }
  /// A step of that; `begin` comes before it.
  template <typename Begin> void step(void *stream, const Begin &begin) {
    fill();
    begin();
    four.enqueue(stream);
    cuda.engine.synchronize(stream);
  }
  std::vector<std::vector<float>> states() {
    std::vector<std::vector<float>> all;
    for (int32_t slot : slots)
      for (int32_t layer = 0; layer < cuda.engine.layerCount(); ++layer)
        all.push_back(cuda.engine.densify(layer, slot));
    return all;
  }

  std::vector<LayerSpec> layers;
  CudaUnderTest cuda;
  TypedBatch four, eight;
  std::vector<int32_t> slots;
  std::vector<DrivenRequest> requests;
  int64_t position = 0;
};

// What a step that was left has planned may still read its slots when those of the
// next one are converted. Mixed, these two lists name every slot twice.
TEST_F(ConvertedSteps, ThatAreBegunAgainHaveTheirOwnSlots) {
  for (int32_t streams : {0, -1})
    for (unsigned seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(testing::Message() << streams << " streams, seed " << seed);
      FourRequests plain(source, streams), left(source, streams);
      for (int token = 0; token < 12; ++token) {
        plain.step(nullptr, [] {});
        fake_shuffle(seed);
        left.step(nullptr, [&] {
          left.cuda.engine.beginStepRows(left.eight.rows());
          left.cuda.engine.beginStepRows(left.four.rows());
          left.cuda.engine.beginStepRows(left.eight.rows());
        });
        fake_shuffle(0);
      }
      ASSERT_EQ(left.states(), plain.states());
    }
}

// The same where the next step has another stream, which comes after the first one's.
TEST_F(ConvertedSteps, ThatAreBegunAgainOnAnotherStreamHaveTheirOwnSlots) {
  using namespace sinkstate::runtime::cuda;
  const Driver::Functions &call = Driver::get()->functions();
  const GpuContext gpu;
  CUstream streams[2] = {};
  CUevent event = nullptr;
  FourRequests plain(source, 0), left(source, 0);
  {
    const auto current = gpu.current();
    for (CUstream &stream : streams)
      ASSERT_EQ(call.cuStreamCreate(&stream, kStreamNonBlocking), kSuccess);
    ASSERT_EQ(call.cuEventCreate(&event, kEventDisableTiming), kSuccess);
  }
  for (unsigned token = 0; token < 48; ++token) {
    plain.step(nullptr, [] {});
    const CUstream first = streams[token % 2], second = streams[1 - token % 2];
    fake_shuffle(1 + token);
    left.step(second, [&] {
      ss_rows rows = left.eight.rows();
      rows.stream = first;
      left.cuda.engine.beginStepRows(rows);
      const auto current = gpu.current();
      ASSERT_EQ(call.cuEventRecord(event, first), kSuccess);
      ASSERT_EQ(call.cuStreamWaitEvent(second, event, 0), kSuccess);
    });
    fake_shuffle(0);
  }
  EXPECT_EQ(left.states(), plain.states());
  const auto current = gpu.current();
  (void)call.cuEventDestroy(event);
  for (CUstream stream : streams)
    (void)call.cuStreamDestroy(stream);
}

// Nobody waits between them: each converts its own slots, of its own number of rows,
// as they are then.
TEST_F(ConvertedSteps, GraphsOfSeveralBatchSizesFollowEachOther) {
  for (int32_t streams : {0, -1}) {
    FourRequests plain(source, streams), graphs(source, streams);
    TypedBatch two(graphs.cuda.engine, source.layers(), FourRequests::kWide, 2);
    two.setSlots({-1, -1});
    const CapturedCalls ofFour([&](void *stream) { graphs.four.enqueue(stream); });
    const CapturedCalls ofEight([&](void *stream) { graphs.eight.enqueue(stream); });
    const CapturedCalls ofTwo([&](void *stream) { two.enqueue(stream); });
    // Padding alone, but for the batch that has tokens.
    graphs.eight.setSlots(std::vector<int32_t>(8, -1));
    for (unsigned step = 0; step < 24; ++step) {
      plain.step(nullptr, [] {});
      graphs.fill();
      fake_shuffle(1 + step);
      ofEight.launchOn(ofEight);
      ofTwo.launchOn(ofEight);
      ofFour.launchOn(ofEight);
      ofTwo.launchOn(ofEight);
      ofEight.launchOn(ofEight);
      ofEight.wait();
      fake_shuffle(0);
      graphs.cuda.engine.tend();
    }
    EXPECT_EQ(graphs.states(), plain.states());
  }
}

TEST_F(ConvertedSteps, ASlotThatIsNoneIsPaddingAndReported) {
  CudaUnderTest cuda(source, options(), false);
  const auto batch = batchOf(cuda, kBf16);
  for (int32_t none : {3, 1 << 20}) {
    batch->setSlots({slot, none});
    const int64_t before = cuda.engine.position(slot);
    batch->enqueue();
    const std::vector<float> y = batch->y(0);
    for (size_t i = y.size() / 2; i < y.size(); ++i)
      ASSERT_EQ(y[i], 0.0f);
    EXPECT_EQ(cuda.engine.position(slot), before + 1);
    EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr),
              SS_INVALID_ARGUMENT);
    EXPECT_STREQ(ss_last_error(),
                 "a batch named a slot that is neither 0 to 2 nor padding by its "
                 "rule, expected one of them: its rows were padding, no state was "
                 "touched");
    cuda.engine.synchronize(); // said once
  }
}

TEST_F(ConvertedSteps, RefuseWhatIsWrong) {
  CudaUnderTest cuda(source, options(), false);
  const auto batch = batchOf(cuda, kBf16);
  cuda.engine.beginStepRows(batch->rows());
  auto error = [&](auto change) -> std::string {
    ss_decode_args args = batch->args(0);
    change(args);
    EXPECT_EQ(ss_decode_layer(cuda.engine.get(), 0, &args), SS_INVALID_ARGUMENT);
    return ss_last_error();
  };
  const int launches = fake_calls("cuLaunchKernel");
  EXPECT_EQ(error([](auto &args) { args.input_type = 3; }),
            "layer 'layer0': args.input_type is 3, expected SS_ELEMENT_F32 (0), SS_ELEMENT_F16 "
            "(1) or SS_ELEMENT_BF16 (2)");
  EXPECT_EQ(error([](auto &args) { args.slot_type = -1; }),
            "layer 'layer0': args.slot_type is -1, expected SS_SLOT_I32 (0) or SS_SLOT_I64 (1)");
  EXPECT_EQ(error([](auto &args) { args.padding = 7; }),
            "layer 'layer0': args.padding is 7, expected an ss_padding (0 to 2)");
  EXPECT_EQ(error([](auto &args) { args.padding_value = 1; }),
            "layer 'layer0': args.padding_value is 1, which a request can own, expected no slot: "
            "reserve it (options.reserved_slots)");
  EXPECT_EQ(error([](auto &args) { args.batch = 3; }),
            "layer 'layer0': args.batch is 3, expected at most 2 rows to convert "
            "(options.max_batch): create the engine with more");
  EXPECT_EQ(error([](auto &args) { args.v.stride = 95; }),
            "layer 'layer0': args.v has stride 95, expected 0 (packed) or at least 96 elements");
  EXPECT_EQ(error([](auto &args) {
              args.k.data = reinterpret_cast<const float *>(
                  reinterpret_cast<const char *>(args.k.data) + 1);
            }),
            "layer 'layer0': args.k begins 1 bytes past a multiple of 2, expected a multiple of "
            "2, the size of its elements");
  EXPECT_EQ(error([](auto &args) { ++args.slots; }),
            "layer 'layer0': args.slots begins 4 bytes past a multiple of 8, expected a multiple "
            "of 8, the size of its elements");
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launches);
}

TEST_F(ConvertedSteps, WithoutRoomTheErrorSaysHowToGetIt) {
  CudaUnderTest cuda(source, options(0), false);
  const auto batch = batchOf(cuda, RowForm());
  RowForm apart;
  apart.gap = 3;
  const auto misplaced = batchOf(cuda, apart);
  cuda.engine.beginStepRows(batch->rows());
  ss_decode_args args = batch->args(0);
  args.y_type = SS_ELEMENT_F16;
  EXPECT_EQ(ss_decode_layer(cuda.engine.get(), 0, &args), SS_INVALID_ARGUMENT);
  EXPECT_TRUE(std::string(ss_last_error()).starts_with("options.max_batch is 0"));
  args = misplaced->args(0);
  EXPECT_EQ(ss_decode_layer(cuda.engine.get(), 0, &args), SS_INVALID_ARGUMENT);
  EXPECT_STREQ(ss_last_error(),
               "layer 'layer0': args.q has rows that do not begin at multiples of 16 bytes "
               "(stride 38), expected what a GPU reads at once: move them, or "
               "create the engine with options.max_batch to have them copied");
}

TEST_F(ConvertedSteps, MemoryIsPlannedCountedAndGivenBack) {
  const int before = fake_live_objects();
  const Package package = Package::open(source.folder());
  {
    Engine plain(package, options(0));
    const size_t without = fake_live_bytes();
    Engine converting(package, options(1000));
    const int64_t bytes = converting.statistics().conversion_bytes;
    EXPECT_EQ(plain.statistics().conversion_bytes, 0);
    EXPECT_EQ(int64_t(fake_live_bytes()) - int64_t(without),
              int64_t(without) + bytes);
    // Slots, q and k of 48 floats at most, v and y of 96, gates and betas of 4.
    EXPECT_GE(bytes, 1000 * 4 * (1 + 2 * 32 + 2 * 96 + 4 + 4));
    EXPECT_EQ(package.plan(options(1000)).worst_case,
              package.plan(options(0)).worst_case + bytes);
  }
  EXPECT_EQ(fake_live_objects(), before);
  fake_set_memory_limit(size_t(1) << 20);
  try {
    Engine tooMuch(package, options(1 << 20));
    FAIL() << "there was memory";
  } catch (const Exception &failure) {
    EXPECT_EQ(failure.code(), SS_OUT_OF_MEMORY);
  }
  EXPECT_EQ(fake_live_objects(), before);
}

} // namespace
