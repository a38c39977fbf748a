//===- BrokenEntryTest.cpp - A broken entry is a miss ---------------------===//

#include "CacheFixture.h"

#include "hash/Sha256.h"

using namespace cache_test;

namespace {
class BrokenEntry : public CacheTest {
protected:
  std::string key = fill();
  std::string entry = store().entryFolder(key);
  std::string blob = entry + "/gdn_decode.cubin";
  std::string manifest = entry + "/manifest.json";

  std::string content(const std::string &path) {
    Result<std::string> bytes = readFile(path, 1 << 20);
    EXPECT_TRUE(bool(bytes));
    return bytes ? *bytes : "";
  }
  void replaceInManifest(const std::string &from, const std::string &to) {
    std::string json = content(manifest);
    const size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_FALSE(writeFile(manifest, json.replace(at, from.size(), to)));
  }
  /// Whatever was done to the entry: it is compiled again, and only once.
  void expectRepaired() {
    EXPECT_EQ(store().load(key).outcome, LoadOutcome::Broken);
    KernelCache cache(settings());
    CachedKernel kernel = get(cache);
    EXPECT_FALSE(kernel.hit);
    EXPECT_EQ(kernel.blobs, exampleBlobs(exampleInputs()));
    ASSERT_EQ(log.lines.size(), 1u) << log.joined();
    EXPECT_NE(log.lines[0].find("an entry is broken"), std::string::npos);
    EXPECT_EQ(log.lines[0].find("cannot be removed"), std::string::npos);
    EXPECT_EQ(cache.mode(), CacheMode::On);
    CachedKernel again = get(cache);
    EXPECT_TRUE(again.hit);
    EXPECT_EQ(again.blobs, kernel.blobs);
    EXPECT_EQ(compilations, 2) << "one to fill, one to repair";
  }
};
} // namespace

TEST_F(BrokenEntry, TruncatedBlob) {
  ASSERT_EQ(::truncate(blob.c_str(), 4999), 0);
  expectRepaired();
}

TEST_F(BrokenEntry, LongerBlob) {
  ASSERT_FALSE(writeFile(blob, content(blob) + "x"));
  expectRepaired();
}

TEST_F(BrokenEntry, FlippedByte) {
  std::string bytes = content(blob);
  bytes[1234] ^= 1;
  ASSERT_FALSE(writeFile(blob, bytes));
  expectRepaired();
}

TEST_F(BrokenEntry, MissingBlob) {
  ASSERT_EQ(::unlink(blob.c_str()), 0);
  expectRepaired();
}

TEST_F(BrokenEntry, BlobIsAFolder) {
  ASSERT_EQ(::unlink(blob.c_str()), 0);
  ASSERT_FALSE(makeFolders(blob));
  expectRepaired();
}

TEST_F(BrokenEntry, BlobIsAPipe) {
  ASSERT_EQ(::unlink(blob.c_str()), 0);
  ASSERT_EQ(::mkfifo(blob.c_str(), 0666), 0);
  expectRepaired();
}

TEST_F(BrokenEntry, MissingManifest) {
  ASSERT_EQ(::unlink(manifest.c_str()), 0);
  expectRepaired();
}

TEST_F(BrokenEntry, EmptyManifest) {
  ASSERT_FALSE(writeFile(manifest, ""));
  expectRepaired();
}

TEST_F(BrokenEntry, NameThatLeavesTheFolder) {
  // The file exists and has the hash: only the name is wrong.
  ASSERT_FALSE(writeFile(entry + "/../compile.log", ""));
  replaceInManifest("\"compile.log\"", "\"../compile.log\"");
  expectRepaired();
  EXPECT_TRUE(exists(entry + "/../compile.log"));
}

TEST_F(BrokenEntry, ManifestOfAnotherKey) {
  replaceInManifest(key, sha256Hex("another"));
  expectRepaired();
}

TEST_F(BrokenEntry, EntryIsAFile) {
  removeTree(entry);
  ASSERT_FALSE(writeFile(entry, "not a folder"));
  expectRepaired();
}

TEST_F(BrokenEntry, AnyFlippedByteOfTheManifestIsHarmless) {
  const std::string json = content(manifest);
  const Blobs blobs = exampleBlobs(exampleInputs());
  FileDescriptor file(::open(manifest.c_str(), O_WRONLY));
  for (size_t i = 0; i < json.size(); ++i) {
    for (int bit : {0, 5}) {
      const char changed = char(json[i] ^ (1 << bit));
      ASSERT_EQ(::pwrite(file.get(), &changed, 1, off_t(i)), 1);
      const LoadedEntry loaded = store().load(key);
      if (loaded.outcome == LoadOutcome::Found)
        ASSERT_EQ(loaded.blobs, blobs) << "byte " << i;
    }
    ASSERT_EQ(::pwrite(file.get(), &json[i], 1, off_t(i)), 1);
  }
  EXPECT_EQ(store().load(key).outcome, LoadOutcome::Found);
}

TEST_F(BrokenEntry, IsLeftAloneInAReadOnlyCache) {
  ASSERT_EQ(::truncate(blob.c_str(), 10), 0);
  CacheSettings readOnly = settings();
  readOnly.mode = CacheMode::ReadOnly;
  KernelCache cache(readOnly);
  EXPECT_FALSE(get(cache).hit);
  EXPECT_EQ(content(blob).size(), 10u);
  EXPECT_EQ(log.joined(), "");
}
