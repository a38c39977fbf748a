//===- ProcessesTest.cpp - Many processes, one compilation ----------------===//

#include "CacheFixture.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

using namespace cache_test;

namespace {
constexpr int kProcesses = 8;

int noLocks(int, int) {
  errno = ENOLCK;
  return -1;
}

class Processes : public CacheTest {
protected:
  std::string compileLog = folder.path + "/compilations";

  void noteCompilation() {
    FileDescriptor file(
        ::open(compileLog.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666));
    (void)!::write(file.get(), "x", 1);
  }
  size_t compilationsNoted() {
    Result<std::string> bytes = readFile(compileLog, 1000);
    return bytes ? bytes->size() : 0;
  }
  /// What a compilation in this very process makes.
  Blobs ownBlobs() {
    return {{"kernel.cubin", exampleBytes(std::to_string(::getpid()))}};
  }

  /// Starts the processes at once; each writes the blob it got to a file.
  /// Returns the different contents.
  std::set<std::string> race(const CacheSettings &settings,
                             const CompileKernel &compile) {
    int gate[2];
    EXPECT_EQ(::pipe(gate), 0);
    std::array<pid_t, kProcesses> children;
    for (int i = 0; i < kProcesses; ++i)
      children[size_t(i)] = inChild([&] {
        ::close(gate[1]);
        char nothing;
        (void)!::read(gate[0], &nothing, 1); // until the gate is closed
        KernelCache cache(settings);
        Result<CachedKernel> kernel =
            cache.getOrCompile(exampleInputs(), compile);
        if (!kernel)
          return 1;
        return writeFile(resultFile(i), kernel->blobs["kernel.cubin"]) ? 2 : 0;
      });
    ::close(gate[1]);
    ::close(gate[0]);
    std::set<std::string> results;
    for (int i = 0; i < kProcesses; ++i) {
      EXPECT_EQ(waitFor(children[size_t(i)]), 0);
      Result<std::string> bytes = readFile(resultFile(i), 1 << 20);
      EXPECT_TRUE(bool(bytes));
      results.insert(bytes ? *bytes : "");
    }
    return results;
  }
  std::string resultFile(int i) {
    return folder.path + "/result" + std::to_string(i);
  }

  /// A process that holds the key's lock inside its compilation. Returns once
  /// it does.
  pid_t startOwner() {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t owner = inChild([&] {
      KernelCache cache(settings());
      (void)cache.getOrCompile(exampleInputs(),
                               [&](const KernelKeyInputs &) -> Result<Blobs> {
                                 (void)!::write(ready[1], "x", 1);
                                 for (;;)
                                   ::pause();
                               });
      return 0;
    });
    char started;
    EXPECT_EQ(::read(ready[0], &started, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    return owner;
  }
  void kill(pid_t owner) {
    ::kill(owner, SIGKILL);
    EXPECT_EQ(waitFor(owner), -1);
  }
};
} // namespace

TEST_F(Processes, RaceCompilesOnce) {
  const std::set<std::string> results =
      race(settings(), [&](const KernelKeyInputs &) -> Result<Blobs> {
        noteCompilation();
        // Long enough that the others come while this goes on.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return ownBlobs();
      });
  EXPECT_EQ(compilationsNoted(), 1u);
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(store().list().size(), 1u);
}

TEST_F(Processes, WithoutLocksEveryoneCompilesAndOneIsUsed) {
  CacheSettings settings = this->settings();
  settings.lock = noLocks;
  const std::set<std::string> results =
      race(settings, [&](const KernelKeyInputs &) -> Result<Blobs> {
        noteCompilation();
        // Nobody publishes before everybody compiles.
        while (compilationsNoted() < size_t(kProcesses))
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return ownBlobs();
      });
  EXPECT_EQ(compilationsNoted(), size_t(kProcesses));
  EXPECT_EQ(results.size(), 1u) << "the first to publish serves all";
  EXPECT_EQ(store().list().size(), 1u);
  EXPECT_TRUE(namesIn(store().root() + "/staging").empty());
}

TEST_F(Processes, KilledOwnerFreesTheLock) {
  kill(startOwner());
  KernelCache cache(settings());
  EXPECT_FALSE(get(cache).hit);
  EXPECT_EQ(cache.statistics().waited, 0u);
  EXPECT_TRUE(get(cache).hit);
}

TEST_F(Processes, WaitingNamesTheOwnerAndEndsWithIt) {
  const pid_t owner = startOwner();
  CacheSettings settings = this->settings();
  settings.lockTimeout = std::chrono::hours(1);
  settings.lockNotice = std::chrono::milliseconds(0);
  settings.log = [&](LogLevel, std::string_view line) {
    log.lines.emplace_back(line);
    kill(owner);
  };
  KernelCache cache(settings);
  EXPECT_FALSE(get(cache).hit);
  EXPECT_EQ(cache.statistics().waited, 1u);
  ASSERT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_TRUE(log.lines[0].starts_with("kernel cache: waiting for process " +
                                       std::to_string(owner) + " on "))
      << log.lines[0];
  EXPECT_NE(log.lines[0].find("kernel 'gdn_decode'"), std::string::npos);
}

TEST_F(Processes, WaitingTimesOutAndCompiles) {
  const pid_t owner = startOwner();
  CacheSettings settings = this->settings();
  settings.lockTimeout = std::chrono::milliseconds(1);
  KernelCache cache(settings);
  EXPECT_FALSE(get(cache).hit);
  ASSERT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_NE(log.lines[0].find("compiling it here as well"), std::string::npos);
  EXPECT_TRUE(get(cache).hit) << "published without the lock";
  kill(owner);
}

TEST_F(Processes, WaiterUsesWhatTheOwnerCompiled) {
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t owner = inChild([&] {
    KernelCache cache(settings());
    Result<CachedKernel> kernel = cache.getOrCompile(
        exampleInputs(), [&](const KernelKeyInputs &inputs) -> Result<Blobs> {
          char word;
          (void)!::write(ready[1], "x", 1);
          (void)!::read(go[0], &word, 1);
          return exampleBlobs(inputs);
        });
    return kernel ? 0 : 1;
  });
  char started;
  ASSERT_EQ(::read(ready[0], &started, 1), 1);
  CacheSettings settings = this->settings();
  settings.lockTimeout = std::chrono::hours(1);
  settings.lockNotice = std::chrono::milliseconds(0);
  settings.log = [&](LogLevel, std::string_view) { (void)!::write(go[1], "x", 1); };
  KernelCache cache(settings);
  CachedKernel kernel = get(cache);
  EXPECT_TRUE(kernel.hit);
  EXPECT_EQ(kernel.blobs, exampleBlobs(exampleInputs()));
  EXPECT_EQ(compilations, 0);
  EXPECT_EQ(cache.statistics().waited, 1u);
  EXPECT_EQ(cache.statistics().misses, 0u);
  EXPECT_EQ(waitFor(owner), 0);
  for (int end : {ready[0], ready[1], go[0], go[1]})
    ::close(end);
}
