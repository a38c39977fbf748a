//===- NvtxTest.cpp - What a profiler is shown ----------------------------===//

#include "CudaUnderTest.h"
#include "FakeProfiler.h"

#include "observe/Nvtx.h"

#include <cstdlib>

using namespace sinkstate;
using namespace sinkstate::test;
using runtime::NvtxFunctions;

namespace {

/// Before any range: the library is looked for once per process.
const bool profilerIsSet = [] {
  unsetenv("SS_NVTX");
  setenv("NVTX_INJECTION64_PATH", SS_FAKE_PROFILER, 1);
  return true;
}();

std::vector<LayerSpec> twoLayers() {
  std::vector<LayerSpec> layers = numbered({gdnLayer(2, 1, 16, 16), kdaLayer(2, 2, 16, 16)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].active = 2;
    layers[i].buffer = 4;
    layers[i].phase = int32_t(i);
  }
  return layers;
}

constexpr int kSteps = 24;

/// Ranges of each name since this was made.
struct Shown {
  explicit Shown(const char *name)
      : name(name), before(fake_profiler_pushed(name)) {}
  int count() const { return fake_profiler_pushed(name) - before; }
  const char *name;
  int before;
};

/// What any engine shows, whoever decodes.
template <typename Decode> void expectStepsAreShown(const Decode &decode) {
  const Shown begin("sinkstate begin step"), end("sinkstate end step"),
      first("sinkstate decode layer0"), second("sinkstate decode layer1"),
      download("sinkstate download"), svd("sinkstate SVD"),
      upload("sinkstate upload");
  const int old = fake_profiler_old();
  decode();
  EXPECT_EQ(begin.count(), kSteps);
  EXPECT_EQ(first.count(), kSteps);
  EXPECT_EQ(second.count(), kSteps);
  EXPECT_EQ(end.count(), kSteps);
  EXPECT_GT(download.count(), 0);
  EXPECT_GT(upload.count(), 0);
  EXPECT_LE(upload.count(), download.count()); // the engine's end comes between
  EXPECT_GE(svd.count(), download.count());
  EXPECT_EQ(fake_profiler_popped(), fake_profiler_pushed(nullptr));
  EXPECT_EQ(fake_profiler_unbalanced(), 0);
  EXPECT_EQ(fake_profiler_old(), old);
}

using Nvtx = OnFakeGpu;

TEST_F(Nvtx, StepsLayersAndStagesOnAGpu) {
  FakePackage source(twoLayers());
  ss_engine_options options = cudaOptions(1);
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidate_every = 1;
  expectStepsAreShown([&] {
    CudaUnderTest cuda(source, options);
    DrivenRequest request = cuda.request(source, 5);
    for (int step = 0; step < kSteps; ++step)
      cuda.driver.step({&request});
  });
}

TEST_F(Nvtx, StepsLayersAndStagesOnTheCpu) {
  KernelSet kernels(twoLayers());
  const std::string manifest = kernels.manifest();
  ss_engine_options options = engineOptions();
  options.dense_fallback = 0;
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidate_every = 1;
  const Shown compact("sinkstate compact layer0");
  expectStepsAreShown([&] {
    Package package =
        Package::fromMemory(manifest, &KernelSet::lookup, &kernels);
    Engine engine(package, options);
    RequestDriver driver(engine, kernels.layers());
    DrivenRequest request(kernels.layers(), 5, RequestStyle());
    request.slot = engine.allocateSlot();
    for (int step = 0; step < kSteps; ++step)
      driver.step({&request});
  });
  EXPECT_EQ(compact.count(), kSteps / 4);
}

TEST_F(Nvtx, OpensWhatIsGivenAndNothingElse) {
  (void)profilerIsSet;
  const int attached = fake_profiler_attached();
  const auto none = [](const std::string &library,
                       const std::string &injection) {
    const NvtxFunctions found = NvtxFunctions::open(library, injection);
    EXPECT_EQ(found.push == nullptr, found.pop == nullptr);
    return found.push == nullptr;
  };
  EXPECT_TRUE(none("", ""));
  EXPECT_TRUE(none("", "/nowhere/libprofiler.so"));
  // A library that is none of NVTX.
  EXPECT_TRUE(none(SS_FAKE_NVRTC, ""));
  EXPECT_TRUE(none("", SS_FAKE_NVRTC));
  // One that cannot be opened is as if it were not given.
  EXPECT_FALSE(none("/nowhere/libnvToolsExt.so.1", SS_FAKE_PROFILER));
  fake_profiler_refuse(1);
  EXPECT_TRUE(none("", SS_FAKE_PROFILER));
  fake_profiler_refuse(0);
  EXPECT_EQ(fake_profiler_attached(), attached + 1);

  const NvtxFunctions old =
      NvtxFunctions::open(SS_FAKE_PROFILER, SS_FAKE_PROFILER);
  ASSERT_NE(old.push, nullptr);
  const int before = fake_profiler_old();
  old.push("range");
  old.pop();
  EXPECT_EQ(fake_profiler_old(), before + 1);
  EXPECT_EQ(fake_profiler_attached(), attached + 1);
}

} // namespace
