//===- StepTest.cpp - Decoding on the fake GPU ----------------------------===//
//
// The fake GPU runs the same reference kernels as the CPU device, so that both
// engines have to agree in every bit: what differs is who schedules.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::test;
using namespace sinkstate::runtime::cuda;

namespace {

/// Every type, a layer of dense form, different buffers and phases; two layers
/// compact before their tokens.
std::vector<LayerSpec> mixedLayers() {
  std::vector<LayerSpec> layers = fourLayers();
  layers[1].before = layers[2].before = true;
  return layers;
}

/// A CPU engine over the same kernels, without what CUDA has not.
struct CpuTwin {
  CpuTwin(FakePackage &source, int32_t slots)
      : manifest(source.cpuKernels().manifest()),
        package(Package::fromMemory(manifest, &KernelSet::lookup,
                                    &source.cpuKernels())),
        engine(package, options(slots)), driver(engine, source.layers()) {}
  static ss_engine_options options(int32_t slots) {
    ss_engine_options options = engineOptions();
    options.slots = slots;
    options.threads = 1;
    options.dense_fallback = 0;
    options.consolidate_every = 0;
    return options;
  }
  DrivenRequest request(const FakePackage &source, uint64_t seed) {
    DrivenRequest request(source.layers(), seed, lowRankStyle());
    request.slot = engine.allocateSlot();
    return request;
  }
  std::string manifest;
  Package package;
  Engine engine;
  RequestDriver driver;
};

/// What both engines do alike: a CPU compacts a state before it goes dense.
ss_engine_options factoredOptions(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.device = SS_DEVICE_CUDA;
  options.dense_fallback = 0;
  return options;
}

void expectEqualBits(const std::vector<float> &a, const std::vector<float> &b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

class CudaSteps : public OnFakeGpu {
protected:
  FakePackage source{mixedLayers()};
};

/// Outputs, ranks, status and states of a request are those of its twin.
void expectEqualStates(CudaUnderTest &cuda, DrivenRequest &onCuda, CpuTwin &cpu,
                       DrivenRequest &onCpu, size_t layers) {
  for (size_t layer = 0; layer < layers; ++layer) {
    const int32_t l = int32_t(layer);
    EXPECT_EQ(cuda.engine.ranks(l, onCuda.slot),
              cpu.engine.ranks(l, onCpu.slot));
    for (int32_t status : cuda.engine.status(l, onCuda.slot))
      EXPECT_EQ(status, 0);
    expectEqualBits(cuda.engine.densify(l, onCuda.slot),
                    cpu.engine.densify(l, onCpu.slot));
  }
}

TEST_F(CudaSteps, GiveTheBitsOfTheCpu) {
  CudaUnderTest cuda(source, factoredOptions(5));
  CpuTwin cpu(source, 5);
  std::vector<DrivenRequest> a, b;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    a.push_back(cuda.request(source, seed));
    b.push_back(cpu.request(source, seed));
  }
  for (int step = 0; step < 30; ++step) {
    // The second joins late, the third pauses, and there is padding.
    auto rows = [&](std::vector<DrivenRequest> &r) {
      std::vector<DrivenRequest *> batch = {nullptr, &r[0]};
      if (step >= 7)
        batch.push_back(&r[1]);
      if (step % 3 != 1)
        batch.push_back(&r[2]);
      return batch;
    };
    StepResult onCuda = cuda.driver.step(rows(a));
    StepResult onCpu = cpu.driver.step(rows(b));
    ASSERT_LE(onCuda.worstError, 0.1);
    for (size_t layer = 0; layer < onCpu.y.size(); ++layer)
      expectEqualBits(onCuda.y[layer], onCpu.y[layer]);
  }
  for (size_t i = 0; i < a.size(); ++i)
    expectEqualStates(cuda, a[i], cpu, b[i], source.layers().size());
  EXPECT_EQ(cuda.engine.statistics().compactions,
            cpu.engine.statistics().compactions);
  EXPECT_EQ(cuda.engine.statistics().dense_bytes,
            cpu.engine.statistics().dense_bytes);
  EXPECT_EQ(cuda.engine.statistics().live_bytes,
            cpu.engine.statistics().live_bytes);
}

TEST_F(CudaSteps, AllocateNothingAndWaitForNothing) {
  CudaUnderTest cuda(source, cudaOptions(2), false);
  DrivenRequest request = cuda.request(source, 1);
  cuda.driver.step({&request});
  for (int step = 0; step < 100; ++step) // ranks are what they will be
    cuda.driver.step({&request});
  const std::vector<const char *> calls = {
      "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemHostAlloc", "cuMemAlloc", "cuMemFree", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
      "cuStreamSynchronize", "cuCtxSynchronize", "cuModuleLoadDataEx"};
  auto count = [&] {
    std::vector<int> counts;
    for (const char *call : calls)
      counts.push_back(fake_calls(call));
    return counts;
  };
  const std::vector<int> before = count();
  const int launches = fake_calls("cuLaunchKernel");
  for (int step = 0; step < 9; ++step)
    cuda.driver.enqueue(1, nullptr);
  EXPECT_EQ(count(), before);
  // Per step: schedule, plan, foresee, provide, settle, advance, three layers of four
  // kernels, one of one; two of them settle their rows and counts.
  EXPECT_EQ(fake_calls("cuLaunchKernel") - launches, 9 * 23);
}

TEST_F(CudaSteps, CanBeCapturedAtSeveralBatchSizesAndReplayed) {
  CudaUnderTest cuda(source, factoredOptions(4));
  CpuTwin cpu(source, 4);
  std::vector<DrivenRequest> a, b;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    a.push_back(cuda.request(source, seed));
    b.push_back(cpu.request(source, seed));
  }
  GraphReplay graphs(cuda.driver);
  for (int step = 0; step < 40; ++step) {
    auto rows = [&](std::vector<DrivenRequest> &r) {
      if (step % 5 == 2)
        return std::vector<DrivenRequest *>{&r[3]};
      if (step % 5 == 4)
        return std::vector<DrivenRequest *>{&r[1], nullptr, &r[0]};
      return std::vector<DrivenRequest *>{&r[0], &r[1], &r[2]};
    };
    StepResult onCuda = cuda.driver.step(rows(a));
    StepResult onCpu = cpu.driver.step(rows(b));
    for (size_t layer = 0; layer < onCpu.y.size(); ++layer)
      expectEqualBits(onCuda.y[layer], onCpu.y[layer]);
  }
  EXPECT_EQ(graphs.captured(), 2u);
  EXPECT_EQ(fake_forbidden_calls(), 0);
  for (size_t i = 0; i < a.size(); ++i)
    expectEqualStates(cuda, a[i], cpu, b[i], source.layers().size());
}

// What some layers compact before their tokens has begun before they are named, and
// is in no step's way that ends early.
TEST_F(CudaSteps, TakeTheirLayersInAnyOrderAndMayBeAbandoned) {
  std::vector<LayerSpec> many;
  for (size_t i = 0; i < 24; ++i) {
    many.push_back(i % 2 ? mamba2Layer(2, 1, 8, 8) : gdnLayer(2, 2, 8, 8));
    many[i].name = "layer" + std::to_string(i);
    many[i].index = int32_t(i);
    many[i].active = 2, many[i].buffer = 4, many[i].phase = int32_t(i) % 4;
    many[i].policyValue = 1e-2;
    many[i].before = i >= 12;
  }
  FakePackage deep(many);
  CudaUnderTest cuda(deep, factoredOptions(2));
  CpuTwin cpu(deep, 2);
  DrivenRequest a = cuda.request(deep, 1), b = cpu.request(deep, 1);
  std::mt19937 random;
  std::vector<size_t> order(many.size());
  std::iota(order.begin(), order.end(), size_t(0));
  int kind = 0;
  cuda.driver.setSubmit([&](size_t batch) {
    DeviceArray<int32_t> slots(cuda.engine, 1);
    slots.copyIn({a.slot});
    if (kind % 3 == 1)
      std::shuffle(order.begin(), order.end(), random);
    if (kind % 3 == 2) {
      // Due states are compacted in a step that comes to nothing but that.
      cuda.engine.beginStep(slots.data(), 1);
      cuda.driver.enqueueLayer(batch, 14, nullptr);
    }
    cuda.engine.beginStep(slots.data(), 1);
    for (size_t layer : order)
      cuda.driver.enqueueLayer(batch, layer, nullptr);
    cuda.engine.endStep(slots.data(), 1);
  });
  for (; kind < 30; ++kind) {
    StepResult onCuda = cuda.driver.step({&a}), onCpu = cpu.driver.step({&b});
    for (size_t layer = 0; layer < onCpu.y.size(); ++layer)
      expectEqualBits(onCuda.y[layer], onCpu.y[layer]);
  }
  expectEqualStates(cuda, a, cpu, b, many.size());
}

/// The kernels of a replayed step in the order in which the fake GPU runs them:
/// what stands on a branch comes as late as is allowed.
std::vector<std::string> kernelsOfAStep(CudaUnderTest &cuda,
                                        DrivenRequest &request,
                                        size_t padding) {
  std::vector<DrivenRequest *> batch(padding);
  batch.push_back(&request);
  GraphReplay graphs(cuda.driver);
  cuda.driver.step(batch);
  fake_log(1);
  cuda.driver.step(batch);
  std::istringstream lines(fake_logged());
  fake_log(0);
  return {std::istream_iterator<std::string>(lines), {}};
}

/// Of the first kernel from `from` on with this in its name.
size_t placeOf(const std::vector<std::string> &kernels, const char *name,
               size_t from = 0) {
  const auto found = std::find_if(
      kernels.begin() + std::ptrdiff_t(from), kernels.end(),
      [&](auto &kernel) { return kernel.find(name) != std::string::npos; });
  EXPECT_NE(found, kernels.end()) << name;
  return size_t(found - kernels.begin());
}

// On branches: before the layer's own decode, and after some of those in front.
TEST_F(CudaSteps, CompactOnEitherSideOfATokenBesideOtherLayers) {
  for (size_t padding : {0, 8}) {
    CudaUnderTest cuda(source, cudaOptions(9), false);
    DrivenRequest request = cuda.request(source, 1);
    const auto kernels = kernelsOfAStep(cuda, request, padding);
    EXPECT_GT(placeOf(kernels, "layer0_compact"),
              placeOf(kernels, "layer3_decode"));
    for (const std::string layer : {"layer1", "layer2"}) {
      const size_t compact = placeOf(kernels, (layer + "_compact").c_str());
      EXPECT_GT(compact, placeOf(kernels, "layer0_decode"));
      EXPECT_LT(compact, placeOf(kernels, (layer + "_decode").c_str()));
    }
  }
}

TEST_F(CudaSteps, OfFewProgramsDecodeBesideTheirPlan) {
  std::vector<LayerSpec> layers = mixedLayers();
  for (LayerSpec &layer : layers)
    layer.before = false; // the fake GPU plans as soon as any branch waits for it
  FakePackage source(layers);
  CudaUnderTest cuda(source, cudaOptions(1), false);
  DrivenRequest request = cuda.request(source, 1);
  const auto kernels = kernelsOfAStep(cuda, request, 0);
  const size_t decode = placeOf(kernels, "decode");
  EXPECT_LT(decode, placeOf(kernels, "ss_schedule"));
  EXPECT_LT(placeOf(kernels, "ss_provide_rows"), placeOf(kernels, "ss_move_rows"));
  EXPECT_LT(placeOf(kernels, "ss_move_rows"), placeOf(kernels, "compact"));
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "ss_move_rows"), 3);
}

// A layer's decode must not run beside its moves.
TEST_F(CudaSteps, OfManyProgramsMoveRowsBeforeTheSecondDecode) {
  CudaUnderTest cuda(source, cudaOptions(9), false);
  DrivenRequest request = cuda.request(source, 1);
  const auto kernels = kernelsOfAStep(cuda, request, 8);
  const size_t first = placeOf(kernels, "decode"),
               second = placeOf(kernels, "decode", first + 1);
  EXPECT_LT(placeOf(kernels, "ss_order_programs"), first);
  EXPECT_LT(placeOf(kernels, "ss_plan_rows"), first);
  EXPECT_GT(placeOf(kernels, "ss_provide_rows"), first);
  EXPECT_LT(placeOf(kernels, "ss_move_all"), second);
  // That of the first layer alone.
  EXPECT_GT(placeOf(kernels, "ss_move_rows"), first);
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "ss_move_rows"), 1);
}

/// A step that is captured in two parts is refused with parallel compactions and
/// works without.
TEST_F(CudaSteps, CanBeCapturedInPartsWithoutParallelCompactions) {
  for (const int32_t streams : {0, -1}) {
    ss_engine_options options = cudaOptions(1);
    options.compaction_streams = streams;
    CudaUnderTest cuda(source, options, false);
    DrivenRequest request = cuda.request(source, 1);
    cuda.driver.step({&request});
    DeviceArray<int32_t> slots(cuda.engine, 1);
    slots.copyIn({request.slot});
    const Driver::Functions &call = Driver::get()->functions();
    const GpuContext gpu;
    CUstream stream = nullptr;
    {
      const auto current = gpu.current();
      ASSERT_EQ(call.cuStreamCreate(&stream, 0), kSuccess);
    }
    cuda.engine.beginStep(slots.data(), 1, stream);
    {
      const auto current = gpu.current();
      ASSERT_EQ(call.cuStreamBeginCapture(stream, 0), kSuccess);
    }
    // With them the first compaction would wait for a plan outside the capture.
    const int launches = fake_calls("cuLaunchKernel");
    if (streams < 0) {
      cuda.driver.enqueueLayers(1, stream);
    } else {
      try {
        cuda.driver.enqueueLayers(1, stream);
        ADD_FAILURE() << "part of a step was captured";
      } catch (const Exception &error) {
        EXPECT_EQ(error.code(), SS_INVALID_ARGUMENT);
        EXPECT_STREQ(error.what(),
                     "the step has begun outside of the capture of this call's "
                     "stream, expected all calls of a step in one: part of a step "
                     "can be captured with options.compaction_streams -1");
      }
      EXPECT_EQ(ss_end_step(cuda.engine.get(), slots.data(), 1, stream),
                SS_INVALID_ARGUMENT);
      EXPECT_EQ(fake_calls("cuLaunchKernel"), launches);
    }
    {
      const auto current = gpu.current();
      CUgraph graph = nullptr;
      EXPECT_EQ(call.cuStreamEndCapture(stream, &graph), kSuccess);
      (void)call.cuGraphDestroy(graph);
    }
    // The next step is as any other.
    cuda.driver.step({&request});
    const auto current = gpu.current();
    (void)call.cuStreamDestroy(stream);
  }
}

TEST_F(CudaSteps, OfTwoEnginesOnOneGpuAreIndependent) {
  CudaUnderTest first(source, factoredOptions(1)),
      second(source, factoredOptions(1));
  CpuTwin cpu(source, 1);
  DrivenRequest a = first.request(source, 1), b = second.request(source, 2),
                c = cpu.request(source, 1);
  for (int step = 0; step < 12; ++step) {
    StepResult onFirst = first.driver.step({&a});
    second.driver.step({&b});
    StepResult onCpu = cpu.driver.step({&c});
    for (size_t layer = 0; layer < onCpu.y.size(); ++layer)
      expectEqualBits(onFirst.y[layer], onCpu.y[layer]);
  }
}

TEST_F(CudaSteps, OfAFreshSlotSeeNothingOfItsFormerOwner) {
  CudaUnderTest cuda(source, factoredOptions(1));
  CpuTwin cpu(source, 1);
  DrivenRequest former = cuda.request(source, 1);
  for (int step = 0; step < 11; ++step)
    cuda.driver.step({&former});
  cuda.engine.freeSlot(former.slot);
  DrivenRequest a = cuda.request(source, 2), b = cpu.request(source, 2);
  ASSERT_EQ(a.slot, former.slot);
  for (int step = 0; step < 11; ++step) {
    StepResult onCuda = cuda.driver.step({&a});
    StepResult onCpu = cpu.driver.step({&b});
    for (size_t layer = 0; layer < onCpu.y.size(); ++layer)
      expectEqualBits(onCuda.y[layer], onCpu.y[layer]);
  }
  cuda.engine.resetSlot(a.slot);
  for (float x : cuda.engine.densify(0, a.slot))
    ASSERT_EQ(x, 0.0f);
}

TEST_F(CudaSteps, KeepWithinTheRowCapacity) {
  ss_engine_options options = cudaOptions(1);
  options.row_capacity = 7; // buffers of 4: 3 components
  CudaUnderTest cuda(source, options, false);
  DrivenRequest request = cuda.request(source, 1);
  for (int step = 0; step < 20; ++step)
    cuda.driver.step({&request});
  for (int32_t rank : cuda.engine.ranks(0, request.slot))
    EXPECT_LE(rank, 3);
  for (int32_t status : cuda.engine.status(0, request.slot))
    EXPECT_EQ(status, SS_STATUS_TIGHTENED);
}

TEST_F(CudaSteps, AreInOrder) {
  CudaUnderTest cuda(source, cudaOptions(2), false);
  DrivenRequest request = cuda.request(source, 1);
  cuda.driver.step({&request});
  DeviceArray<int32_t> slots(cuda.engine, 2);
  slots.copyIn({0, -1});
  DeviceArray<float> floats(cuda.engine, 1024);
  ss_decode_args args = decodeArgs();
  args.batch = 2;
  args.slots = slots.data();
  args.q = args.k = args.v = args.gate = args.beta = {floats.data(), 0};
  args.a_log = args.dt_bias = args.y = floats.data();
  ss_engine *engine = cuda.engine.get();
  auto expect = [](ss_result found, ss_result code, const std::string &line) {
    EXPECT_EQ(found, code);
    EXPECT_EQ(ss_last_error(), line);
  };
  expect(ss_decode_layer(engine, 0, &args), SS_INVALID_ARGUMENT,
         "layer 'layer0' is decoded outside a step, expected ss_begin_step "
         "first");
  expect(ss_end_step(engine, slots.data(), 2, nullptr), SS_INVALID_ARGUMENT,
         "a step ends that has not begun, expected ss_begin_step first");
  ASSERT_EQ(ss_begin_step(engine, slots.data(), 2, nullptr), SS_OK);
  args.batch = 1;
  expect(ss_decode_layer(engine, 0, &args), SS_INVALID_ARGUMENT,
         "layer 'layer0': args.batch is 1, expected 2 as in ss_begin_step");
  args.batch = 2;
  ASSERT_EQ(ss_decode_layer(engine, 0, &args), SS_OK);
  expect(ss_decode_layer(engine, 0, &args), SS_BUFFER_FULL,
         "layer 'layer0' has decoded this step already, expected one token per "
         "step: call ss_end_step first");
  expect(ss_end_step(engine, slots.data(), 2, nullptr), SS_INVALID_ARGUMENT,
         "the step ends without layer 'layer1' (1 of 4 are decoded), expected "
         "every layer once");
  expect(ss_end_step(engine, slots.data(), 1, nullptr), SS_INVALID_ARGUMENT,
         "batch is 1, expected 2 as in ss_begin_step");
}

TEST_F(CudaSteps, ReportWrongSlotsAtTheNextSynchronization) {
  CudaUnderTest cuda(source, cudaOptions(2), false);
  DeviceArray<int32_t> slots(cuda.engine, 2);
  slots.copyIn({0, 2});
  cuda.engine.beginStep(slots.data(), 2);
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr),
            SS_INVALID_ARGUMENT);
  EXPECT_STREQ(ss_last_error(),
               "a batch named a slot above 1, expected slots of this engine or "
               "negative ones: where it was the only row states may be damaged, "
               "reset them; else it was padding");
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr), SS_OK);
}

} // namespace
