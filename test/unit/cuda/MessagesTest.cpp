//===- MessagesTest.cpp - What is said at which level ---------------------===//

#include "CudaUnderTest.h"

#include "../environment/ScopedVariable.h"

#include <fstream>
#include <mutex>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> oneLayer() {
  LayerSpec layer = gdnLayer(2, 2, 16, 16);
  layer.active = 2;
  layer.buffer = 4;
  return {layer};
}

struct Message {
  ss_log_level level;
  std::string subject, line;
};

/// Keeps what is said while it lives.
class Messages {
public:
  explicit Messages(ss_log_level most = SS_LOG_DEBUG) {
    setLog(
        [](void *context, ss_log_level level, const char *subject,
           const char *line) {
          auto &self = *static_cast<Messages *>(context);
          std::lock_guard lock(self.mutex);
          self.kept.push_back({level, subject, line});
        },
        this, most);
  }
  ~Messages() { setLog(nullptr, nullptr); }
  Messages(const Messages &) = delete;
  Messages &operator=(const Messages &) = delete;

  std::vector<Message> of(const std::string &subject) {
    std::lock_guard lock(mutex);
    std::vector<Message> found;
    for (const Message &message : kept)
      if (message.subject == subject)
        found.push_back(message);
    return found;
  }

private:
  std::mutex mutex;
  std::vector<Message> kept;
};

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

class Levels : public OnFakeGpu {
protected:
  FakePackage source{oneLayer()};
};

TEST_F(Levels, ErrorIsAFaultOfTheDevice) {
  CudaUnderTest cuda(source, cudaOptions(1), false);
  Messages messages(SS_LOG_ERROR);
  // What the caller did wrong is the caller's matter.
  EXPECT_EQ(ss_begin_step(cuda.engine.get(), nullptr, 1, nullptr),
            SS_INVALID_ARGUMENT);
  EXPECT_EQ(ss_slot_free(cuda.engine.get(), 77), SS_INVALID_ARGUMENT);
  EXPECT_TRUE(messages.of("call").empty());

  fake_fail("cuStreamSynchronize", 1, 0, 0);
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr),
            SS_DEVICE_ERROR);
  ASSERT_EQ(messages.of("call").size(), 1u);
  const Message error = messages.of("call")[0];
  EXPECT_EQ(error.level, SS_LOG_ERROR);
  EXPECT_EQ(error.line,
            std::string("ss_engine_synchronize: ") + ss_last_error());

  fake_fail("cuStreamSynchronize", 700, 0, 1);
  EXPECT_EQ(ss_engine_synchronize(cuda.engine.get(), nullptr),
            SS_DEVICE_LOST);
  EXPECT_EQ(messages.of("call").size(), 2u);
}

TEST_F(Levels, ErrorIsAFaultOfTheLibrary) {
  Messages messages;
  ss_engine *engine = nullptr;
  const ss_engine_options options = cudaOptions(1);
  fake_nvrtc_fail(5, ""); // an option that it does not know
  Package package = Package::open(source.folder());
  EXPECT_EQ(ss_engine_create(package.get(), &options, &engine), SS_INTERNAL);
  fake_nvrtc_fail(0, "");
  ASSERT_EQ(messages.of("call").size(), 1u);
  EXPECT_TRUE(contains(messages.of("call")[0].line, "ss_engine_create: "));
  EXPECT_TRUE(contains(messages.of("call")[0].line, "report it"));
}

TEST_F(Levels, WarningIsOfAFolderThatCannotBeWritten) {
  ScopedVariable dump("SS_DUMP_DIR", "/dev/null/kernels");
  Messages messages(SS_LOG_WARNING);
  testing::internal::CaptureStderr();
  CudaUnderTest cuda(source, cudaOptions(1), false);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  bool said = false;
  for (const Message &message : messages.of("cache")) {
    EXPECT_EQ(message.level, SS_LOG_WARNING);
    said |= contains(message.line, "SS_DUMP_DIR: ");
  }
  EXPECT_TRUE(said);
  EXPECT_TRUE(messages.of("engine").empty()); // of a higher level
}

TEST_F(Levels, InfoIsOncePerEngineAndKernelReplaced) {
  TemporaryFolder overrides;
  ScopedVariable variable("SS_OVERRIDE_DIR", overrides.path().c_str());
  const std::string name = "layer0_decode";
  std::ofstream(overrides.path() + "/" + name + ".cu") << "// mine\n";
  {
    Messages messages(SS_LOG_INFO);
    testing::internal::CaptureStderr();
    CudaUnderTest cuda(source, cudaOptions(1), false);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_EQ(messages.of("engine").size(), 1u);
    EXPECT_EQ(messages.of("engine")[0].level, SS_LOG_INFO);
    ASSERT_EQ(messages.of("cache").size(), 1u);
    EXPECT_EQ(messages.of("cache")[0].level, SS_LOG_INFO);
    EXPECT_EQ(messages.of("cache")[0].line,
              "kernel '" + name + "' is overridden by '" + overrides.path() +
                  "/" + name + ".cu'");
  }
  // Nobody listens: the one who set the variable does.
  testing::internal::CaptureStderr();
  CudaUnderTest cuda(source, cudaOptions(1), false);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(),
                       "sinkstate: kernel '" + name + "' is overridden by"));
}

constexpr uint64_t kMostTenants = 500;
bool hasDropped(const Engine &engine) {
  return engine.statistics().consolidations_dropped > 0;
}

/// Every dropped result has a line of its own.
void expectDropsAreSaid(Messages &messages, const Engine &engine) {
  const ss_statistics s = engine.statistics();
  EXPECT_GT(s.consolidations_dropped, 0);
  const std::vector<Message> said = messages.of("consolidation");
  EXPECT_EQ(int64_t(said.size()), s.consolidations_dropped);
  for (const Message &message : said) {
    EXPECT_EQ(message.level, SS_LOG_DEBUG);
    EXPECT_EQ(message.line, "slot 0: a result of layer 'layer0' was dropped");
  }
}

TEST_F(Levels, DebugIsEveryDroppedResultOnAGpu) {
  ss_engine_options options = cudaOptions(1);
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidate_every = 1;
  Messages messages;
  CudaUnderTest cuda(source, options, false);
  // Tenants that leave; rows that are read only then are not decomposed.
  for (uint64_t seed = 0; seed < kMostTenants && !hasDropped(cuda.engine);
       ++seed) {
    DrivenRequest request = cuda.request(source, seed);
    for (int step = 0; step < 14; ++step)
      cuda.driver.step({&request});
    cuda.engine.freeSlot(request.slot);
  }
  expectDropsAreSaid(messages, cuda.engine);
}

TEST_F(Levels, DebugIsEveryDroppedResultOnTheCpu) {
  KernelSet kernels(oneLayer());
  const std::string manifest = kernels.manifest();
  Package package =
      Package::fromMemory(manifest, &KernelSet::lookup, &kernels);
  ss_engine_options options = engineOptions();
  options.dense_fallback = 0;
  options.consolidation = SS_CONSOLIDATION_DETERMINISTIC;
  options.consolidate_every = 1;
  Messages messages;
  Engine engine(package, options);
  RequestDriver driver(engine, kernels.layers(), false);
  for (uint64_t seed = 0; seed < kMostTenants && !hasDropped(engine); ++seed) {
    DrivenRequest request(kernels.layers(), seed, RequestStyle());
    request.slot = engine.allocateSlot();
    for (int step = 0; step < 14; ++step)
      driver.step({&request});
    engine.freeSlot(request.slot);
  }
  expectDropsAreSaid(messages, engine);
}

} // namespace
