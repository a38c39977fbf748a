//===- EntryStoreTest.cpp - The entries of the cache on disk --------------===//

#include "cache/EntryStore.h"

#include "CacheFixture.h"

#include <cerrno>
#include <sys/file.h>

using namespace cache_test;

namespace {
class EntryStoreTest : public CacheTest {
protected:
  EntryManifest manifestOf(const KernelKeyInputs &inputs) {
    return describeEntry(kernelKey(inputs), inputs, exampleBlobs(inputs),
                         std::time(nullptr));
  }
  void publish(const EntryStore &store, const KernelKeyInputs &inputs) {
    ASSERT_FALSE(store.prepareForWriting());
    Result<bool> published =
        store.publish(manifestOf(inputs), exampleBlobs(inputs));
    ASSERT_TRUE(bool(published)) << published.error();
  }
  std::string staging() { return store().root() + "/staging"; }
  void makeOld(const std::string &path, std::time_t age) {
    setTime(path, std::time(nullptr) - age);
  }
};

int noLocks(int, int) {
  errno = ENOLCK;
  return -1;
}
} // namespace

TEST_F(EntryStoreTest, PublishedEntryIsLoaded) {
  const KernelKeyInputs inputs = exampleInputs();
  const std::string key = kernelKey(inputs);
  EXPECT_EQ(store().load(key).outcome, LoadOutcome::Missing);
  publish(store(), inputs);
  LoadedEntry entry = store().load(key);
  ASSERT_EQ(entry.outcome, LoadOutcome::Found) << entry.problem;
  EXPECT_EQ(entry.blobs, exampleBlobs(inputs));
  EXPECT_EQ(store().entryFolder(key),
            folder.path + "/v1/" + key.substr(0, 2) + "/" + key.substr(2));
  EXPECT_EQ(namesIn(store().entryFolder(key)),
            (std::vector<std::string>{"compile.log", "gdn_decode.cubin",
                                      "manifest.json", "used"}));
  EXPECT_TRUE(namesIn(staging()).empty());
}

TEST_F(EntryStoreTest, SecondPublicationIsLost) {
  const KernelKeyInputs inputs = exampleInputs();
  publish(store(), inputs);
  Blobs others = {{"other", "bytes"}};
  Result<bool> published = store().publish(
      describeEntry(kernelKey(inputs), inputs, others, 0), others);
  ASSERT_TRUE(bool(published)) << published.error();
  EXPECT_FALSE(*published);
  EXPECT_EQ(store().load(kernelKey(inputs)).blobs, exampleBlobs(inputs));
  EXPECT_TRUE(namesIn(staging()).empty());
}

TEST_F(EntryStoreTest, Remove) {
  publish(store(), exampleInputs());
  const std::string key = kernelKey(exampleInputs());
  EXPECT_TRUE(store().remove(key));
  EXPECT_EQ(store().load(key).outcome, LoadOutcome::Missing);
  EXPECT_TRUE(namesIn(staging()).empty());
  EXPECT_TRUE(store().remove(key)) << "nothing there is what was asked for";
}

TEST_F(EntryStoreTest, List) {
  EXPECT_TRUE(store().list().empty());
  publish(store(), exampleInputs("a"));
  publish(store(), exampleInputs("b"));
  const std::string key = kernelKey(exampleInputs("a"));
  setTime(store().entryFolder(key) + "/used", 1000);
  const std::vector<EntryInfo> entries = store().list();
  ASSERT_EQ(entries.size(), 2u);
  const EntryInfo &a = entries[entries[0].key == key ? 0 : 1];
  EXPECT_EQ(a.key, key);
  EXPECT_EQ(a.used, 1000);
  EXPECT_EQ(a.bytes, bytesIn(store().entryFolder(key)));
  EXPECT_GT(a.bytes, 5000u);
}

TEST_F(EntryStoreTest, TwoFormatsLiveSideBySide) {
  const EntryStore one(folder.path, 1), two(folder.path, 2);
  publish(one, exampleInputs("a"));
  publish(two, exampleInputs("b"));
  EXPECT_EQ(one.list().size(), 1u);
  EXPECT_EQ(two.list().size(), 1u);
  EXPECT_EQ(two.load(kernelKey(exampleInputs("a"))).outcome,
            LoadOutcome::Missing);
  EXPECT_EQ(one.load(kernelKey(exampleInputs("a"))).outcome,
            LoadOutcome::Found);
}

TEST_F(EntryStoreTest, UseIsNotedAtMostOnceAMinute) {
  publish(store(), exampleInputs());
  const std::string key = kernelKey(exampleInputs());
  const std::string marker = store().entryFolder(key) + "/used";
  const std::time_t now = std::time(nullptr);
  setTime(marker, now - 30);
  store().markUsed(key);
  EXPECT_EQ(modificationTime(marker), now - 30);
  setTime(marker, now - 100);
  store().markUsed(key);
  EXPECT_GE(modificationTime(marker), now);
  setTime(marker, now + 100000);
  store().markUsed(key);
  EXPECT_LT(modificationTime(marker), now + 100000);
}

TEST_F(EntryStoreTest, StagingOfTheDeadIsSwept) {
  ASSERT_FALSE(store().prepareForWriting());
  for (const char *name : {"dead", "alive", "young"})
    ASSERT_FALSE(makeFolders(staging() + "/" + name));
  ASSERT_FALSE(writeFile(staging() + "/dead/blob", "bytes"));
  FileDescriptor alive(::open((staging() + "/alive").c_str(), O_RDONLY));
  ASSERT_EQ(::flock(alive.get(), LOCK_EX), 0);
  makeOld(staging() + "/dead", 3600);
  makeOld(staging() + "/alive", 3600);
  EXPECT_EQ(store().sweepStaging(), 1u);
  EXPECT_EQ(namesIn(staging()), (std::vector<std::string>{"alive", "young"}));
  alive = FileDescriptor();
  EXPECT_EQ(store().sweepStaging(), 1u);
}

TEST_F(EntryStoreTest, StagingIsSweptByAgeWhereThereAreNoLocks) {
  const EntryStore store(folder.path, 1, noLocks);
  ASSERT_FALSE(store.prepareForWriting());
  ASSERT_FALSE(makeFolders(staging() + "/hour"));
  ASSERT_FALSE(makeFolders(staging() + "/week"));
  makeOld(staging() + "/hour", 3600);
  makeOld(staging() + "/week", 7 * 24 * 3600);
  EXPECT_EQ(store.sweepStaging(), 1u);
  EXPECT_EQ(namesIn(staging()), std::vector<std::string>{"hour"});
}
