//===- NvrtcTest.cpp - CUDA C++ to machine code ---------------------------===//

#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <thread>

using namespace sinkstate;
using namespace sinkstate::nvrtc;

namespace {

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class Compile : public testing::Test {
protected:
  void SetUp() override {
    auto opened = Library::get();
    if (!opened)
      GTEST_SKIP() << opened.error();
    library = *opened;
  }
  std::shared_ptr<const Library> library;
};

const char *const kSource = R"(#include "scale.cuh"
extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= factor(); }
)";
const Header kHeader = {"scale.cuh",
                        "__device__ inline float factor() { return 3.0f; }\n"};

TEST_F(Compile, MakesACubinWithHeadersFromMemory) {
  Result<std::string> cubin = library->compile(
      {"scale.cu", kSource, {kHeader}, "sm_90", kernelFlags()});
  ASSERT_TRUE(cubin) << cubin.error();
  EXPECT_EQ(cubin->substr(0, 4), "\x7f" "ELF");
  EXPECT_TRUE(contains(*cubin, "scale"));
}

TEST_F(Compile, MakesPtxForAVirtualArchitecture) {
  Result<std::string> ptx = library->compile(
      {"scale.cu", kSource, {kHeader}, "compute_90", kernelFlags()});
  ASSERT_TRUE(ptx) << ptx.error();
  EXPECT_TRUE(contains(*ptx, ".target sm_90"));
}

TEST_F(Compile, QuotesTheLogOfWrongSource) {
  Result<std::string> cubin =
      library->compile({"wrong.cu", "int f( { }", {}, "sm_90", {}});
  ASSERT_FALSE(cubin);
  EXPECT_TRUE(contains(cubin.error(), "rejects 'wrong.cu' for sm_90"))
      << cubin.error();
  EXPECT_TRUE(contains(cubin.error(), "wrong.cu(1): error")) << cubin.error();
}

TEST_F(Compile, SaysWhichHeaderIsMissing) {
  Result<std::string> cubin =
      library->compile({"scale.cu", kSource, {}, "sm_90", {}});
  ASSERT_FALSE(cubin);
  EXPECT_TRUE(contains(cubin.error(), "scale.cuh")) << cubin.error();
}

TEST_F(Compile, NamesTheArchitecturesItKnows) {
  Result<std::string> cubin =
      library->compile({"scale.cu", kSource, {kHeader}, "sm_20", {}});
  ASSERT_FALSE(cubin);
  EXPECT_TRUE(contains(cubin.error(), "does not compile for 'sm_20'"));
  EXPECT_TRUE(contains(cubin.error(), "sm_90")) << cubin.error();
}

TEST_F(Compile, RefusesUnknownFlags) {
  Result<std::string> cubin = library->compile(
      {"scale.cu", kSource, {kHeader}, "sm_90", {"--no-such-flag"}});
  ASSERT_FALSE(cubin);
  EXPECT_TRUE(contains(cubin.error(), "scale.cu")) << cubin.error();
}

TEST_F(Compile, GivesTheSameBytesInParallelThreads) {
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string &cubin : cubins)
    threads.emplace_back([&] {
      Result<std::string> result = library->compile(
          {"scale.cu", kSource, {kHeader}, "sm_90", kernelFlags()});
      if (result)
        cubin = *result;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &cubin : cubins) {
    EXPECT_FALSE(cubin.empty());
    EXPECT_EQ(cubin, cubins[0]);
  }
}

TEST(Load, SaysWhereItLooked) {
  auto opened = Library::open("/nowhere/libnvrtc.so.13");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error(), "'/nowhere/libnvrtc.so.13'"));
  EXPECT_TRUE(contains(opened.error(), "12.4 or newer"));
}

TEST(Load, SaysWhichFunctionALibraryLacks) {
  auto opened = Library::open("libm.so.6");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error(), "has no function 'nvrtcVersion'"))
      << opened.error();
}

} // namespace
