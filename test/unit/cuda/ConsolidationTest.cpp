//===- ConsolidationTest.cpp - Consolidation beside steps of the fake GPU -===//

#include "CudaUnderTest.h"
#include "GraphReplay.h"
#include "HostConsolidation.h"

#include "engine/StateEngine.h"
#include "nvrtc/Nvrtc.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include <sched.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Every type, and a layer of dense form; with `before` two of them compact before
/// their tokens.
std::vector<LayerSpec> mixedLayers(bool before = true) {
  std::vector<LayerSpec> layers = fourLayers();
  layers[1].before = layers[2].before = before;
  return layers;
}

class CudaConsolidation : public OnFakeGpu {
protected:
  static ss_engine_options modeOptions(int32_t slots, int32_t mode,
                                       int32_t every = 1) {
    ss_engine_options options = cudaOptions(slots);
    options.consolidation = mode;
    options.consolidate_every = every;
    return options;
  }
  static ss_engine_options asynchronous(int32_t slots, int32_t every = 1) {
    return modeOptions(slots, SS_CONSOLIDATION_ASYNCHRONOUS, every);
  }

  FakePackage source{mixedLayers()};
};

/// An engine on the CPU over the same kernels, consolidating in its calls.
struct InlineTwin {
  InlineTwin(FakePackage &source, int32_t every)
      : InlineTwin(source, options(every)) {}
  InlineTwin(FakePackage &source, const ss_engine_options &options)
      : manifest(source.cpuKernels().manifest()),
        package(Package::fromMemory(manifest, &KernelSet::lookup,
                                    &source.cpuKernels())),
        engine(package, options), driver(engine, source.layers()),
        request(source.layers(), 5, lowRankStyle()) {
    request.slot = engine.allocateSlot();
  }
  static ss_engine_options options(int32_t every) {
    ss_engine_options options = engineOptions();
    options.slots = 1;
    options.threads = 1;
    options.dense_fallback = 0;
    options.consolidate_every = every;
    return options;
  }
  std::string manifest;
  Package package;
  Engine engine;
  RequestDriver driver;
  DrivenRequest request;
};

void expectClosed(const ss_statistics &s) {
  EXPECT_EQ(s.consolidations_started,
            s.consolidations_landed + s.consolidations_dropped);
}

TEST_F(CudaConsolidation, DeterministicWithoutLagIsTheCpusInlineToTheBit) {
  // A step that compacts before its token ends before its results can land.
  FakePackage source(mixedLayers(false));
  for (int32_t every : {1, 3}) {
    ss_engine_options options =
        modeOptions(2, SS_CONSOLIDATION_DETERMINISTIC, every);
    options.consolidation_lag = 0;
    CudaUnderTest cuda(source, options);
    InlineTwin cpu(source, every);
    DrivenRequest request = cuda.request(source, 5);
    for (int step = 0; step < 80; ++step) {
      ASSERT_EQ(cuda.driver.step({&request}).y,
                cpu.driver.step({&cpu.request}).y)
          << "token " << step;
    }
    const ss_statistics s = cuda.engine.statistics();
    EXPECT_GT(s.components_removed, 0);
    EXPECT_EQ(s.consolidation_lag_max, 0);
    expectClosed(s);
    // The last compaction's is on its way here.
    EXPECT_GE(cpu.engine.statistics().consolidations, s.consolidations);
    EXPECT_LE(cpu.engine.statistics().consolidations, s.consolidations + 8);
  }
}

// Before the next compaction, on whichever side of a token that is.
TEST_F(CudaConsolidation, DeterministicWithALagIsTheCpusToTheBit) {
  for (int32_t lag : {1, 2, 7, -1}) {
    SCOPED_TRACE(lag);
    ss_engine_options options = modeOptions(2, SS_CONSOLIDATION_DETERMINISTIC);
    ss_engine_options onCpu = InlineTwin::options(1);
    onCpu.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
    options.consolidation_lag = onCpu.consolidation_lag = lag;
    CudaUnderTest cuda(source, options);
    InlineTwin cpu(source, onCpu);
    DrivenRequest request = cuda.request(source, 5);
    for (int step = 0; step < 80; ++step)
      ASSERT_EQ(cuda.driver.step({&request}).y,
                cpu.driver.step({&cpu.request}).y)
          << "token " << step;
    const ss_statistics s = cuda.engine.statistics();
    EXPECT_GT(s.components_removed, 0);
    EXPECT_EQ(s.consolidations_dropped, 0);
  }
}

TEST_F(CudaConsolidation, DeterministicIsTheSameWhateverElseIsGoingOn) {
  ss_engine_options options = modeOptions(5, SS_CONSOLIDATION_DETERMINISTIC);
  options.consolidation_lag = 2;
  std::vector<StepResult> alone;
  {
    CudaUnderTest cuda(source, options, false);
    DrivenRequest request = cuda.request(source, 9);
    for (int step = 0; step < 60; ++step)
      alone.push_back(cuda.driver.step({&request}));
  }
  options.consolidation_threads = 3;
  CudaUnderTest cuda(source, options, false);
  std::vector<DrivenRequest> others;
  for (uint64_t seed = 20; seed < 24; ++seed)
    others.push_back(cuda.request(source, seed));
  DrivenRequest request = cuda.request(source, 9);
  for (int step = 0; step < 60; ++step) {
    std::vector<DrivenRequest *> batch = {&request, nullptr};
    for (size_t i = 0; i < others.size(); ++i)
      if ((step + i) % 3 != 0)
        batch.push_back(&others[i]);
    const StepResult result = cuda.driver.step(batch);
    for (size_t layer = 0; layer < result.y.size(); ++layer) {
      const std::vector<float> &expected = alone[size_t(step)].y[layer];
      ASSERT_EQ(std::memcmp(result.y[layer].data(), expected.data(),
                            expected.size() * sizeof(float)),
                0)
          << "token " << step;
    }
    // Tenants come and go while their jobs are under way.
    if (step % 7 == 6) {
      DrivenRequest &leaving = others[size_t(step) % others.size()];
      cuda.engine.freeSlot(leaving.slot);
      leaving = cuda.request(source, uint64_t(100 + step));
    }
  }
  const ss_statistics s = cuda.engine.statistics();
  EXPECT_GT(s.consolidations_landed, 0);
  EXPECT_GT(s.consolidations_dropped, 0); // of tenants that left
  EXPECT_EQ(s.consolidation_lag_max, 4); // before the next compaction
}

TEST_F(CudaConsolidation, DeterministicSaysThatItCannotBeCaptured) {
  CudaUnderTest cuda(source, modeOptions(1, SS_CONSOLIDATION_DETERMINISTIC),
                     false);
  DrivenRequest request = cuda.request(source, 1);
  cuda.driver.step({&request});
  GraphReplay graphs(cuda.driver);
  try {
    cuda.driver.step({&request});
    ADD_FAILURE();
  } catch (const Exception &failure) {
    EXPECT_EQ(failure.code(), SS_NOT_SUPPORTED);
    EXPECT_NE(std::string(failure.what()).find(
                  "use SS_CONSOLIDATION_ASYNCHRONOUS with graphs"),
              std::string::npos)
        << failure.what();
  }
}

TEST_F(CudaConsolidation, AsynchronousInReplayedGraphsWaitsForNothing) {
  CudaUnderTest cuda(source, asynchronous(3));
  std::vector<DrivenRequest> requests;
  for (uint64_t seed = 0; seed < 3; ++seed)
    requests.push_back(cuda.request(source, seed));
  GraphReplay graphs(cuda.driver);
  for (int step = 0; step < 120; ++step) {
    std::vector<DrivenRequest *> batch = {&requests[0], &requests[1]};
    if (step % 3 == 1)
      batch = {&requests[2]};
    cuda.driver.step(batch);
    if (step % 8 == 3) // at some points everything lands
      cuda.engine.synchronize();
  }
  EXPECT_EQ(graphs.captured(), 2u);
  EXPECT_EQ(fake_forbidden_calls(), 0);
  // Truncation at 1e-2, again and again.
  for (DrivenRequest &request : requests)
    for (size_t layer = 0; layer < source.layers().size(); ++layer)
      EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
  decodeUntilLanded(
      cuda.engine, [&] { cuda.driver.step({&requests[0], &requests[1]}); },
      /*removes=*/true);
  cuda.engine.synchronize();
  const ss_statistics s = cuda.engine.statistics();
  EXPECT_EQ(s.consolidation_waits, 0);
  expectClosed(s);
}

int launchesOfAStep(CudaUnderTest &cuda) {
  const int before = fake_calls("cuLaunchKernel");
  cuda.driver.enqueue(1, nullptr);
  return fake_calls("cuLaunchKernel") - before;
}

TEST_F(CudaConsolidation, IsTwoLaunchesAStepMore) {
  int without = 0;
  {
    CudaUnderTest cuda(source, cudaOptions(1), false);
    DrivenRequest request = cuda.request(source, 1);
    cuda.driver.step({&request});
    without = launchesOfAStep(cuda);
  }
  CudaUnderTest cuda(source, asynchronous(1), false);
  DrivenRequest request = cuda.request(source, 1);
  cuda.driver.step({&request});
  cuda.engine.synchronize();
  HeldCalls held("ss_gather"); // the threads launch nothing meanwhile
  const std::vector<const char *> waits = {"cuMemAlloc", "cuMemHostAlloc",
                                           "cuStreamSynchronize",
                                           "cuCtxSynchronize"};
  int before = 0, after = 0;
  for (const char *call : waits)
    before += fake_calls(call);
  EXPECT_EQ(launchesOfAStep(cuda), without + 2);
  for (const char *call : waits)
    after += fake_calls(call);
  EXPECT_EQ(after, before);
}

//===----------------------------------------------------------------------===//
// Results that come too late
//===----------------------------------------------------------------------===//

/// Where rows have been read and their copy to the host waits: what follows
/// happens during a slow SVD.
constexpr const char *kDownload = "cuMemcpyDtoHAsync";

TEST_F(CudaConsolidation, WhatACompactionOvertakesIsDropped) {
  CudaUnderTest cuda(source, asynchronous(1));
  DrivenRequest request = cuda.request(source, 1);
  for (int round = 0; round < 10; ++round) {
    HeldCalls held(kDownload);
    held.decodeUntilReached(cuda, request);
    for (int step = 0; step < 4; ++step) // a compaction of every layer
      cuda.driver.step({&request});
    held.release();
    cuda.engine.synchronize();
  }
  const ss_statistics s = cuda.engine.statistics();
  EXPECT_GT(s.consolidations_dropped, 0);
  expectClosed(s);
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
}

TEST_F(CudaConsolidation, WhatIsOfAFormerTenantIsDropped) {
  CudaUnderTest cuda(source, asynchronous(1));
  for (uint64_t seed = 0; seed < 8; ++seed) {
    DrivenRequest former = cuda.request(source, seed);
    HeldCalls held(kDownload);
    held.decodeUntilReached(cuda, former);
    cuda.engine.freeSlot(former.slot);
    DrivenRequest next = cuda.request(source, seed + 100);
    ASSERT_EQ(next.slot, former.slot);
    held.release();
    cuda.driver.step({&next});
    cuda.engine.synchronize();
    for (int step = 0; step < 9; ++step) {
      cuda.driver.step({&next});
      cuda.engine.synchronize();
    }
    for (size_t layer = 0; layer < source.layers().size(); ++layer)
      EXPECT_LT(cuda.driver.stateError(next, layer), 0.1);
    cuda.engine.freeSlot(next.slot);
  }
  DrivenRequest last = cuda.request(source, 1000);
  decodeUntilLanded(cuda.engine, [&] { cuda.driver.step({&last}); });
  const ss_statistics s = cuda.engine.statistics();
  EXPECT_GT(s.consolidations_dropped, 0);
  expectClosed(s);
}

// The decode stream compacts a state while its rows are being copied.
TEST_F(CudaConsolidation, WhatIsTornIsDropped) {
  // Of the thread of the downloads, which may live as long as the engine.
  std::function<void()> between;
  std::atomic<bool> torn = false;
  std::string failure;
  const size_t size = sizeof(ss::Gather);
  fake_add_kernel("ss_gather", &size, 1, hostGather, &between);
  CudaUnderTest cuda(source, asynchronous(1));
  DrivenRequest request = cuda.request(source, 3);
  HeldCalls held("ss_gather"); // until nobody else is in the engine
  held.decodeUntilReached(cuda, request);
  between = [&] {
    if (torn)
      return;
    try {
      for (int step = 0; step < 4; ++step)
        cuda.driver.step({&request});
    } catch (const std::exception &thrown) {
      failure = thrown.what();
    }
    torn = true; // and the engine is the other thread's again
  };
  held.release();
  waitUntil("the rows to be torn", [&] { return torn.load(); });
  EXPECT_EQ(failure, "");
  cuda.engine.synchronize();
  const ss_statistics s = cuda.engine.statistics();
  EXPECT_GT(s.consolidations_dropped, 0);
  expectClosed(s);
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
}

//===----------------------------------------------------------------------===//
// Options, memory and failures
//===----------------------------------------------------------------------===//

TEST_F(CudaConsolidation, TakesWhatWasPlannedAndGivesItBack) {
  for (int32_t mode :
       {SS_CONSOLIDATION_ASYNCHRONOUS, SS_CONSOLIDATION_DETERMINISTIC}) {
    ss_engine_options options = modeOptions(3, mode), off = cudaOptions(3);
    options.row_capacity = off.row_capacity = 1 << 20; // no pools: all at once
    Package package = Package::open(source.folder());
    const ss_memory_plan plan = package.plan(options);
    EXPECT_GT(plan.worst_case, package.plan(off).worst_case);
    {
      Engine engine(package, options);
      EXPECT_EQ(fake_live_bytes(), size_t(plan.worst_case));
      EXPECT_EQ(engine.statistics().allocated_bytes, plan.worst_case);
    }
    EXPECT_EQ(fake_live_objects(), 0);
  }
}

TEST_F(CudaConsolidation, CanBeDestroyedAtAnyTime) {
  for (int steps : {0, 3, 9, 30}) {
    CudaUnderTest cuda(source, asynchronous(2), false);
    DrivenRequest request = cuda.request(source, 1);
    for (int step = 0; step < steps; ++step)
      cuda.driver.step({&request});
  }
  auto cuda = std::make_unique<CudaUnderTest>(source, asynchronous(1), false);
  DrivenRequest request = cuda->request(source, 1);
  HeldCalls held(kDownload);
  held.decodeUntilReached(*cuda, request);
  std::thread releases([&] { held.release(); });
  cuda.reset();
  releases.join();
  EXPECT_EQ(fake_live_objects(), 0);
}

TEST_F(CudaConsolidation, SaysWhenTheHostHasNoPinnedMemory) {
  fake_fail("cuMemHostAlloc", 2, 0, 0);
  Package package = Package::open(source.folder());
  ss_engine_options options = asynchronous(1);
  options.row_capacity = 1 << 20; // no pools, which have such memory too
  ss_engine *engine = nullptr;
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine),
            SS_OUT_OF_MEMORY);
  EXPECT_NE(std::string(ss_last_error()).find("page-locked memory"),
            std::string::npos)
      << ss_last_error();
  EXPECT_EQ(fake_live_objects(), 0);
}

TEST_F(CudaConsolidation, LeavesStatesAloneWhereItsCopiesFail) {
  CudaUnderTest cuda(source, asynchronous(1));
  DrivenRequest request = cuda.request(source, 1);
  for (int round = 0; round < 6; ++round) {
    HeldCalls held("ss_gather");
    held.decodeUntilReached(cuda, request);
    const char *calls[] = {"cuLaunchKernel", "cuMemcpyDtoHAsync"};
    fake_fail(calls[round % 2], 719, 0, 0);
    held.release();
    try {
      cuda.engine.synchronize();
    } catch (const Exception &) {
      // It was this call's launch that failed.
    }
    // Not every round has such a call, and those of the test's own succeed.
    fake_fail_no_more();
  }
  cuda.engine.synchronize();
  expectClosed(cuda.engine.statistics());
  for (size_t layer = 0; layer < source.layers().size(); ++layer)
    EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
}

// Of results, or of the words that say that there are some: whichever comes
// first in the round, of the engine's thread or of consolidation's own.
TEST_F(CudaConsolidation, DecodingGoesOnWhereItsUploadsFail) {
  for (int skipped = 0; skipped < 8; ++skipped) {
    CudaUnderTest cuda(source, asynchronous(1));
    DrivenRequest request = cuda.request(source, 1);
    HeldCalls held(kDownload);
    held.decodeUntilReached(cuda, request);
    fake_fail("cuMemcpyHtoDAsync", 719, skipped, 0);
    held.release();
    try {
      cuda.engine.synchronize();
    } catch (const Exception &) {
    }
    fake_fail_no_more();
    for (int step = 0; step < 12; ++step)
      cuda.driver.step({&request});
    cuda.engine.synchronize();
    for (size_t layer = 0; layer < source.layers().size(); ++layer)
      EXPECT_LT(cuda.driver.stateError(request, layer), 0.1);
  }
}

/// Whether consolidation has said that an upload failed.
class UploadFailures {
public:
  UploadFailures() {
    setLog(
        [](void *context, ss_log_level, const char *, const char *message) {
          if (std::string(message).find("not uploaded") != std::string::npos)
            static_cast<UploadFailures *>(context)->any = true;
        },
        this);
  }
  UploadFailures(const UploadFailures &) = delete;
  ~UploadFailures() { setLog(nullptr, nullptr); }
  std::atomic<bool> any = false;
};

// No mailbox is used after that: SVDs for nothing would only take the processor.
// Which call fails is a race of the threads: again, until it is an upload's.
TEST_F(CudaConsolidation, StartsNothingAfterAnUploadFailed) {
  UploadFailures failures;
  int round = 0;
  waitUntil("the failure of an upload", [&] {
    CudaUnderTest cuda(source, asynchronous(1));
    DrivenRequest request = cuda.request(source, 1);
    HeldCalls held(kDownload);
    held.decodeUntilReached(cuda, request);
    fake_fail("cuMemcpyHtoDAsync", 719, round++ % 8, 0);
    held.release();
    try {
      cuda.engine.synchronize();
    } catch (const Exception &) {
    }
    fake_fail_no_more();
    if (!failures.any)
      return false;
    const ss_statistics before = cuda.engine.statistics();
    for (int step = 0; step < 24; ++step)
      cuda.driver.step({&request});
    cuda.engine.synchronize();
    const ss_statistics after = cuda.engine.statistics();
    expectClosed(after);
    EXPECT_EQ(after.consolidations_started, before.consolidations_started);
    return true;
  });
}

TEST_F(CudaConsolidation, EndsWithALostGpu) {
  CudaUnderTest cuda(source, asynchronous(1), false);
  DrivenRequest request = cuda.request(source, 1);
  HeldCalls held(kDownload);
  held.decodeUntilReached(cuda, request);
  fake_fail(kDownload, 700, 0, 1);
  held.release();
  EXPECT_NE(ss_engine_synchronize(cuda.engine.get(), nullptr), SS_OK);
  // Destroying it is still allowed.
}

TEST_F(CudaConsolidation, OptionsAreChecked) {
  Package package = Package::open(source.folder());
  ss_engine_options options = modeOptions(1, SS_CONSOLIDATION_INLINE);
  ss_engine *engine = nullptr;
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine),
            SS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ss_last_error()).find(
                "SS_CONSOLIDATION_DETERMINISTIC with consolidation_lag 0"),
            std::string::npos)
      << ss_last_error();
  auto bytes = [&](int32_t mode, int32_t every) {
    return package.plan(modeOptions(1, mode, every)).worst_case;
  };
  // Nothing asked for: nothing done. An interval asked for: beside decoding.
  const int64_t off = bytes(SS_CONSOLIDATION_OFF, 0);
  const int64_t on = bytes(SS_CONSOLIDATION_ASYNCHRONOUS, 4);
  EXPECT_EQ(bytes(-1, -1), off);
  EXPECT_EQ(bytes(-1, 0), off);
  EXPECT_EQ(bytes(SS_CONSOLIDATION_OFF, 4), off);
  EXPECT_EQ(bytes(-1, 4), on);
  EXPECT_EQ(bytes(SS_CONSOLIDATION_ASYNCHRONOUS, -1), on);
}

/// Threads of this process that may run on this processor alone.
int threadsBoundTo(int32_t cpu) {
  int count = 0;
  for (const auto &task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(std::stoi(task.path().filename()), sizeof set,
                          &set) == 0)
      count += CPU_COUNT(&set) == 1 && CPU_ISSET(size_t(cpu), &set);
  }
  return count;
}

// The download, the upload, two SVDs and, in asynchronous mode, the watcher.
TEST_F(CudaConsolidation, EveryThreadIsBoundToItsProcessor) {
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  if (CPU_COUNT(&own) < 2)
    GTEST_SKIP() << "one processor: everything runs there";
  std::vector<int32_t> cpus;
  for (int32_t cpu = 0; cpus.size() < 2; ++cpu)
    if (CPU_ISSET(size_t(cpu), &own))
      cpus.push_back(cpu);
  for (int32_t mode :
       {SS_CONSOLIDATION_ASYNCHRONOUS, SS_CONSOLIDATION_DETERMINISTIC}) {
    ss_engine_options options = modeOptions(1, mode);
    options.consolidation_threads = 2;
    options.consolidation_cpu_count = 2;
    options.consolidation_cpus = cpus.data();
    const int before[] = {threadsBoundTo(cpus[0]), threadsBoundTo(cpus[1])};
    CudaUnderTest cuda(source, options, false);
    const bool watches = mode == SS_CONSOLIDATION_ASYNCHRONOUS;
    EXPECT_EQ(threadsBoundTo(cpus[0]) - before[0], watches ? 3 : 2);
    EXPECT_EQ(threadsBoundTo(cpus[1]) - before[1], 2);
  }
}

TEST(ConsolidationOptions, SvdThreadsAreAQuarterOfTheProcessors) {
  using runtime::svdThreadsFor;
  for (auto [processors, threads] :
       {std::pair(0, 1), {1, 1}, {4, 1}, {7, 1}, {8, 2}, {16, 4}, {32, 8},
        {192, 8}})
    EXPECT_EQ(svdThreadsFor(processors), threads) << processors;
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  ss_engine_options options = engineOptions();
  EXPECT_EQ(runtime::resolveOptions(options).consolidation_threads,
            svdThreadsFor(CPU_COUNT(&own)));
  options.consolidation_threads = 3; // what is said holds
  EXPECT_EQ(runtime::resolveOptions(options).consolidation_threads, 3);
}

TEST(ConsolidationKernels, CompileForGpus) {
  auto library = sinkstate::nvrtc::Library::open("");
  if (!library)
    GTEST_SKIP() << library.error();
  std::ifstream file(SS_SOURCE_DIR
                     "/runtime/src/cuda/device/consolidation.cuh");
  const std::string source(std::istreambuf_iterator<char>(file), {});
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*library)->compile({"consolidation.cu", source, {},
                                      architecture,
                                      sinkstate::nvrtc::kernelFlags()});
    EXPECT_TRUE(cubin) << cubin.error();
  }
}

} // namespace
