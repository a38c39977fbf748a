//===- KernelKeyTest.cpp - Every input counts, and where it ends ----------===//

#include "cache/KernelKey.h"

#include "CacheFixture.h"

#include <functional>
#include <set>

using namespace cache_test;

TEST(KernelKey, IsStable) {
  // A change of this value makes every cache cold: raise kCacheFormatVersion
  // instead if the entries change, or be sure that it is meant.
  EXPECT_TRUE(isKey(kernelKey(exampleInputs())));
  EXPECT_EQ(kernelKey(exampleInputs()), kernelKey(exampleInputs()));
}

TEST(KernelKey, EveryFieldCounts) {
  // Does not compile once a field is added: it needs its line below.
  KernelKeyInputs original = exampleInputs();
  auto &[kernelName, source, headers, flags, buildId, nvrtcVersion,
         architecture, abiVersion] = original;
  const std::string key = kernelKey(original);
  std::set<std::string> keys = {key};
  auto changed = [&](auto &field, auto value) {
    std::swap(field, value);
    EXPECT_TRUE(keys.insert(kernelKey(original)).second) << keys.size();
    std::swap(field, value);
    EXPECT_EQ(kernelKey(original), key);
  };
  changed(kernelName, std::string("gdn_decode2"));
  changed(source, std::string("// another"));
  changed(headers, std::vector<SourceText>());
  changed(headers, std::vector<SourceText>{{"ss_tile.cuh", "#pragma twice\n"}});
  changed(headers, std::vector<SourceText>{{"ss_Tile.cuh", "#pragma once\n"}});
  changed(flags, std::vector<std::string>{"--std=c++17"});
  changed(flags,
          std::vector<std::string>{"--use_fast_math=false", "--std=c++17"});
  changed(buildId, std::string("build-id:0124"));
  changed(nvrtcVersion, std::string("12.8"));
  changed(architecture, std::string("sm_90"));
  changed(architecture, std::string("sm_90a "));
  changed(abiVersion, int32_t(2));
  changed(abiVersion, int32_t(-1));
}

TEST(KernelKey, BoundariesCannotBeConfused) {
  std::set<std::string> keys;
  auto add = [&](const std::function<void(KernelKeyInputs &)> &set) {
    KernelKeyInputs inputs;
    set(inputs);
    EXPECT_TRUE(keys.insert(kernelKey(inputs)).second) << keys.size();
  };
  add([](auto &) {});
  add([](auto &i) { i.kernelName = "ab"; });
  add([](auto &i) { i.kernelName = "a", i.source = "b"; });
  add([](auto &i) { i.source = "ab"; });
  add([](auto &i) { i.flags = {"ab"}; });
  add([](auto &i) { i.flags = {"a", "b"}; });
  add([](auto &i) { i.flags = {"ab", ""}; });
  add([](auto &i) { i.flags = {"", "ab"}; });
  add([](auto &i) { i.flags = {""}; });
  add([](auto &i) { i.headers = {{"ab", ""}}; });
  add([](auto &i) { i.headers = {{"", "ab"}}; });
  add([](auto &i) { i.headers = {{"a", "b"}}; });
  add([](auto &i) { i.headers = {{"a", ""}, {"b", ""}}; });
  add([](auto &i) { i.buildId = "ab"; });
  add([](auto &i) { i.nvrtcVersion = "ab"; });
  add([](auto &i) { i.architecture = "ab"; });
  add([](auto &i) { i.nvrtcVersion = "a", i.architecture = "b"; });
  // A text that looks like a length and what follows it.
  add([](auto &i) { i.kernelName = std::string("a\1\0\0\0\0\0\0\0b", 10); });
}

TEST(KernelKey, IsKey) {
  const std::string key(64, 'a');
  EXPECT_TRUE(isKey(key));
  EXPECT_FALSE(isKey(key.substr(1)));
  EXPECT_FALSE(isKey(key + "a"));
  EXPECT_FALSE(isKey("A" + key.substr(1)));
  EXPECT_FALSE(isKey("/" + key.substr(1)));
}
