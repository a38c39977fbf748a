//===- NvrtcTest.cpp - printed kernels pass NVRTC for every architecture ------------===//
#include "HostKernels.h"

#include "codegen/cuda/CompileCheck.h"
#include "codegen/cuda/CudaPrinter.h"
#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class PrintedKernels : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto library = nvrtc::Library::get();
    if (!library)
      GTEST_SKIP() << library.error();
  }

  /// Every kernel of the module compiles; decode, which runs at every step, spills no
  /// registers, and compactions next to none. Those take a second each: one architecture
  /// stands for all.
  void compileAll(const PreparedModule &module) {
    ASSERT_TRUE(module);
    for (ssk::KernelOp kernel : module.get().getOps<ssk::KernelOp>()) {
      bool isDecode = kernel.getRole().value_or("decode") == "decode";
      if (!isDecode && std::string(GetParam()) != "sm_90a")
        continue;
      mlir::FailureOr<std::string> text = cuda::printCudaKernel(kernel);
      ASSERT_TRUE(mlir::succeeded(text));
      auto found = cuda::compileForCheck(kernel.getName().str() + ".cu", *text, GetParam());
      ASSERT_TRUE(found) << found.error();
      const bool hasParts = cuda::getCudaKernelInfo(kernel).parts > 1;
      ASSERT_EQ(found->size(), hasParts ? 2u : 1u);
      for (const cuda::KernelResources &entry : *found) {
        EXPECT_TRUE(entry.kernel == kernel.getName().str() ||
                    (hasParts && entry.kernel == kernel.getName().str() + "_parts"))
            << entry.kernel;
        EXPECT_GT(entry.registers, 0);
        if (!isDecode) {
          // The form of narrow rows that was measured to be the fastest has the most.
          EXPECT_LE(entry.spillBytes, 136) << entry.kernel;
          continue;
        }
        // A kernel that is made for a test may have a register too few.
        EXPECT_LE(entry.spillBytes, kernel.getRole() ? 0 : 16) << entry.kernel;
        EXPECT_LE(entry.registers, 128) << entry.kernel;
      }
    }
  }
};

/// The inputs of the printer's own tests.
TEST_P(PrintedKernels, OfTheLitTests) {
  std::filesystem::path folder = std::filesystem::path(SS_SOURCE_DIR) / "test/lit/codegen/cuda";
  for (const char *name : {"gdn-decode.mlir", "control-flow.mlir", "operations.mlir"})
    compileAll(PreparedModule(readFile(folder / name)));
}

/// One layer of each type and all its kernels.
TEST_P(PrintedKernels, OfOneLayerOfEachType) {
  compileAll(PreparedModule(
      R"mlir(
ss.model @model {
  ss.layer @gdn type gdn index 0 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f32 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @mamba type mamba2 index 1 heads 4 key_heads 2 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<energy, 9.99e-1> active 8 buffer 8 storage f32 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @kda type kda index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<bounded_channel, -5.0> norm #ss.norm<max, 1.0e-12> query_scale 0.08838834764831845
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f32 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
}
)mlir",
      "builtin.module(ss-pipeline{init=true})"));
}

/// The same with rows of 16 bits.
TEST_P(PrintedKernels, OfNarrowRows) {
  compileAll(PreparedModule(
      R"mlir(
ss.model @model {
  ss.layer @gdn type gdn index 0 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<relative, 3.0e-2> active 8 buffer 8 storage f16 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @mamba type mamba2 index 1 heads 4 key_heads 2 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<energy, 9.99e-1> active 8 buffer 8 storage bf16 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @kda type kda index 2 heads 2 key_heads 2 dv 128 dk 128
      gate #ss.gate<bounded_channel, -5.0> norm #ss.norm<max, 1.0e-12> query_scale 0.08838834764831845
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f16 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
}
)mlir",
      "builtin.module(ss-pipeline)"));
}

/// Blocks of 32 components, with the delta rule and without.
TEST_P(PrintedKernels, OfLargeBlocks) {
  compileAll(PreparedModule(
      R"mlir(
ss.model @model {
  ss.layer @mamba type mamba2 index 0 heads 4 key_heads 2 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<relative, 1.0e-2> active 16 buffer 16 storage f32 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @sink type mamba2 index 1 heads 4 key_heads 2 dv 80 dk 128
      gate #ss.gate<softplus> norm #ss.norm<none> query_scale 1.0
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f32 form sink {beta_scale = 1.0 : f64, draft = 0 : i64}
  ss.layer @gdn type gdn index 2 heads 2 key_heads 1 dv 128 dk 128
      gate #ss.gate<softplus> norm #ss.norm<add, 1.0e-6> query_scale 0.08838834764831845
      policy #ss.policy<fixed, 16> active 16 buffer 16 storage f16 form factored {beta_scale = 1.0 : f64, draft = 0 : i64}
}
)mlir",
      "builtin.module(ss-pipeline)"));
}

INSTANTIATE_TEST_SUITE_P(Architectures, PrintedKernels,
                         testing::Values("sm_80", "sm_90a", "sm_100", "sm_120"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
