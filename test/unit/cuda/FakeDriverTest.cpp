//===- FakeDriverTest.cpp - The fake driver refuses what CUDA refuses -----===//

#include "CudaUnderTest.h"

#include "cuda/Context.h"

using namespace sinkstate::test;
using namespace sinkstate::runtime::cuda;

namespace {

class FakeDriver : public OnFakeGpu {
protected:
  FakeDriver() : driver(Driver::get()), context(Context::open(driver, 0)) {}
  const std::shared_ptr<const Driver> driver;
  const std::shared_ptr<const Context> context;
  const Driver::Functions &call = driver->functions();
};

TEST_F(FakeDriver, ReleasesNothingWithoutAContextOrInACapture) {
  CUdeviceptr memory = 0;
  void *pinned = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  {
    const CurrentContext current(*context);
    ASSERT_EQ(call.cuMemAlloc(&memory, 64), kSuccess);
    ASSERT_EQ(call.cuMemHostAlloc(&pinned, 64, 0), kSuccess);
    ASSERT_EQ(call.cuStreamCreate(&stream, 0), kSuccess);
    ASSERT_EQ(call.cuStreamCreate(&other, 0), kSuccess);
    ASSERT_EQ(call.cuEventCreate(&event, 0), kSuccess);
  }
  const int live = fake_live_objects();
  constexpr CUresult kInvalidContext = 201;
  EXPECT_EQ(call.cuMemFree(memory), kInvalidContext);
  EXPECT_EQ(call.cuMemFreeHost(pinned), kInvalidContext);
  EXPECT_EQ(call.cuStreamDestroy(stream), kInvalidContext);
  EXPECT_EQ(call.cuEventDestroy(event), kInvalidContext);
  const CurrentContext current(*context);
  ASSERT_EQ(call.cuStreamBeginCapture(stream, 0), kSuccess);
  EXPECT_EQ(call.cuMemFree(memory), kErrorCaptureUnsupported);
  EXPECT_EQ(call.cuMemFreeHost(pinned), kErrorCaptureUnsupported);
  EXPECT_EQ(call.cuStreamDestroy(stream), kErrorCaptureUnsupported);
  EXPECT_EQ(fake_live_objects(), live);
  {
    const IgnoredCaptures ignored(*context);
    EXPECT_EQ(call.cuStreamSynchronize(stream), kErrorCaptureUnsupported);
    EXPECT_EQ(call.cuCtxSynchronize(), kErrorCaptureUnsupported);
    EXPECT_EQ(call.cuStreamSynchronize(other), kSuccess);
    EXPECT_EQ(call.cuMemFree(memory), kSuccess);
    EXPECT_EQ(call.cuMemFreeHost(pinned), kSuccess);
  }
  EXPECT_EQ(call.cuStreamSynchronize(other), kErrorCaptureUnsupported);
  EXPECT_EQ(call.cuEventRecord(event, stream), kSuccess);
  CUgraph graph = nullptr;
  ASSERT_EQ(call.cuStreamEndCapture(stream, &graph), kSuccess);
  (void)call.cuGraphDestroy(graph);
  // What was captured last is of no use outside until it is recorded anew.
  EXPECT_EQ(call.cuEventSynchronize(event), kErrorCapturedEvent);
  EXPECT_EQ(call.cuStreamWaitEvent(other, event, 0), kErrorCapturedEvent);
  EXPECT_EQ(call.cuEventRecord(event, other), kSuccess);
  EXPECT_EQ(call.cuStreamWaitEvent(stream, event, 0), kSuccess);
  EXPECT_EQ(call.cuEventDestroy(event), kSuccess);
  EXPECT_EQ(call.cuStreamDestroy(stream), kSuccess);
  EXPECT_EQ(call.cuStreamDestroy(other), kSuccess);
}

TEST_F(FakeDriver, KnowsWhatWasMadeAndIsNotGone) {
  constexpr CUresult kInvalidHandle = 400, kInvalidValue = 1;
  const CurrentContext current(*context);
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(call.cuStreamCreate(&stream, 0), kSuccess);
  ASSERT_EQ(call.cuEventCreate(&event, 0), kSuccess);
  EXPECT_EQ(call.cuEventRecord(event, stream), kSuccess);
  EXPECT_EQ(call.cuEventDestroy(event), kSuccess);
  EXPECT_EQ(call.cuEventRecord(event, stream), kInvalidHandle);
  EXPECT_EQ(call.cuStreamWaitEvent(stream, event, 0), kInvalidHandle);
  EXPECT_EQ(call.cuEventSynchronize(event), kInvalidHandle);
  EXPECT_EQ(call.cuEventDestroy(event), kInvalidHandle);
  EXPECT_EQ(call.cuStreamDestroy(stream), kSuccess);
  EXPECT_EQ(call.cuStreamSynchronize(stream), kInvalidHandle);
  EXPECT_EQ(call.cuStreamBeginCapture(stream, 0), kInvalidHandle);
  EXPECT_EQ(call.cuStreamDestroy(stream), kInvalidHandle);
  CUdeviceptr memory = 0;
  void *pinned = nullptr;
  EXPECT_EQ(call.cuMemAlloc(&memory, 0), kInvalidValue);
  EXPECT_EQ(call.cuMemHostAlloc(&pinned, 0, 0), kInvalidValue);
}

TEST_F(FakeDriver, GivesABlockTheSharedMemoryThatWasAskedFor) {
  constexpr unsigned kMore = 48 * 1024 + 4;
  fake_add_kernel("large", nullptr, 0, [](void *, void *const *, unsigned) {}, nullptr);
  const CurrentContext current(*context);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(call.cuModuleLoadDataEx(&module, "FAKE", 0, nullptr, nullptr), kSuccess);
  ASSERT_EQ(call.cuModuleGetFunction(&function, module, "large"), kSuccess);
  auto launch = [&](unsigned shared) {
    return call.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, shared, nullptr, nullptr,
                               nullptr);
  };
  EXPECT_EQ(launch(kMore - 4), kSuccess);
  EXPECT_NE(launch(kMore), kSuccess);
  ASSERT_EQ(call.cuFuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, kMore),
            kSuccess);
  EXPECT_EQ(launch(kMore), kSuccess);
  EXPECT_NE(launch(kMore + 1), kSuccess);
  EXPECT_EQ(call.cuModuleUnload(module), kSuccess);
}

} // namespace
