//===- DriverTest.cpp - Opening the driver and its errors -----------------===//

#include "FakeCuda.h"

#include "capi/Failure.h"
#include "cuda/Context.h"
#include "cuda/Module.h"

#include <gtest/gtest.h>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;

namespace {

/// The code and line of what `body` throws.
template <typename Body> Failure failureOf(Body &&body) {
  try {
    body();
  } catch (const Failure &failure) {
    return failure;
  }
  return Failure(SS_OK, "nothing was thrown");
}

class CudaDriver : public testing::Test {
protected:
  void SetUp() override { fake_reset(); }
  static std::shared_ptr<const Driver> open() {
    return Driver::open(SS_FAKE_CUDA);
  }
  static void expectFailure(ss_result code, const std::string &part) {
    Failure failure = failureOf(open);
    EXPECT_EQ(failure.code(), code);
    EXPECT_NE(std::string(failure.what()).find(part), std::string::npos)
        << failure.what();
  }
};

TEST_F(CudaDriver, ThatIsMissingIsSaidToBe) {
  Failure failure = failureOf([] { Driver::open("/nowhere/libcuda.so.1"); });
  EXPECT_EQ(failure.code(), SS_DEVICE_UNAVAILABLE);
  EXPECT_EQ(std::string(failure.what()),
            "no CUDA driver: looked for '/nowhere/libcuda.so.1' "
            "(/nowhere/libcuda.so.1: cannot open shared object file: No such "
            "file or directory), expected the library of an NVIDIA driver for "
            "CUDA 12.4 or newer: install the driver or use the CPU device");
}

TEST_F(CudaDriver, ThatIsNoDriverIsSaidToBe) {
  Failure failure = failureOf([] { Driver::open("libm.so.6"); });
  EXPECT_EQ(failure.code(), SS_DEVICE_UNAVAILABLE);
  EXPECT_NE(std::string(failure.what()).find("does not say its version"),
            std::string::npos);
}

TEST_F(CudaDriver, ThatIsOldIsCalledOld) {
  fake_set_version(12030);
  expectFailure(SS_DEVICE_UNAVAILABLE,
                "is for CUDA 12.3, expected 12.4 or newer: update the driver");
}

TEST_F(CudaDriver, NeedsItsRequiredFunctions) {
  fake_hide("cuLaunchKernel");
  expectFailure(SS_DEVICE_UNAVAILABLE,
                "has no function 'cuLaunchKernel' as of CUDA 4.0");
}

TEST_F(CudaDriver, DoesWithoutOptionalFunctions) {
  fake_hide("cuGraphLaunch");
  auto driver = open();
  EXPECT_EQ(driver->functions().cuGraphLaunch, nullptr);
  EXPECT_NE(driver->functions().cuGraphDestroy, nullptr);
}

TEST_F(CudaDriver, ThatSeesNoGpuIsUnavailable) {
  fake_set_device_count(0);
  expectFailure(SS_DEVICE_UNAVAILABLE, "CUDA_ERROR_NO_DEVICE");
}

TEST_F(CudaDriver, ThatIsAStubIsSaidToBe) {
  fake_fail("cuInit", kErrorStubLibrary, 0, 0);
  expectFailure(SS_DEVICE_UNAVAILABLE, "the toolkit's stub for linking");
}

TEST_F(CudaDriver, FailuresNameTheCallAndThePlace) {
  auto driver = open();
  fake_fail("cuMemFree", 1, 0, 0);
  Failure failure = failureOf([&] { SS_CUDA(*driver, cuMemFree(0)); });
  EXPECT_EQ(failure.code(), SS_DEVICE_ERROR);
  const std::string line = failure.what();
  EXPECT_EQ(line.find("cuMemFree(0) failed: CUDA_ERROR_1 (said by the fake "
                      "driver) at DriverTest.cpp:"),
            0u)
      << line;
}

TEST_F(CudaDriver, FailuresAreSortedByWhatFollows) {
  auto driver = open();
  auto codeOf = [&](CUresult error) {
    return failureOf([&] { driver->check(error, "call()", "file.cpp", 1); })
        .code();
  };
  EXPECT_EQ(codeOf(kErrorOutOfMemory), SS_OUT_OF_MEMORY);
  for (CUresult error : {214, 700, 702, 709, 710, 714, 715, 716, 718, 719, 721})
    EXPECT_EQ(codeOf(error), SS_DEVICE_LOST) << error;
  for (CUresult error : {1, 400, 701, 720, 801, 900, 901, 906, 999})
    EXPECT_EQ(codeOf(error), SS_DEVICE_ERROR) << error;
}

TEST_F(CudaDriver, ContextsAreOfGpusThatExist) {
  Failure failure = failureOf([] { Context::open(open(), 1); });
  EXPECT_EQ(failure.code(), SS_INVALID_ARGUMENT);
  EXPECT_STREQ(failure.what(), "options.device_ordinal is 1, expected 0 to 0 "
                               "(the GPUs that this process sees)");
  auto context = Context::open(open(), 0);
  EXPECT_EQ(context->architecture(), "sm_90a");
  EXPECT_TRUE(context->runs("sm_90a") && context->runs("sm_90"));
  EXPECT_FALSE(context->runs("sm_80") || context->runs("sm_100a"));
  EXPECT_EQ(fake_live_objects(), 1);
  context.reset();
  EXPECT_EQ(fake_live_objects(), 0);
}

TEST_F(CudaDriver, ContextsSayWhatCodeIsMadeFor) {
  const struct {
    int major, minor;
    const char *architecture;
  } gpus[] = {{8, 0, "sm_80"}, {8, 9, "sm_89"}, {10, 0, "sm_100"},
              {12, 0, "sm_120"}};
  for (const auto &gpu : gpus) {
    fake_set_capability(gpu.major, gpu.minor);
    auto context = Context::open(open(), 0);
    EXPECT_EQ(context->architecture(), gpu.architecture);
    EXPECT_TRUE(context->runs(gpu.architecture));
    EXPECT_FALSE(context->runs(std::string(gpu.architecture) + "a"));
    EXPECT_FALSE(context->runs("sm_90"));
  }
}

TEST_F(CudaDriver, CodeThatDoesNotLoadQuotesTheLog) {
  auto context = Context::open(open(), 0);
  fake_fail("cuModuleLoadDataEx", kErrorNoBinaryForGpu, 0, 0);
  Failure failure =
      failureOf([&] { Module(context, "gdn_decode", "FAKE"); });
  EXPECT_EQ(failure.code(), SS_DEVICE_ERROR);
  const std::string line = failure.what();
  for (const char *part :
       {"kernel 'gdn_decode'", "Fake GPU, sm_90a", "the log of the loader",
        "the code is for another GPU"})
    EXPECT_NE(line.find(part), std::string::npos) << line;
}

TEST_F(CudaDriver, KernelsThatNeedTooMuchSharedMemoryAreRefused) {
  const size_t none = 8;
  fake_add_kernel("large", &none, 1, [](void *, void *const *, unsigned) {},
                  nullptr);
  auto context = Context::open(open(), 0);
  CurrentContext current(*context);
  Module module(context, "large", "FAKE");
  EXPECT_NE(module.function("large", 200000), nullptr);
  // What all kernels have, and what this one needs.
  EXPECT_EQ(fake_calls("cuFuncSetAttribute"), 2);
  Failure failure = failureOf([&] { module.function("large", 300000); });
  EXPECT_EQ(failure.code(), SS_DEVICE_UNAVAILABLE);
  failure = failureOf([&] { module.function("small"); });
  EXPECT_EQ(failure.code(), SS_MALFORMED_PACKAGE);
}

} // namespace
