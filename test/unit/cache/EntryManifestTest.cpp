//===- EntryManifestTest.cpp - manifest.json of a cache entry -------------===//

#include "cache/EntryManifest.h"

#include "CacheFixture.h"

using namespace cache_test;

namespace {
EntryManifest exampleManifest() {
  const KernelKeyInputs inputs = exampleInputs();
  return describeEntry(kernelKey(inputs), inputs, exampleBlobs(inputs), 1234);
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
} // namespace

TEST(EntryManifest, RoundTrip) {
  const EntryManifest manifest = exampleManifest();
  Result<EntryManifest> read = parseEntryManifest(toJson(manifest));
  ASSERT_TRUE(bool(read)) << read.error();
  EXPECT_EQ(toJson(*read), toJson(manifest));
  EXPECT_EQ(read->created, 1234);
  EXPECT_EQ(read->inputs.architecture, "sm_90a");
  EXPECT_EQ(read->inputs.headers.at(0).name, "ss_tile.cuh");
  EXPECT_EQ(read->blobs.at(1).size, 5000u);
}

TEST(EntryManifest, HoldsNoSource) {
  EXPECT_EQ(toJson(exampleManifest()).find("__global__"), std::string::npos);
}

TEST(EntryManifest, NamesThatAreNotUtf8DoNoHarm) {
  KernelKeyInputs inputs = exampleInputs("k\xff");
  EXPECT_TRUE(bool(parseEntryManifest(
      toJson(describeEntry(kernelKey(inputs), inputs, {}, 0)))));
}

TEST(EntryManifest, BlobNames) {
  for (const char *good :
       {"gdn_decode.cubin", "compile.log", "a", "a b", "a..b"})
    EXPECT_TRUE(isBlobName(good)) << good;
  for (const std::string &bad :
       {std::string(), std::string("."), std::string(".."), std::string("../a"),
        std::string("a/b"), std::string("/a"), std::string("a\\b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string(".hidden"),
        std::string("manifest.json"), std::string("used"), std::string("\xff"),
        std::string(201, 'a')})
    EXPECT_FALSE(isBlobName(bad)) << bad;
}

TEST(EntryManifest, WrongContentsAreErrors) {
  const std::string json = toJson(exampleManifest());
  for (const auto &[from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"\"sinkstate-kernel\"", "\"another\""},
           {"\"version\": 1", "\"version\": 2"},
           {"\"version\": 1", "\"version\": \"1\""},
           {"\"size\": 5000", "\"size\": -1"},
           {"\"size\": 5000", "\"size\": 5000.5"},
           {"\"size\": 5000", "\"size\": null"},
           {"compile.log", "../compile.log"},
           {"compile.log", "manifest.json"},
           {"compile.log", "gdn_decode.cubin"},
           {"\"created\": 1234", "\"created\": true"},
           {"\"blobs\": [", "\"blobs\": [1, "},
           {"\"flags\": [", "\"flags\": [1, "},
           {"\"blobs\"", "\"blob\""},
           {"\"sha256\": \"", "\"sha256\": \"/"}})
    EXPECT_FALSE(bool(parseEntryManifest(replaced(json, from, to))))
        << from << " -> " << to;
  for (const std::string &text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("1"),
        json.substr(0, json.size() / 2), std::string(100000, '[')})
    EXPECT_FALSE(bool(parseEntryManifest(text)));
}
