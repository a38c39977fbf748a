//===- LeftStepTest.cpp - Steps that do not come to their end, fake GPU ---===//
//
// A capture is thrown away, a step is begun again, a call fails: what comes next is
// as if the step had not been. What a graph holds is compared launch by launch.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::test;
using namespace sinkstate::runtime::cuda;

namespace {

/// A layer that compacts before its tokens, one after them, one of dense form.
std::vector<LayerSpec> threeLayers() {
  std::vector<LayerSpec> layers =
      numbered({gdnLayer(4, 2, 24, 16), mamba2Layer(2, 1, 16, 24), gdnLayer(2, 2, 8, 8)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].active = 2;
    layers[i].buffer = 3;
    layers[i].policyValue = 1e-2;
  }
  layers[1].before = true;
  layers[2].denseForm = true;
  return layers;
}

/// An engine with one request that has decoded some tokens.
struct Running : CudaUnderTest {
  Running(FakePackage &source, const ss_engine_options &options)
      : CudaUnderTest(source, options, false),
        requested(request(source, 1)), slots(engine, 1) {
    slots.copyIn({requested.slot});
    for (int token = 0; token < 5; ++token)
      driver.step({&requested});
  }
  /// The step begins and so many of its layers are decoded.
  void begin(size_t layers, void *stream) {
    engine.beginStep(slots.data(), 1, stream);
    for (size_t layer = 0; layer < layers; ++layer)
      driver.enqueueLayer(1, layer, stream);
  }
  /// In a capture that is thrown away.
  void lose(size_t layers) {
    const Driver::Functions &call = Driver::get()->functions();
    const GpuContext gpu;
    CUstream stream = nullptr;
    {
      const auto current = gpu.current();
      ASSERT_EQ(call.cuStreamCreate(&stream, kStreamNonBlocking), kSuccess);
      ASSERT_EQ(call.cuStreamBeginCapture(stream, kCaptureModeThreadLocal), kSuccess);
    }
    begin(layers, stream);
    const auto current = gpu.current();
    CUgraph graph = nullptr;
    (void)call.cuStreamEndCapture(stream, &graph);
    (void)call.cuGraphDestroy(graph);
    (void)call.cuStreamDestroy(stream);
  }
  /// What runs in `calls`, but for the threads of consolidation.
  template <typename Calls> std::vector<std::string> kernelsOf(const Calls &calls) {
    fake_log(1);
    calls();
    std::istringstream lines(fake_logged());
    fake_log(0);
    std::vector<std::string> kernels;
    for (std::string line; lines >> line;)
      if (line != "ss_gather")
        kernels.push_back(line);
    return kernels;
  }
  std::vector<std::string> kernelsOfACapture() {
    const CapturedCalls graph([&](void *stream) { driver.enqueue(1, stream); });
    return kernelsOf([&] { graph.replay(); });
  }
  /// Everything of the states that a caller sees.
  std::vector<float> seen() {
    std::vector<float> all;
    for (int32_t layer = 0; layer < engine.layerCount(); ++layer) {
      const std::vector<float> state = engine.densify(layer, requested.slot);
      all.insert(all.end(), state.begin(), state.end());
    }
    const ss_statistics now = engine.statistics();
    for (double x : {double(now.compactions), double(now.folds), double(now.used_bytes),
                     double(engine.position(requested.slot))})
      all.push_back(float(x));
    return all;
  }

  DrivenRequest requested;
  DeviceArray<int32_t> slots;
};

class LeftSteps : public OnFakeGpu {
protected:
  FakePackage source{threeLayers()};

  /// With and without streams of the engine's own, and consolidation.
  std::vector<ss_engine_options> engines() const {
    std::vector<ss_engine_options> all;
    for (int32_t streams : {0, -1})
      for (int32_t mode : {SS_CONSOLIDATION_OFF, SS_CONSOLIDATION_ASYNCHRONOUS}) {
        ss_engine_options options = cudaOptions(2);
        options.compaction_streams = streams;
        options.consolidation = mode;
        all.push_back(options);
      }
    return all;
  }
};

// A graph has its own step, and nothing of the one that was lost.
TEST_F(LeftSteps, OfALostCaptureAreInNoGraphAndInNoStep) {
  for (const ss_engine_options &options : engines())
    for (size_t layers = 0; layers <= source.layers().size(); ++layers) {
      Running clean(source, options), after(source, options);
      after.lose(layers);
      EXPECT_EQ(after.kernelsOfACapture(), clean.kernelsOfACapture()) << layers;
      after.lose(layers);
      auto step = [](Running &run) {
        return run.kernelsOf([&] { run.driver.enqueue(1, nullptr); });
      };
      EXPECT_EQ(step(after), step(clean)) << layers;
    }
}

// Its capture is over, so that nothing of it is in the way of calls between steps.
TEST_F(LeftSteps, OfALostCaptureAreNotUnderWay) {
  Running run(source, cudaOptions(2));
  ss_engine *engine = run.engine.get();
  const int32_t slot = run.requested.slot;
  size_t bytes = 0;
  run.lose(1);
  EXPECT_EQ(ss_engine_tend(engine, nullptr), SS_OK);
  run.lose(1);
  EXPECT_EQ(ss_snapshot_size(engine, slot, &bytes, nullptr), SS_OK);
  run.lose(1);
  int32_t other = -1;
  EXPECT_EQ(ss_slot_alloc(engine, &other, nullptr), SS_OK);
  run.lose(1);
  EXPECT_EQ(ss_slot_fork(engine, slot, other, nullptr), SS_OK);
  run.lose(1);
  EXPECT_EQ(ss_end_step(engine, run.slots.data(), 1, nullptr), SS_INVALID_ARGUMENT);
  run.lose(1);
  const int launches = fake_calls("cuLaunchKernel");
  try {
    run.driver.enqueueLayer(1, 0, nullptr);
    ADD_FAILURE() << "a layer was decoded without a step";
  } catch (const Exception &error) {
    EXPECT_EQ(error.code(), SS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("is decoded outside a step"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launches);
  run.lose(1);
  EXPECT_EQ(ss_slot_reset(engine, slot, nullptr), SS_OK);
  EXPECT_EQ(run.engine.position(slot), 0);
}

// Replays would tidy up again and again after a step that ran once.
TEST_F(LeftSteps, ThatRunAreNotGivenUpInACapture) {
  for (const ss_engine_options &options : engines()) {
    Running run(source, options);
    run.begin(0, nullptr);
    const Driver::Functions &call = Driver::get()->functions();
    const GpuContext gpu;
    CUstream stream = nullptr;
    {
      const auto current = gpu.current();
      ASSERT_EQ(call.cuStreamCreate(&stream, kStreamNonBlocking), kSuccess);
      ASSERT_EQ(call.cuStreamBeginCapture(stream, kCaptureModeThreadLocal), kSuccess);
    }
    const int launches = fake_calls("cuLaunchKernel");
    EXPECT_EQ(ss_begin_step(run.engine.get(), run.slots.data(), 1, stream),
              SS_INVALID_ARGUMENT);
    EXPECT_STREQ(ss_last_error(),
                 "a step that has begun outside of this capture has not ended, "
                 "expected ss_end_step or ss_cancel_step before a step is captured");
    EXPECT_EQ(fake_calls("cuLaunchKernel"), launches);
    {
      const auto current = gpu.current();
      CUgraph graph = nullptr;
      EXPECT_EQ(call.cuStreamEndCapture(stream, &graph), kSuccess);
      (void)call.cuGraphDestroy(graph);
      (void)call.cuStreamDestroy(stream);
    }
    run.driver.step({&run.requested});
    Running clean(source, options);
    clean.driver.step({&clean.requested});
    EXPECT_EQ(run.kernelsOfACapture(), clean.kernelsOfACapture());
  }
}

// Before any layer, however often and wherever.
TEST_F(LeftSteps, BeforeTheirFirstLayerHaveNotBeen) {
  for (const ss_engine_options &options : engines()) {
    Running clean(source, options), again(source, options), captured(source, options);
    again.driver.setSubmit([&](size_t batch) {
      again.begin(0, nullptr);
      again.begin(0, nullptr);
      again.driver.enqueue(batch, nullptr);
    });
    const CapturedCalls graph([&](void *stream) {
      captured.begin(0, stream);
      captured.driver.enqueue(1, stream);
    });
    captured.driver.setSubmit([&](size_t) { graph.replay(); });
    for (int step = 0; step < 12; ++step) {
      std::vector<std::vector<float>> found;
      for (Running *run : {&clean, &again, &captured}) {
        std::vector<float> y;
        for (const auto &layer : run->driver.step({&run->requested}).y)
          y.insert(y.end(), layer.begin(), layer.end());
        if (options.consolidation == SS_CONSOLIDATION_OFF) {
          const std::vector<float> states = run->seen();
          y.insert(y.end(), states.begin(), states.end());
          found.push_back(y);
        }
      }
      for (const std::vector<float> &one : found)
        ASSERT_EQ(std::memcmp(one.data(), found[0].data(), one.size() * 4), 0) << step;
    }
  }
}

// A graph may hold steps of several engines, in turn, and several of one.
TEST_F(LeftSteps, OfOthersAreInTheSameCapture) {
  Running first(source, cudaOptions(2)), second(source, cudaOptions(2)),
      twin(source, cudaOptions(2));
  const CapturedCalls graph([&](void *stream) {
    for (int step = 0; step < 2; ++step) {
      first.engine.beginStep(first.slots.data(), 1, stream);
      second.engine.beginStep(second.slots.data(), 1, stream);
      for (size_t layer = 0; layer < source.layers().size(); ++layer) {
        first.driver.enqueueLayer(1, layer, stream);
        second.driver.enqueueLayer(1, layer, stream);
      }
      second.engine.endStep(second.slots.data(), 1, stream);
      first.engine.endStep(first.slots.data(), 1, stream);
    }
  });
  for (int step = 0; step < 8; ++step) {
    graph.replay();
    twin.driver.enqueue(1, nullptr);
    twin.driver.enqueue(1, nullptr);
    ASSERT_EQ(first.seen(), twin.seen()) << step;
    ASSERT_EQ(second.seen(), twin.seen()) << step;
  }
}

// A launch that the driver refuses leaves nothing half done in what begins a step.
TEST_F(LeftSteps, WhoseBeginningFailsCanBegin) {
  Running clean(source, cudaOptions(2)), failing(source, cudaOptions(2));
  for (int step = 0; step < 45; ++step) {
    fake_fail("cuLaunchKernel", 1, step / 3 % 3, 0); // any launch, due or not
    if (ss_begin_step(failing.engine.get(), failing.slots.data(), 1, nullptr) != SS_OK) {
      const ss_result end =
          ss_end_step(failing.engine.get(), failing.slots.data(), 1, nullptr);
      EXPECT_EQ(end, SS_INVALID_ARGUMENT);
    }
    fake_fail_no_more();
    clean.driver.step({&clean.requested});
    failing.driver.step({&failing.requested});
    ASSERT_EQ(failing.seen(), clean.seen()) << step;
  }
}

// The lists of a step name slots: an owner that comes within it would be compacted,
// counted and moved for the one before.
TEST_F(LeftSteps, AreOverBeforeTheirSlotsHaveOtherOwners) {
  Running run(source, cudaOptions(2));
  ss_engine *engine = run.engine.get();
  const int32_t old = run.requested.slot;
  run.begin(1, nullptr);
  run.engine.freeSlot(old);
  const int32_t other = run.engine.allocateSlot();
  EXPECT_NE(other, old);
  int32_t none = -1;
  EXPECT_EQ(ss_slot_alloc(engine, &none, nullptr), SS_SLOTS_EXHAUSTED);
  EXPECT_STREQ(ss_last_error(),
               "all 2 slots have owners, or had them when the step began that has not "
               "ended (1): end it, free one before, or create the engine with more");
  EXPECT_EQ(ss_slot_reset(engine, other, nullptr), SS_INVALID_ARGUMENT);
  EXPECT_EQ(ss_slot_set_rounding_key(engine, other, 7, nullptr), SS_INVALID_ARGUMENT);
  for (size_t layer = 1; layer < source.layers().size(); ++layer)
    run.driver.enqueueLayer(1, layer, nullptr);
  run.engine.endStep(run.slots.data(), 1);
  const int32_t again = run.engine.allocateSlot();
  EXPECT_EQ(again, old);
  EXPECT_EQ(run.engine.position(again), 0);
  EXPECT_EQ(run.engine.position(other), 0);
  for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer)
    for (float x : run.engine.densify(layer, again))
      ASSERT_EQ(x, 0.0f);
  // Of a step that is given up they are to be had as well.
  run.begin(0, nullptr);
  run.engine.freeSlot(again);
  EXPECT_EQ(ss_slot_alloc(engine, &none, nullptr), SS_SLOTS_EXHAUSTED);
  run.slots.copyIn({-1});
  run.driver.enqueue(1, nullptr);
  EXPECT_EQ(run.engine.allocateSlot(), old);
}

// A slot that is handed out while a step is captured is made fresh at once, and not
// by every replay.
TEST_F(LeftSteps, ThatAreBeingCapturedDoNotTakeAResetIn) {
  Running run(source, cudaOptions(2));
  int32_t other = -1;
  const CapturedCalls graph([&](void *stream) {
    run.begin(1, stream);
    EXPECT_EQ(ss_slot_alloc(run.engine.get(), &other, stream), SS_INVALID_ARGUMENT);
    other = run.engine.allocateSlot();
    for (size_t layer = 1; layer < source.layers().size(); ++layer)
      run.driver.enqueueLayer(1, layer, stream);
    run.engine.endStep(run.slots.data(), 1, stream);
  });
  EXPECT_EQ(run.engine.position(other), 0);
  for (const std::string &kernel : run.kernelsOf([&] { graph.replay(); }))
    EXPECT_NE(kernel, "ss_reset_slot");
}

// What comes of their slots is what replays do to them, and is over with a reset.
TEST_F(LeftSteps, ThatAreCancelledInTheirCaptureAreLeftByReplays) {
  for (const ss_engine_options &options : engines()) {
    Running run(source, options);
    ss_engine *engine = run.engine.get();
    size_t bytes = 0;
    const CapturedCalls graph([&](void *stream) {
      run.begin(1, stream);
      run.engine.cancelStep(stream);
    });
    EXPECT_EQ(ss_snapshot_size(engine, run.requested.slot, &bytes, nullptr), SS_OK);
    for (int replay = 0; replay < 2; ++replay) {
      graph.replay();
      EXPECT_EQ(ss_snapshot_size(engine, run.requested.slot, &bytes, nullptr),
                SS_INVALID_ARGUMENT);
      run.driver.enqueue(1, nullptr);
      EXPECT_EQ(ss_engine_synchronize(engine, nullptr), SS_INVALID_ARGUMENT);
      EXPECT_EQ(ss_slot_reset(engine, run.requested.slot, nullptr), SS_OK);
      EXPECT_EQ(ss_snapshot_size(engine, run.requested.slot, &bytes, nullptr), SS_OK);
      run.driver.enqueue(1, nullptr);
      EXPECT_EQ(ss_engine_synchronize(engine, nullptr), SS_OK);
    }
  }
}

// Those of a capture that is over are nothing; one that is not over is its stream's.
TEST_F(LeftSteps, AreCancelledWhereTheyWereBegun) {
  for (const ss_engine_options &options : engines()) {
    Running run(source, options);
    ss_engine *engine = run.engine.get();
    size_t bytes = 0;
    run.lose(1);
    EXPECT_EQ(ss_cancel_step(engine, nullptr), SS_OK);
    EXPECT_EQ(ss_snapshot_size(engine, run.requested.slot, &bytes, nullptr), SS_OK);
    EXPECT_EQ(fake_forbidden_calls(), 0);
    const int launches = fake_calls("cuLaunchKernel");
    EXPECT_EQ(ss_cancel_step(engine, nullptr), SS_OK); // there is none
    EXPECT_EQ(fake_calls("cuLaunchKernel"), launches);
    run.begin(0, nullptr);
    const CapturedCalls nothing([&](void *stream) {
      EXPECT_EQ(ss_cancel_step(engine, stream), SS_INVALID_ARGUMENT);
    });
    EXPECT_EQ(ss_cancel_step(engine, nullptr), SS_OK);
    const CapturedCalls step([&](void *stream) {
      run.begin(0, stream);
      if (options.compaction_streams >= 0) {
        EXPECT_EQ(ss_cancel_step(engine, nullptr), SS_INVALID_ARGUMENT);
        EXPECT_STREQ(ss_last_error(),
                     "a step is being captured by another stream than this call's, "
                     "expected that stream or the end of its capture");
      }
      run.engine.cancelStep(stream);
      run.driver.enqueue(1, stream);
    });
    Running clean(source, options);
    step.replay();
    clean.driver.enqueue(1, nullptr);
    if (options.consolidation == SS_CONSOLIDATION_OFF)
      EXPECT_EQ(run.seen(), clean.seen());
    EXPECT_EQ(ss_engine_synchronize(engine, nullptr), SS_OK);
  }
}

/// A layer whose states stay in factors, and one whose states become matrices, both
/// compacting after the same tokens.
class FoldsOfLeftSteps : public OnFakeGpu {
protected:
  static std::vector<LayerSpec> twoLayers(bool firstStaysFactored) {
    std::vector<LayerSpec> layers = numbered({gdnLayer(4, 2, 24, 16), gdnLayer(2, 2, 16, 16)});
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].active = 2;
      layers[i].buffer = 3;
      layers[i].policyValue = i == 0 && firstStaysFactored ? 0.9 : 0;
    }
    return layers;
  }
  /// Steps in two engines, of which one, once states are matrices, leaves a step
  /// before each of its own, as `leave` says; what they count stays the same.
  template <typename Leave>
  void expectTheSameCounts(FakePackage &source, const Leave &leave) {
    CudaUnderTest clean(source, cudaOptions(1), false), left(source, cudaOptions(1), false);
    RequestStyle style;
    style.gateMean = -40;
    DrivenRequest a(source.layers(), 1, style), b(source.layers(), 1, style);
    a.slot = clean.engine.allocateSlot();
    b.slot = left.engine.allocateSlot();
    DeviceArray<int32_t> slots(left.engine, 1);
    slots.copyIn({b.slot});
    for (int step = 0; step < 90; ++step) {
      if (step == 40)
        left.driver.setSubmit([&](size_t batch) {
          left.engine.beginStep(slots.data(), 1);
          leave(left, slots);
          left.driver.enqueue(batch, nullptr);
        });
      clean.driver.step({&a});
      left.driver.step({&b});
      const ss_statistics x = clean.engine.statistics(), y = left.engine.statistics();
      ASSERT_EQ(x.folds, y.folds) << step;
      ASSERT_EQ(x.went_dense, y.went_dense) << step;
      if (source.layers()[0].policyValue == 0)
        ASSERT_EQ(x.compactions, y.compactions) << step;
    }
    EXPECT_GT(left.engine.statistics().folds, 10);
  }
};

// A call of several tokens takes back the folds of the whole step, and lists anew what
// its own layer folds: what comes behind it has nothing to take back.
TEST_F(FoldsOfLeftSteps, AreTakenBackOnceWhereALayerTakesSeveralTokens) {
  FakePackage source(twoLayers(true));
  const std::vector<float> zeros(4096);
  expectTheSameCounts(source, [&](CudaUnderTest &run, DeviceArray<int32_t> &slots) {
    DeviceArray<float> rows(run.engine, zeros.size()), y(run.engine, zeros.size());
    rows.copyIn(zeros);
    ss_decode_args args = decodeArgs();
    args.batch = 1;
    args.slots = slots.data();
    args.q = args.k = args.v = args.gate = args.beta = {rows.data(), 0};
    args.a_log = args.dt_bias = rows.data();
    args.y = y.data();
    ss_token_args several = {};
    several.struct_size = sizeof several;
    several.tokens = 2;
    run.engine.decodeTokens(0, args, several);
  });
}

// The step that is begun anew folds them again, and that is what is counted.
TEST_F(FoldsOfLeftSteps, AreNotCountedWhereTheirLayerHasBegun) {
  for (size_t layers : {1, 2}) {
    FakePackage source(twoLayers(false));
    expectTheSameCounts(source, [&](CudaUnderTest &run, DeviceArray<int32_t> &) {
      for (size_t layer = 0; layer < layers; ++layer)
        run.driver.enqueueLayer(1, layer, nullptr);
    });
  }
}

} // namespace
