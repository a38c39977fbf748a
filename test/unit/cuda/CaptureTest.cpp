//===- CaptureTest.cpp - Engines while streams of others are captured -----===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"

using namespace sinkstate;
using namespace sinkstate::test;
using namespace sinkstate::runtime::cuda;

namespace {

/// Some stream that no engine has a part in is captured while this lives, in the mode
/// that is strictest with all threads.
class OtherCapture {
public:
  OtherCapture() {
    const auto current = gpu.current();
    EXPECT_EQ(call.cuStreamCreate(&stream, kStreamNonBlocking), kSuccess);
    EXPECT_EQ(call.cuStreamBeginCapture(stream, 0), kSuccess);
  }
  ~OtherCapture() {
    const auto current = gpu.current();
    CUgraph graph = nullptr;
    EXPECT_EQ(call.cuStreamEndCapture(stream, &graph), kSuccess);
    EXPECT_EQ(call.cuGraphDestroy(graph), kSuccess);
    EXPECT_EQ(call.cuStreamDestroy(stream), kSuccess);
  }

private:
  const Driver::Functions &call = Driver::get()->functions();
  const GpuContext gpu;
  CUstream stream = nullptr;
};

/// Warnings of engines while it lives.
class Warnings {
public:
  Warnings() {
    setLog(
        [](void *context, ss_log_level, const char *subject, const char *line) {
          if (std::string(subject) == "engine")
            static_cast<Warnings *>(context)->lines.push_back(line);
        },
        this, SS_LOG_WARNING);
  }
  ~Warnings() { setLog(nullptr, nullptr); }
  std::vector<std::string> lines;
};

class Captures : public OnFakeGpu {
protected:
  /// Engines with all that one may hold.
  std::vector<ss_engine_options> kinds() const {
    std::vector<ss_engine_options> all(5, cudaOptions(3));
    all[1].row_capacity = 24;
    all[2].compaction_streams = -1;
    all[3].consolidation = SS_CONSOLIDATION_ASYNCHRONOUS;
    all[4].consolidation = SS_CONSOLIDATION_DETERMINISTIC;
    return all;
  }
  FakePackage source{fourLayers()};
};

TEST_F(Captures, OfOthersLetAnEngineGiveEverythingBack) {
  for (const ss_engine_options &options : kinds()) {
    auto cuda = std::make_unique<CudaUnderTest>(source, options, false);
    DrivenRequest request = cuda->request(source, 1);
    for (int step = 0; step < 9; ++step)
      cuda->driver.step({&request});
    cuda->engine.synchronize();
    Warnings warnings;
    {
      const OtherCapture capture;
      cuda.reset();
    }
    // That it could not wait for the GPU is all that it says.
    ASSERT_EQ(warnings.lines.size(), 1u);
    EXPECT_EQ(warnings.lines[0].find("cuCtxSynchronize() failed"), 0u)
        << warnings.lines[0];
    EXPECT_EQ(fake_live_objects(), 0);
    EXPECT_EQ(fake_live_bytes(), 0u);
  }
}

TEST_F(Captures, RefusalsAreSaidOncePerEngine) {
  for (const char *refused : {"cuMemFree", "cuMemUnmap", "cuMemRelease",
                              "cuMemAddressFree", "cuMemFreeHost", "cuStreamDestroy",
                              "cuEventDestroy", "cuModuleUnload"}) {
    ss_engine_options options = cudaOptions(3);
    options.consolidation = SS_CONSOLIDATION_DETERMINISTIC; // has pinned memory
    const int before = fake_live_objects();
    const Package package = Package::open(source.folder());
    auto engine = std::make_unique<Engine>(package, options);
    (void)engine->allocateSlot();
    Warnings warnings;
    fake_fail(refused, kErrorCaptureUnsupported, 0, 0);
    engine.reset();
    ASSERT_EQ(warnings.lines.size(), 1u) << refused;
    EXPECT_EQ(warnings.lines[0].find(std::string(refused) + "("), 0u)
        << warnings.lines[0];
    EXPECT_GT(fake_live_objects(), before) << refused;
  }
}

TEST_F(Captures, OfOthersAreInNoEnginesWay) {
  for (const ss_engine_options &options : kinds()) {
    CudaUnderTest cuda(source, options, false), alone(source, options, false);
    DrivenRequest a = cuda.request(source, 1), b = alone.request(source, 1);
    DrivenRequest late = a, lateAlone = b;
    auto go = [&](CudaUnderTest &under, DrivenRequest &first, DrivenRequest &second) {
      second = under.request(source, 2);
      StepResult result;
      for (int step = 0; step < 20; ++step)
        result = under.driver.step({&first, &second});
      under.engine.synchronize();
      EXPECT_EQ(ss_engine_tend(under.engine.get(), nullptr), SS_OK);
      under.engine.freeSlot(second.slot);
      EXPECT_EQ(ss_engine_tend(under.engine.get(), nullptr), SS_OK);
      DeviceArray<int32_t> memory(under.engine, 2);
      memory.copyIn({3, 4});
      EXPECT_EQ(memory.copyOut(), (std::vector<int32_t>{3, 4}));
      const std::vector<std::byte> saved = under.engine.snapshot(first.slot);
      second.slot = under.engine.allocateSlot();
      under.engine.restore(second.slot, saved);
      under.engine.freeSlot(second.slot);
      EXPECT_EQ(ss_slot_set_rounding_key(under.engine.get(), first.slot, 3, nullptr),
                SS_OK);
      return result;
    };
    StepResult within;
    {
      const OtherCapture capture;
      within = go(cuda, a, late);
      EXPECT_EQ(fake_forbidden_calls(), 0);
    }
    const StepResult outside = go(alone, b, lateAlone);
    if (options.consolidation != SS_CONSOLIDATION_ASYNCHRONOUS) // which goes by time
      EXPECT_EQ(within.y, outside.y);
  }
}

TEST_F(Captures, AreNotWhatADriverRefusesOtherwise) {
  CudaUnderTest cuda(source, cudaOptions(1), false);
  DrivenRequest request = cuda.request(source, 1);
  auto reset = [&](int error) {
    fake_fail("cuStreamGetCaptureInfo", error, 0, 0);
    const ss_result result = ss_slot_reset(cuda.engine.get(), request.slot, nullptr);
    fake_fail_no_more();
    return result;
  };
  for (int error : {1, 201, 400, 899, 908, 999}) {
    EXPECT_EQ(reset(error), SS_DEVICE_ERROR) << error;
    EXPECT_NE(std::string(ss_last_error()).find("CUDA_ERROR_" + std::to_string(error)),
              std::string::npos)
        << ss_last_error();
  }
  for (int error = kErrorCaptureUnsupported; error <= kErrorCapturedEvent; ++error) {
    EXPECT_EQ(reset(error), SS_INVALID_ARGUMENT) << error;
    EXPECT_NE(std::string(ss_last_error()).find("captured, expected another one"),
              std::string::npos)
        << ss_last_error();
  }
  EXPECT_EQ(reset(kErrorOutOfMemory), SS_OUT_OF_MEMORY);
  fake_fail("cuStreamGetCaptureInfo", kErrorIllegalAddress, 0, 1);
  EXPECT_EQ(ss_slot_reset(cuda.engine.get(), request.slot, nullptr), SS_DEVICE_LOST);
}

TEST_F(Captures, SayWhoseFaultAFunctionIsThatIsNotFound) {
  const ss_engine_options options = cudaOptions(1);
  Package package = Package::open(source.folder());
  auto create = [&](int error, int skip) {
    ss_engine *engine = nullptr;
    fake_fail("cuModuleGetFunction", error, skip, 0);
    const ss_result result = ss_engine_create(package.get(), &options, &engine);
    EXPECT_EQ(engine, nullptr);
    EXPECT_EQ(fake_live_objects(), 0);
    return result;
  };
  for (int skip : {0, 1, 5}) {
    EXPECT_EQ(create(500, skip), SS_MALFORMED_PACKAGE);
    EXPECT_EQ(create(kErrorOutOfMemory, skip), SS_OUT_OF_MEMORY);
    EXPECT_EQ(create(kErrorIllegalAddress, skip), SS_DEVICE_LOST);
    EXPECT_EQ(create(kErrorEccUncorrectable, skip), SS_DEVICE_LOST);
  }
}

} // namespace
