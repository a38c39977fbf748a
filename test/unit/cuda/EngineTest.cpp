//===- EngineTest.cpp - Creating and losing engines on the fake GPU -------===//

#include "CudaUnderTest.h"

#include "../environment/ScopedVariable.h"

#include "cuda/CudaEngine.h"
#include "cuda/CudaLayout.h"
#include "handover/InitialState.h"
#include "hash/Sha256.h"

#include "nvrtc/Nvrtc.h"
#include "package/Manifest.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <system_error>
#include <thread>

#include <pthread.h>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

class CudaEngines : public OnFakeGpu {
protected:
  FakePackage source{{gdnLayer(2, 2, 8, 8)}};

  /// Creates an engine that has to fail.
  void expectNoEngine(const ss_engine_options &options, ss_result code,
                      const std::string &part) {
    Package package = Package::open(source.folder());
    ss_engine *engine = reinterpret_cast<ss_engine *>(1);
    EXPECT_EQ(ss_engine_create(package.get(), &options, &engine), code);
    EXPECT_EQ(engine, nullptr);
    EXPECT_NE(std::string(ss_last_error()).find(part), std::string::npos)
        << ss_last_error();
    EXPECT_EQ(fake_live_objects(), 0);
  }
};

TEST_F(CudaEngines, TakeWhatWasPlannedAndGiveItBack) {
  ss_engine_options options = cudaOptions(3);
  options.row_capacity = 24; // no pools: everything is there from the beginning
  Package package = Package::open(source.folder());
  const ss_memory_plan plan = package.plan(options);
  EXPECT_EQ(fake_calls("cuInit"), 0);
  {
    Engine engine(package, options);
    EXPECT_EQ(fake_live_bytes(), size_t(plan.worst_case));
    EXPECT_EQ(plan.expected, plan.worst_case);
    EXPECT_EQ(engine.statistics().allocated_bytes, plan.worst_case);
    EXPECT_EQ(plan.dense, 3 * 2 * 8 * 8 * 4);
    // A module per kernel, and two of the library's own.
    EXPECT_EQ(fake_calls("cuModuleLoadDataEx"), 5);
  }
  EXPECT_EQ(fake_live_objects(), 0);
}

TEST_F(CudaEngines, TakeTablesAtFirstAndRowsAsSlotsCome) {
  const ss_engine_options options = cudaOptions(3);
  Package package = Package::open(source.folder());
  const ss_memory_plan plan = package.plan(options);
  {
    Engine engine(package, options);
    const int64_t tables = engine.statistics().allocated_bytes;
    EXPECT_EQ(fake_live_bytes(), size_t(tables));
    EXPECT_LT(tables, plan.expected);
    EXPECT_LE(plan.expected, plan.worst_case);
    engine.allocateSlot();
    EXPECT_GT(engine.statistics().allocated_bytes, tables);
    EXPECT_EQ(fake_live_bytes(),
              size_t(engine.statistics().allocated_bytes));
    // And one of the row pools.
    EXPECT_EQ(fake_calls("cuModuleLoadDataEx"), 6);
  }
  EXPECT_EQ(fake_live_objects(), 0);
}

TEST_F(CudaEngines, AllocateEverythingWhereMemoryCannotBeMapped) {
  fake_set_granularity(0);
  const ss_engine_options options = cudaOptions(3);
  Package package = Package::open(source.folder());
  const ss_memory_plan plan = package.plan(options);
  {
    Engine engine(package, options);
    const int64_t allocated = engine.statistics().allocated_bytes;
    EXPECT_EQ(fake_live_bytes(), size_t(allocated));
    EXPECT_LE(allocated, plan.worst_case);
    engine.allocateSlot();
    EXPECT_EQ(engine.statistics().allocated_bytes, allocated);
    EXPECT_EQ(fake_calls("cuMemCreate"), 0);
  }
  ss_engine_options limited = options;
  limited.state_bytes_limit = Engine(package, options).statistics().allocated_bytes * 3 / 4;
  Engine engine(package, limited);
  EXPECT_LE(engine.statistics().allocated_bytes, limited.state_bytes_limit);
}

/// What hand-over takes is what the driver has given beyond everything else.
TEST_F(CudaEngines, CountWhatHandOverTakes) {
  FakePackage source{{gdnLayer(2, 2, 16, 24)}};
  ss_engine_options options = cudaOptions(3);
  options.row_capacity = 24;
  constexpr int64_t kPieces = int64_t(64) << 20;
  Package package = Package::open(source.folder());
  const int64_t most = package.plan(options).hand_over;
  EXPECT_GT(most, kPieces);
  CudaUnderTest cuda(source, options, false);
  ss_engine *engine = cuda.engine.get();
  const std::vector<int32_t> slots = {cuda.engine.allocateSlot(),
                                      cuda.engine.allocateSlot(),
                                      cuda.engine.allocateSlot()};
  const size_t floats = slots.size() * 2 * 16 * 24;
  void *matrices = nullptr;
  ASSERT_EQ(ss_device_malloc(engine, floats * 4, &matrices), SS_OK);
  const std::vector<float> zeros(floats);
  ASSERT_EQ(ss_device_copy_in(engine, matrices, zeros.data(), floats * 4,
                              nullptr),
            SS_OK);
  const size_t before = fake_live_bytes();
  int64_t last = 0;
  const auto expectCounted = [&](const char *call) {
    const ss_statistics s = cuda.engine.statistics();
    EXPECT_EQ(int64_t(fake_live_bytes() - before), s.hand_over_bytes) << call;
    EXPECT_EQ(s.allocated_bytes, package.plan(options).worst_case);
    EXPECT_GE(s.hand_over_bytes, last) << call;
    EXPECT_LE(s.hand_over_bytes, most);
    last = s.hand_over_bytes;
  };
  expectCounted("nothing");
  EXPECT_EQ(last, 0);
  ss_dense_layout layout = {};
  layout.struct_size = sizeof layout;
  ASSERT_EQ(ss_state_densify_to(engine, 0, slots.data(), nullptr, 3, matrices,
                                &layout, nullptr),
            SS_OK)
      << ss_last_error();
  expectCounted("densify");
  EXPECT_GT(last, 0);
  EXPECT_LT(last, most - kPieces);
  ASSERT_EQ(ss_state_init(engine, 0, slots.data(), nullptr, 3, matrices,
                          &layout, nullptr, nullptr),
            SS_OK)
      << ss_last_error();
  expectCounted("init");
  const std::vector<std::byte> bytes = cuda.engine.snapshot(slots[0]);
  expectCounted("snapshot");
  cuda.engine.restore(slots[1], bytes);
  cuda.engine.fork(slots[1], slots[2]);
  expectCounted("fork");
  ASSERT_EQ(ss_device_free(engine, matrices), SS_OK);
}

// All states at once: the work memory is what was planned, to the byte.
TEST_F(CudaEngines, PlanTheWorkMemoryOfDenseStatesExactly) {
  std::vector<LayerSpec> layers = {gdnLayer(2, 2, 16, 24),
                                   mamba2Layer(4, 1, 24, 16)};
  layers[1].name = "layer1";
  layers[1].index = 1;
  FakePackage source(layers);
  ss_engine_options options = cudaOptions(3);
  const runtime::Manifest manifest = runtime::parseManifest(source.manifest);
  ss_engine_options resolved = options;
  resolved.dense_fallback = 1;
  const runtime::cuda::CudaLayout layout(manifest, resolved);
  const int64_t planned =
      runtime::cuda::mostHandOverBytes(manifest, layout) -
      runtime::cuda::PieceMover::kStagingBytes;
  int64_t each = 0;
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    // The matrix, 16 rows of components and their weights, three tables of 64 bits
    // and three of 32, each array's alignment.
    const int64_t rows = runtime::mostInitialRows(manifest.layers[i]);
    each = std::max(each, (16 * 24 * 4 + rows * (16 + 24 + 1) * 4 + 36 +
                           10 * 256) * layout.layers[i].sizes.states);
  }
  EXPECT_EQ(planned, each);
}

TEST_F(CudaEngines, NeedRoomForTheirTables) {
  ss_engine_options options = cudaOptions(3);
  options.state_bytes_limit = 1000;
  expectNoEngine(options, SS_OUT_OF_MEMORY,
                 "options.state_bytes_limit is 1000, expected at least the ");
}

TEST_F(CudaEngines, SayWhatTheDeviceDoesNotDo) {
  ss_engine_options options = cudaOptions(1);
  options.dense_fallback = 1;
  options.row_capacity = 24;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.dense_fallback is 1, expected 0 or -1: with "
                 "options.row_capacity every state keeps the rows it has");
  options = cudaOptions(1);
  options.row_capacity = 24;
  options.exhaustion = SS_EXHAUSTION_TIGHTEN;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.state_bytes_limit or exhaustion is not 0, expected 0: "
                 "with options.row_capacity everything is allocated");
  options = cudaOptions(1);
  options.row_capacity = 15;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.row_capacity is 15, expected 0 or at least 16 "
                 "(active 8 + buffer 8 + draft 0 of layer 'layer0')");
  options = cudaOptions(1);
  options.compaction_streams = 17;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.compaction_streams is 17, expected -1 (none), 0 (8) "
                 "or up to 16");
  options = cudaOptions(1);
  options.reserved_slots = 1;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.reserved_slots is 1, expected 0 to 0: fewer than "
                 "options.slots");
  options = cudaOptions(1);
  options.device_ordinal = 3;
  expectNoEngine(options, SS_INVALID_ARGUMENT,
                 "options.device_ordinal is 3, expected 0 to 0");
}

TEST_F(CudaEngines, NeverHandOutReservedSlots) {
  ss_engine_options options = cudaOptions(3);
  options.reserved_slots = 1;
  Package package = Package::open(source.folder());
  Engine engine(package, options);
  EXPECT_EQ(engine.allocateSlot(), 1);
  EXPECT_EQ(engine.allocateSlot(), 2);
  int32_t slot = -1;
  EXPECT_EQ(ss_slot_alloc(engine.get(), &slot, nullptr), SS_SLOTS_EXHAUSTED);
  engine.freeSlot(2);
  EXPECT_EQ(engine.allocateSlot(), 2);
  EXPECT_EQ(ss_slot_reset(engine.get(), 0, nullptr), SS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ss_last_error()).find("slot 0 has no owner"),
            std::string::npos)
      << ss_last_error();
}

TEST_F(CudaEngines, SayHowMuchMemoryThereIs) {
  fake_set_memory_limit(1000);
  expectNoEngine(cudaOptions(1), SS_OUT_OF_MEMORY,
                 "which has 1000 of 1000 free");
}

TEST_F(CudaEngines, NeedGpuCodeInThePackage) {
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  json["cuda"].erase(1);
  source.manifest = json.dump();
  source.write();
  expectNoEngine(cudaOptions(1), SS_NOT_FOUND,
                 "has no GPU code for kernel 'layer0_compact'");
}

TEST_F(CudaEngines, NeedMoreThanAPackageInMemory) {
  Package package =
      Package::fromMemory(source.cpuKernels().manifest(), &KernelSet::lookup,
                          &source.cpuKernels());
  const ss_engine_options options = cudaOptions(1);
  ss_engine *engine = nullptr;
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine), SS_NOT_FOUND);
  EXPECT_NE(std::string(ss_last_error()).find("has no GPU code"),
            std::string::npos)
      << ss_last_error();
}

TEST_F(CudaEngines, OnTheCpuNeedCpuCode) {
  ss_engine_options options = engineOptions();
  expectNoEngine(options, SS_NOT_FOUND, "has no CPU code for this processor");
}

TEST_F(CudaEngines, QuoteTheCompiler) {
  const std::string wrong = "#error\n";
  source.writeFile("cuda/layer0_decode.cu", wrong);
  expectNoEngine(cudaOptions(1), SS_MALFORMED_PACKAGE,
                 "layer0_decode.cu' has sha256");
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  json["cuda"][0]["sha256"] = sha256Hex(wrong);
  source.manifest = json.dump();
  source.write();
  // Text that we printed is not for its reader to mend.
  expectNoEngine(cudaOptions(1), SS_INTERNAL,
                 "NVRTC 13.0 rejects 'layer0_decode.cu' for sm_90a: the printed "
                 "kernel is wrong, report it: "
                 "layer0_decode.cu(1): error: #error directive");
}

TEST_F(CudaEngines, NameTheFileOfAnOverrideThatIsRejected) {
  TemporaryFolder overrides;
  const std::string file = overrides.path() + "/layer0_decode.cu";
  std::ofstream(file) << "#error\n";
  ScopedVariable variable("SS_OVERRIDE_DIR", overrides.path().c_str());
  expectNoEngine(cudaOptions(1), SS_INVALID_ARGUMENT,
                 "NVRTC 13.0 rejects '" + file +
                     "' for sm_90a: correct it, or take it out of "
                     "SS_OVERRIDE_DIR: " +
                     file + "(1): error: #error directive");
}

TEST_F(CudaEngines, NeedAnNvrtcThatKnowsTheGpu) {
  fake_set_capability(10, 3);
  for (const char *part :
       {"NVRTC 13.0 ('" SS_FAKE_NVRTC "') does not compile for 'sm_103', "
        "expected one of sm_90",
        "(GPU 0, Fake GPU)"})
    expectNoEngine(cudaOptions(1), SS_DEVICE_UNAVAILABLE, part);
}

TEST_F(CudaEngines, SayWhichPartOfNvrtcIsMissing) {
  const std::string log = "nvrtc: error: failed to open "
                          "libnvrtc-builtins.so.13.0.";
  for (int result : {7, 6}) {
    fake_nvrtc_fail(result, log.c_str());
    expectNoEngine(cudaOptions(1), SS_DEVICE_UNAVAILABLE,
                   "NVRTC 13.0 ('" SS_FAKE_NVRTC "') does not find its "
                   "libnvrtc-builtins (" + log + "), expected it beside that "
                   "file: install all of the package cuda-nvrtc");
  }
  fake_nvrtc_fail(1, "");
  expectNoEngine(cudaOptions(1), SS_OUT_OF_MEMORY, "no memory to compile");
  fake_nvrtc_fail(0, "");
}

TEST(Nvrtc, ThatIsTooOldIsNamed) {
  for (auto [major, minor] : {std::pair(12, 3), {11, 8}}) {
    fake_nvrtc_set_version(major, minor);
    auto opened = nvrtc::Library::open(SS_FAKE_NVRTC);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error(), "NVRTC " + std::to_string(major) + "." +
                                  std::to_string(minor) + " ('" SS_FAKE_NVRTC
                                  "') is too old, expected 12.4 or newer: "
                                  "update NVRTC, or set SS_NVRTC to a newer "
                                  "one");
  }
  fake_nvrtc_set_version(13, 0);
}

TEST_F(CudaEngines, CompileTheirKernelsInParallel) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "one processor compiles one kernel after the other";
  fake_nvrtc_meet(2);
  const Package package = Package::open(source.folder());
  EXPECT_NO_THROW(Engine(package, cudaOptions(1)));
  fake_nvrtc_meet(0);
}

TEST_F(CudaEngines, CompileForAllFeaturesOfTheirGpu) {
  const Package package = Package::open(source.folder());
  Engine engine(package, cudaOptions(1));
  EXPECT_STREQ(fake_nvrtc_architecture(), "sm_90a");
}

TEST_F(CudaEngines, CompileNothingASecondTime) {
  TemporaryFolder cache;
  setenv("SS_CACHE", "on", 1);
  setenv("SS_CACHE_DIR", cache.path().c_str(), 1);
  Package package = Package::open(source.folder());
  const int before = fake_nvrtc_compilations();
  { Engine engine(package, cudaOptions(1)); }
  EXPECT_EQ(fake_nvrtc_compilations() - before, 6);
  { Engine engine(package, cudaOptions(1)); }
  EXPECT_EQ(fake_nvrtc_compilations() - before, 6);
  setenv("SS_CACHE", "off", 1);
}

/// While it lives, no thread can be made: there are no addresses for its stack.
class NoMoreThreads {
public:
  NoMoreThreads() {
    pthread_getattr_default_np(&former);
    pthread_attr_t huge = former;
    pthread_attr_setstacksize(&huge, size_t(1) << 48);
    pthread_setattr_default_np(&huge);
  }
  NoMoreThreads(const NoMoreThreads &) = delete;
  ~NoMoreThreads() { pthread_setattr_default_np(&former); }

private:
  pthread_attr_t former = {};
};

TEST_F(CudaEngines, CompileWithTheThreadsThatThereAre) {
  Package package = Package::open(source.folder());
  NoMoreThreads none;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  const int before = fake_nvrtc_compilations();
  { Engine engine(package, cudaOptions(1)); }
  EXPECT_EQ(fake_nvrtc_compilations() - before, 6);
}

TEST_F(CudaEngines, UseMachineCodeOfThePackageForThisGpu) {
  const std::string cubin = "FAKE from the package", wrong = "not loaded";
  source.writeFile("cuda/layer0_decode.cu", "#error\n"); // is not read
  const auto machineCode = [&](const std::string &architecture,
                               const std::string &content) {
    const std::string file = "cuda/decode." + architecture + ".cubin";
    source.writeFile(file, content);
    return nlohmann::json{{"arch", architecture},
                          {"file", file},
                          {"sha256", sha256Hex(content)}};
  };
  const nlohmann::json original = nlohmann::json::parse(source.manifest);
  // Its own architecture wins, wherever it stands; without its own features, it
  // does as well; another's never.
  for (const std::vector<std::string> &architectures :
       {std::vector<std::string>{"sm_80", "sm_90"},
        {"sm_90", "sm_90a", "sm_100"},
        {"sm_90a", "sm_90"}}) {
    nlohmann::json json = original, cubins = nlohmann::json::array();
    const bool own = std::count(architectures.begin(), architectures.end(),
                                "sm_90a") > 0;
    for (const std::string &architecture : architectures)
      cubins.push_back(machineCode(
          architecture,
          architecture == (own ? "sm_90a" : "sm_90") ? cubin : wrong));
    json["cuda"][0]["cubins"] = cubins;
    source.manifest = json.dump();
    source.write();
    Package package = Package::open(source.folder());
    EXPECT_NO_THROW(Engine(package, cudaOptions(1)));
  }
}

TEST_F(CudaEngines, AskForDynamicSharedMemory) {
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  for (nlohmann::json &code : json["cuda"])
    code["dynamic_shared"] = 65536;
  for (nlohmann::json &kernel : json["kernels"])
    kernel["programs_per_block"] = 2;
  source.manifest = json.dump();
  source.write();
  CudaUnderTest cuda(source, cudaOptions(1), false);
  DrivenRequest request = cuda.request(source, 1);
  (void)cuda.engine.densify(0, request.slot);
  EXPECT_EQ(fake_last_shared(), 65536u);
  EXPECT_EQ(fake_last_threads(), 64u);
  EXPECT_EQ(fake_last_blocks(), 1u);
}

TEST_F(CudaEngines, ThatLostTheGpuSaySo) {
  CudaUnderTest cuda(source, cudaOptions(1), false);
  DrivenRequest request = cuda.request(source, 1);
  cuda.driver.step({&request});
  fake_fail("cuLaunchKernel", 700, 1, 1);
  auto codeOf = [](auto &&body) {
    try {
      body();
    } catch (const Exception &error) {
      EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_ILLEGAL_ADDRESS"),
                std::string::npos)
          << error.what();
      return error.code();
    }
    return SS_OK;
  };
  EXPECT_EQ(codeOf([&] { cuda.driver.enqueue(1, nullptr); }), SS_DEVICE_LOST);
  EXPECT_EQ(codeOf([&] { cuda.engine.synchronize(); }), SS_DEVICE_LOST);
  EXPECT_EQ(codeOf([&] { cuda.engine.densify(0, request.slot); }),
            SS_DEVICE_LOST);
  // Destroying it is still allowed.
}

TEST_F(CudaEngines, LaunchMoreBlocksThanASecondGridDimensionHas) {
  // 40,000 requests of 2 heads; kernels that do nothing.
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  for (const nlohmann::json &kernel : json["kernels"]) {
    std::vector<size_t> sizes(kernel["args"].size() + 1, 8);
    fake_add_kernel(kernel["name"].get<std::string>().c_str(), sizes.data(),
                    sizes.size(), [](void *, void *const *, unsigned) {},
                    nullptr);
  }
  const int32_t batch = 40000;
  Package package = Package::open(source.folder());
  ss_engine_options options = cudaOptions(batch);
  options.row_capacity = 16;
  Engine engine(package, options);
  DeviceArray<int32_t> slots(engine, batch);
  slots.copyIn(std::vector<int32_t>(batch, -1));
  DeviceArray<float> floats(engine, 1);
  ss_decode_args args = decodeArgs();
  args.batch = batch;
  args.slots = slots.data();
  args.q = args.k = args.v = args.gate = args.beta = {floats.data(), 0};
  args.a_log = args.dt_bias = args.y = floats.data();
  engine.beginStep(slots.data(), batch);
  engine.decodeLayer(0, args);
  EXPECT_EQ(fake_last_blocks(), 80000u);
  engine.endStep(slots.data(), batch);
}

TEST_F(CudaEngines, GiveFewProgramsAWarpForEachPart) {
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  for (nlohmann::json &kernel : json["kernels"]) {
    std::vector<size_t> sizes(kernel["args"].size() + 1, 8);
    for (const char *suffix : {"", "_parts"})
      fake_add_kernel((kernel["name"].get<std::string>() + suffix).c_str(),
                      sizes.data(), sizes.size(),
                      [](void *, void *const *, unsigned) {}, nullptr);
    if (kernel["role"] == "decode")
      kernel["parts"] = 4;
  }
  source.manifest = json.dump();
  source.write();
  Package package = Package::open(source.folder());
  // 4 multiprocessors hold 3 blocks each: 24 programs are twice as many, of 12
  // requests of 2 heads. Two kernels of 6 programs fit beside each other.
  constexpr int32_t kFew = 12, kOverlapped = 3;
  ss_engine_options options = cudaOptions(kFew + 1);
  options.row_capacity = 16;
  Engine engine(package, options);
  DeviceArray<int32_t> slots(engine, kFew + 1);
  slots.copyIn(std::vector<int32_t>(kFew + 1, -1));
  DeviceArray<float> floats(engine, 1);
  ss_decode_args args = decodeArgs();
  args.slots = slots.data();
  args.q = args.k = args.v = args.gate = args.beta = {floats.data(), 0};
  args.a_log = args.dt_bias = args.y = floats.data();
  for (int32_t batch : {kOverlapped, kOverlapped + 1, kFew, kFew + 1}) {
    args.batch = batch;
    const bool isFew = batch <= kFew;
    fake_watch(isFew ? "layer0_decode_parts" : "layer0_decode");
    engine.beginStep(slots.data(), batch);
    engine.decodeLayer(0, args);
    EXPECT_EQ(fake_watched_blocks(), unsigned(2 * batch));
    EXPECT_EQ(fake_watched_threads(), isFew ? 128u : 32u);
    EXPECT_EQ(fake_watched_attributes(), batch <= kOverlapped ? 1u : 0u);
    engine.endStep(slots.data(), batch);
  }
}

TEST_F(CudaEngines, LaunchNoMoreBlocksThanTheGpuHoldsWhereKernelsLoop) {
  nlohmann::json json = nlohmann::json::parse(source.manifest);
  for (nlohmann::json &kernel : json["kernels"])
    kernel["loops"] = kernel["role"] != "decode";
  source.manifest = json.dump();
  source.write();
  CudaUnderTest cuda(source, cudaOptions(9), false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> rows;
  for (uint64_t seed = 0; seed < 9; ++seed)
    requests.push_back(cuda.request(source, seed));
  for (DrivenRequest &request : requests)
    rows.push_back(&request);
  cuda.driver.step({rows.begin(), rows.begin() + 1});
  (void)cuda.engine.densify(0, requests[0].slot);
  EXPECT_EQ(fake_last_blocks(), 2u); // one for each head
  // 4 multiprocessors that hold 3 blocks each; 9 requests of 2 heads.
  EXPECT_EQ(fake_calls("cuOccupancyMaxActiveBlocksPerMultiprocessor"), 2);
  fake_watch("layer0_compact");
  cuda.driver.step(rows);
  EXPECT_EQ(fake_watched_blocks(), 12u);
}

TEST(CudaLayout, HasOffsetsAboveTwoGigabytes) {
  runtime::Manifest manifest =
      runtime::parseManifest(referenceManifest({gdnLayer(32, 16, 128, 128)}));
  ss_engine_options options = engineOptions();
  options.slots = 4096;
  options.row_capacity = 40;
  runtime::cuda::CudaLayout layout(manifest, options);
  const runtime::cuda::LayerPlaces &layer = layout.layers[0];
  EXPECT_EQ(layer.capacity, 40);
  EXPECT_EQ(layer.maxRank, 32);
  const int64_t rows = int64_t(4096) * 32 * 40 * 256 * 4;
  EXPECT_GT(rows, int64_t(1) << 32);
  EXPECT_EQ(layer.weights - layer.rows, rows);
  EXPECT_GT(layout.bytes, rows);
  options.row_capacity = 0;
  EXPECT_EQ(runtime::cuda::CudaLayout(manifest, options).layers[0].maxRank,
            136);
}

} // namespace
