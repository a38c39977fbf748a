//===- PruningTest.cpp - Keeping the cache small --------------------------===//

#include "cache/Pruning.h"

#include "CacheFixture.h"

#include <sys/file.h>

using namespace cache_test;
using std::chrono::hours;
using std::chrono::seconds;

namespace {
class PruningTest : public CacheTest {
protected:
  uint64_t entryBytes = 0;

  /// An entry last used `age` seconds ago.
  std::string entry(const std::string &kernel, std::time_t age) {
    const std::string key = fill(exampleInputs(kernel));
    setTime(store().entryFolder(key) + "/used", std::time(nullptr) - age);
    entryBytes = bytesIn(store().entryFolder(key));
    return key;
  }
  bool has(const std::string &key) {
    return store().load(key).outcome == LoadOutcome::Found;
  }
};
} // namespace

TEST_F(PruningTest, LeastRecentlyUsedGoFirst) {
  const std::string b = entry("b", 300), a = entry("a", 400),
                    d = entry("d", 100), c = entry("c", 200);
  PruneLimits limits;
  limits.maxBytes = 2 * entryBytes;
  const PruneReport report = prune(store(), limits);
  EXPECT_EQ(report.removedEntries, 2u);
  EXPECT_EQ(report.keptEntries, 2u);
  EXPECT_EQ(report.removedBytes, 2 * entryBytes);
  EXPECT_EQ(report.keptBytes, 2 * entryBytes);
  EXPECT_FALSE(has(a));
  EXPECT_FALSE(has(b));
  EXPECT_TRUE(has(c));
  EXPECT_TRUE(has(d));
}

TEST_F(PruningTest, WhatFitsStays) {
  const std::string a = entry("a", 400);
  PruneLimits limits;
  limits.maxBytes = entryBytes;
  EXPECT_EQ(prune(store(), limits).removedEntries, 0u);
  EXPECT_EQ(prune(store(), {}).removedEntries, 0u);
  EXPECT_TRUE(has(a));
  limits.maxBytes = entryBytes - 1;
  EXPECT_EQ(prune(store(), limits).removedEntries, 1u);
  EXPECT_FALSE(has(a));
}

TEST_F(PruningTest, Age) {
  const std::string old = entry("a", 3 * 24 * 3600), recent = entry("b", 3600);
  PruneLimits limits;
  limits.maxAge = hours(48);
  EXPECT_EQ(prune(store(), limits).removedEntries, 1u);
  EXPECT_FALSE(has(old));
  EXPECT_TRUE(has(recent));
}

TEST_F(PruningTest, BrokenEntriesCountAndGoToo) {
  const std::string key = entry("a", 400);
  ASSERT_EQ(::unlink((store().entryFolder(key) + "/manifest.json").c_str()), 0);
  PruneLimits limits;
  limits.maxBytes = 0;
  EXPECT_EQ(prune(store(), limits).removedEntries, 1u);
  EXPECT_FALSE(exists(store().entryFolder(key)));
}

TEST_F(PruningTest, OtherFormatsAreLeftAlone) {
  const std::string key = entry("a", 400);
  PruneLimits limits;
  limits.maxBytes = 0;
  prune(EntryStore(folder.path, 2), limits);
  EXPECT_TRUE(has(key));
}

TEST_F(PruningTest, NothingThere) {
  PruneLimits limits;
  limits.maxBytes = 0;
  const PruneReport report = prune(store(), limits);
  EXPECT_EQ(report.removedEntries + report.keptEntries, 0u);
  EXPECT_FALSE(exists(store().root()));
}

TEST_F(PruningTest, IsDoneOncePerInterval) {
  const std::string a = entry("a", 400);
  PruneLimits limits;
  limits.maxBytes = 0;
  // Filling the cache pruned it: the time is now.
  EXPECT_FALSE(pruneIfDue(store(), limits, hours(1)).has_value());
  EXPECT_TRUE(has(a));
  setTime(store().pruneFile(), std::time(nullptr) - 7200);
  EXPECT_TRUE(pruneIfDue(store(), limits, hours(1)).has_value());
  EXPECT_FALSE(has(a));
  EXPECT_FALSE(pruneIfDue(store(), limits, hours(1)).has_value());
}

TEST_F(PruningTest, IsLeftToWhoIsAtIt) {
  const std::string a = entry("a", 400);
  PruneLimits limits;
  limits.maxBytes = 0;
  {
    FileLock other = FileLock::acquire(store().pruneFile(), ::flock);
    ASSERT_TRUE(other.held());
    EXPECT_FALSE(pruneIfDue(store(), limits, seconds(0)).has_value());
    EXPECT_TRUE(has(a));
  }
  EXPECT_TRUE(pruneIfDue(store(), limits, seconds(0)).has_value());
}

TEST_F(PruningTest, OldLockFilesGo) {
  const std::string a = entry("a", 0), b = entry("b", 0), c = entry("c", 0);
  const std::time_t longAgo = std::time(nullptr) - 7 * 24 * 3600;
  FileLock held = FileLock::acquire(store().lockFile(b), ::flock);
  setTime(store().lockFile(a), longAgo);
  setTime(store().lockFile(b), longAgo);
  prune(store(), {});
  EXPECT_FALSE(exists(store().lockFile(a)));
  EXPECT_TRUE(exists(store().lockFile(b))) << "held";
  EXPECT_TRUE(exists(store().lockFile(c))) << "recent";
}
