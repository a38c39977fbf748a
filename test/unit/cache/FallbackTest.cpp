//===- FallbackTest.cpp - The cache never makes a compilation fail --------===//

#include "CacheFixture.h"
#include "ScopedVariable.h"

#include <csignal>
#include <sys/resource.h>

using namespace cache_test;

namespace {
class Fallback : public CacheTest {
protected:
  /// Everything compiles, nothing is found, one line says why.
  void expectOneLineAndCompiles(const CacheSettings &settings, CacheMode mode) {
    KernelCache cache(settings);
    EXPECT_FALSE(get(cache).hit);
    EXPECT_FALSE(get(cache).hit);
    EXPECT_FALSE(get(cache, exampleInputs("other")).hit);
    EXPECT_EQ(compilations, 3);
    EXPECT_EQ(log.lines.size(), 1u) << log.joined();
    EXPECT_EQ(cache.mode(), mode);
  }
};

/// Permissions do not bind root.
bool becomeNobody() {
  return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
}
} // namespace

TEST_F(Fallback, FolderUnderAFile) {
  ASSERT_FALSE(writeFile(folder.path + "/file", ""));
  CacheSettings settings = this->settings();
  settings.folder = folder.path + "/file/cache";
  expectOneLineAndCompiles(settings, CacheMode::ReadOnly);
  EXPECT_NE(log.lines[0].find(settings.folder), std::string::npos)
      << log.lines[0];
}

TEST_F(Fallback, FolderThatCannotBeMade) {
  CacheSettings settings = this->settings();
  settings.folder = "/proc/sinkstate-cache";
  expectOneLineAndCompiles(settings, CacheMode::ReadOnly);
}

TEST_F(Fallback, NoHome) {
  ScopedVariable home("HOME", nullptr);
  ScopedVariable cacheHome("XDG_CACHE_HOME", nullptr);
  ScopedVariable cacheFolder("SS_CACHE_DIR", nullptr);
  Result<CacheSettings> settings = CacheSettings::fromEnvironment();
  ASSERT_TRUE(bool(settings)) << settings.error();
  settings->log = log.log();
  expectOneLineAndCompiles(*settings, CacheMode::Off);
  EXPECT_NE(log.lines[0].find("SS_CACHE_DIR"), std::string::npos);
}

TEST_F(Fallback, BuildThatCannotBeTold) {
  CacheSettings settings = this->settings();
  settings.buildId = std::nullopt;
  KernelCache cache(settings);
  KernelKeyInputs inputs = exampleInputs();
  inputs.buildId = "";
  EXPECT_FALSE(get(cache, inputs).hit);
  EXPECT_FALSE(get(cache, inputs).hit);
  EXPECT_EQ(cache.mode(), CacheMode::Off);
  EXPECT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_TRUE(store().list().empty());
}

TEST_F(Fallback, ReadOnlyFolderStillHits) {
  fill();
  for (const std::string &path :
       {folder.path, store().root(), store().root() + "/staging",
        store().root() + "/locks"})
    ASSERT_EQ(::chmod(path.c_str(), 0555), 0);
  const pid_t child = inChild([&] {
    if (!becomeNobody())
      return 2;
    KernelCache cache(settings());
    const bool hit = get(cache).hit;
    const bool missed = !get(cache, exampleInputs("other")).hit &&
                        !get(cache, exampleInputs("other")).hit;
    const bool fellBack = cache.mode() == CacheMode::ReadOnly;
    return hit && missed && fellBack && log.lines.size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(waitFor(child), 0);
  for (const std::string &path : {folder.path, store().root()})
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
}

TEST_F(Fallback, ReadOnlyEmptyFolder) {
  ASSERT_EQ(::chmod(folder.path.c_str(), 0555), 0);
  const pid_t child = inChild([&] {
    if (!becomeNobody())
      return 2;
    KernelCache cache(settings());
    const bool missed = !get(cache).hit && !get(cache).hit;
    return missed && log.lines.size() == 1 && compilations == 2 ? 0 : 1;
  });
  EXPECT_EQ(waitFor(child), 0);
  ASSERT_EQ(::chmod(folder.path.c_str(), 0755), 0);
}

TEST_F(Fallback, DiskFull) {
  const pid_t child = inChild([&] {
    // A limit on the size of files fails writes as a full disk does.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {2000, 2000};
    if (::setrlimit(RLIMIT_FSIZE, &limit))
      return 2;
    KernelCache cache(settings());
    const CachedKernel kernel = get(cache);
    const bool whole =
        !kernel.hit && kernel.blobs == exampleBlobs(exampleInputs());
    const bool missed = !get(cache, exampleInputs("other")).hit;
    const bool fellBack = cache.mode() == CacheMode::ReadOnly;
    return whole && missed && fellBack && log.lines.size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(waitFor(child), 0);
  EXPECT_TRUE(store().list().empty());
  EXPECT_TRUE(namesIn(store().root() + "/staging").empty());
}

TEST_F(Fallback, BrokenEntryThatCannotBeRemoved) {
  const std::string key = fill();
  const std::string entry = store().entryFolder(key);
  ASSERT_FALSE(writeFile(entry + "/manifest.json", "{}"));
  const std::string shard = entry.substr(0, entry.rfind('/'));
  for (const std::string &path :
       {store().root() + "/staging", store().root() + "/locks"})
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(store().root().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(shard.c_str(), 0555), 0);
  ASSERT_EQ(::chmod((store().lockFile(key)).c_str(), 0666), 0);
  const pid_t child = inChild([&] {
    if (!becomeNobody())
      return 2;
    KernelCache cache(settings());
    const CachedKernel kernel = get(cache);
    return !kernel.hit && kernel.blobs == exampleBlobs(exampleInputs()) ? 0 : 1;
  });
  EXPECT_EQ(waitFor(child), 0);
  ASSERT_EQ(::chmod(shard.c_str(), 0755), 0);
}
