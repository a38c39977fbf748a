//===- KernelCacheTest.cpp - Compile each kernel once ---------------------===//

#include "cache/KernelCache.h"

#include "CacheFixture.h"
#include "ScopedVariable.h"

#include <atomic>
#include <stdexcept>
#include <thread>

using namespace cache_test;

namespace {
class KernelCacheTest : public CacheTest {};
} // namespace

TEST_F(KernelCacheTest, HitAndMissReturnTheSame) {
  KernelCache cache(settings());
  CachedKernel miss = get(cache);
  CachedKernel hit = get(cache);
  EXPECT_FALSE(miss.hit);
  EXPECT_TRUE(hit.hit);
  EXPECT_EQ(miss.blobs, exampleBlobs(exampleInputs()));
  EXPECT_EQ(hit.blobs, miss.blobs);
  EXPECT_EQ(hit.key, miss.key);
  EXPECT_EQ(hit.key, kernelKey(exampleInputs()));
  EXPECT_GT(miss.seconds, 0);
  EXPECT_GT(hit.seconds, 0);
  EXPECT_EQ(compilations, 1);
  EXPECT_EQ(log.joined(), "");
}

TEST_F(KernelCacheTest, AnotherCacheOfTheSameFolderHits) {
  fill();
  KernelCache cache(settings());
  EXPECT_TRUE(get(cache).hit);
}

TEST_F(KernelCacheTest, Statistics) {
  KernelCache cache(settings());
  get(cache), get(cache), get(cache, exampleInputs("other"));
  auto failing = [](const KernelKeyInputs &) -> Result<Blobs> {
    return Error{"it does not compile"};
  };
  EXPECT_FALSE(bool(cache.getOrCompile(exampleInputs("bad"), failing)));
  const CacheStatistics statistics = cache.statistics();
  EXPECT_EQ(statistics.hits, 1u);
  EXPECT_EQ(statistics.misses, 3u);
  EXPECT_EQ(statistics.compiled, 2u);
  EXPECT_EQ(statistics.waited, 0u);
}

TEST_F(KernelCacheTest, FailedCompilationIsReportedAndNotKept) {
  KernelCache cache(settings());
  Result<CachedKernel> failed = cache.getOrCompile(
      exampleInputs(), [](const KernelKeyInputs &) -> Result<Blobs> {
        return Error{"gdn_decode.cu(3): error"};
      });
  ASSERT_FALSE(bool(failed));
  EXPECT_EQ(failed.error(), "gdn_decode.cu(3): error");
  EXPECT_TRUE(store().list().empty());
  EXPECT_FALSE(get(cache).hit) << "and the lock is free again";
}

TEST_F(KernelCacheTest, WhatIsThrownBecomesAnError) {
  KernelCache cache(settings());
  Result<CachedKernel> failed = cache.getOrCompile(
      exampleInputs(), [](const KernelKeyInputs &) -> Result<Blobs> {
        throw std::runtime_error("the compiler is gone");
      });
  ASSERT_FALSE(bool(failed));
  EXPECT_EQ(failed.error(), "kernel 'gdn_decode' could not be compiled: the "
                            "compiler is gone");
  failed = cache.getOrCompile(
      exampleInputs(),
      [](const KernelKeyInputs &) -> Result<Blobs> { throw 1; });
  EXPECT_FALSE(bool(failed));
  EXPECT_FALSE(get(cache).hit);
}

TEST_F(KernelCacheTest, Off) {
  fill();
  CacheSettings off = settings();
  off.mode = CacheMode::Off;
  KernelCache cache(off);
  EXPECT_FALSE(get(cache).hit);
  EXPECT_FALSE(get(cache, exampleInputs("other")).hit);
  EXPECT_EQ(store().list().size(), 1u);
  EXPECT_EQ(log.joined(), "");
}

TEST_F(KernelCacheTest, ReadOnly) {
  const std::string key = fill();
  const std::string marker = store().entryFolder(key) + "/used";
  setTime(marker, 1000);
  CacheSettings readOnly = settings();
  readOnly.mode = CacheMode::ReadOnly;
  KernelCache cache(readOnly);
  EXPECT_TRUE(get(cache).hit);
  EXPECT_EQ(modificationTime(marker), 1000);
  EXPECT_FALSE(get(cache, exampleInputs("other")).hit);
  EXPECT_EQ(store().list().size(), 1u);
}

TEST_F(KernelCacheTest, HitNotesTheUse) {
  const std::string key = fill();
  const std::string marker = store().entryFolder(key) + "/used";
  setTime(marker, 1000);
  KernelCache cache(settings());
  EXPECT_TRUE(get(cache).hit);
  EXPECT_GT(modificationTime(marker), 1000);
}

TEST_F(KernelCacheTest, BuildIdIsFilledIn) {
  KernelKeyInputs inputs = exampleInputs();
  inputs.buildId = "";
  KernelCache cache(settings());
  const CachedKernel first = get(cache, inputs);
  CacheSettings another = settings();
  another.buildId = "build-id:another";
  KernelCache rebuilt(another);
  EXPECT_FALSE(get(rebuilt, inputs).hit);
  inputs.buildId = "build-id:own";
  EXPECT_EQ(kernelKey(inputs), first.key);
}

TEST_F(KernelCacheTest, FormatsDoNotMeet) {
  fill();
  CacheSettings next = settings();
  next.formatVersion = 2;
  KernelCache cache(next);
  EXPECT_FALSE(get(cache).hit);
  EXPECT_TRUE(get(cache).hit);
  KernelCache old(settings());
  EXPECT_TRUE(get(old).hit);
}

TEST_F(KernelCacheTest, BlobThatCannotBeAFileIsReturnedAndNotKept) {
  KernelCache cache(settings());
  const Blobs blobs = {{"../escape", "bytes"}};
  Result<CachedKernel> kernel = cache.getOrCompile(
      exampleInputs(),
      [&](const KernelKeyInputs &) -> Result<Blobs> { return blobs; });
  ASSERT_TRUE(bool(kernel));
  EXPECT_EQ(kernel->blobs, blobs);
  EXPECT_TRUE(store().list().empty());
  EXPECT_EQ(log.lines.size(), 1u) << log.joined();
}

TEST_F(KernelCacheTest, NoBlobsAreAnEntryToo) {
  KernelCache cache(settings());
  auto nothing = [](const KernelKeyInputs &) -> Result<Blobs> {
    return Blobs();
  };
  EXPECT_FALSE(cache.getOrCompile(exampleInputs(), nothing)->hit);
  EXPECT_TRUE(cache.getOrCompile(exampleInputs(), nothing)->hit);
}

TEST_F(KernelCacheTest, ThreadsCompileOnce) {
  KernelCache cache(settings());
  std::atomic<int> compiled = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      Result<CachedKernel> kernel = cache.getOrCompile(
          exampleInputs(), [&](const KernelKeyInputs &inputs) -> Result<Blobs> {
            ++compiled;
            std::this_thread::yield();
            return exampleBlobs(inputs);
          });
      wrong += !kernel || kernel->blobs != exampleBlobs(exampleInputs());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.statistics().hits, 7u);
}

TEST_F(KernelCacheTest, StaysBelowItsSize) {
  CacheSettings small = settings();
  small.maxBytes = 20000;
  small.pruneInterval = std::chrono::seconds(0);
  KernelCache cache(small);
  for (int i = 0; i < 10; ++i) {
    get(cache, exampleInputs("kernel" + std::to_string(i)));
    uint64_t bytes = 0;
    for (const EntryInfo &entry : store().list())
      bytes += entry.bytes;
    EXPECT_LE(bytes, 20000u);
  }
  EXPECT_GE(store().list().size(), 2u);
}

TEST_F(KernelCacheTest, SettingsComeFromTheEnvironment) {
  ScopedVariable home("HOME", "/home/somebody");
  ScopedVariable noCacheHome("XDG_CACHE_HOME", nullptr);
  ScopedVariable noFolder("SS_CACHE_DIR", nullptr);
  ScopedVariable mode("SS_CACHE", "ro");
  ScopedVariable size("SS_CACHE_MAX_SIZE", "5K");
  ScopedVariable dump("SS_DUMP_DIR", "/dump");
  ScopedVariable override("SS_OVERRIDE_DIR", "/override");
  Result<CacheSettings> settings = CacheSettings::fromEnvironment();
  ASSERT_TRUE(bool(settings)) << settings.error();
  EXPECT_EQ(settings->folder, "/home/somebody/.cache/sinkstate");
  EXPECT_EQ(settings->mode, CacheMode::ReadOnly);
  EXPECT_EQ(settings->maxBytes, 5120u);
  EXPECT_EQ(settings->dumpFolder, "/dump");
  EXPECT_EQ(settings->overrideFolder, "/override");
  EXPECT_TRUE(settings->buildId.has_value());
  ScopedVariable cacheHome("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(CacheSettings::fromEnvironment()->folder, "/caches/sinkstate");
  ScopedVariable given("SS_CACHE_DIR", "/given");
  EXPECT_EQ(CacheSettings::fromEnvironment()->folder, "/given");
}

TEST_F(KernelCacheTest, WrongVariablesAreErrors) {
  {
    ScopedVariable mode("SS_CACHE", "yes");
    Result<std::unique_ptr<KernelCache>> cache = KernelCache::fromEnvironment();
    ASSERT_FALSE(bool(cache));
    EXPECT_TRUE(cache.error().starts_with("SS_CACHE is 'yes', expected"));
  }
  ScopedVariable size("SS_CACHE_MAX_SIZE", "lots");
  EXPECT_FALSE(bool(KernelCache::fromEnvironment()));
}
