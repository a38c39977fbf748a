//===- KernelDumpTest.cpp - Looking at kernels and replacing them ---------===//

#include "cache/KernelDump.h"

#include "CacheFixture.h"

using namespace cache_test;

namespace {
class KernelDumpTest : public CacheTest {
protected:
  std::string dump = folder.path + "/dump";
  std::string replacements = folder.path + "/override";

  CacheSettings dumping() {
    CacheSettings settings = this->settings();
    settings.dumpFolder = dump;
    return settings;
  }
  CacheSettings overriding() {
    CacheSettings settings = this->settings();
    settings.overrideFolder = replacements;
    return settings;
  }
  std::string content(const std::string &path) {
    Result<std::string> bytes = readFile(path, 1 << 20);
    EXPECT_TRUE(bool(bytes)) << bytes.error();
    return bytes ? *bytes : "";
  }
  void expectDumped(const std::string &key) {
    const KernelKeyInputs inputs = exampleInputs();
    const std::string kernel = dump + "/gdn_decode-sm_90a-" + key.substr(0, 12);
    EXPECT_EQ(namesIn(kernel), (std::vector<std::string>{
                                   "compile.log", "flags.txt", "gdn_decode.cu",
                                   "gdn_decode.cubin", "headers"}));
    EXPECT_EQ(content(kernel + "/gdn_decode.cu"), inputs.source);
    EXPECT_EQ(content(kernel + "/headers/ss_tile.cuh"), "#pragma once\n");
    EXPECT_EQ(content(kernel + "/gdn_decode.cubin"),
              exampleBlobs(inputs)["gdn_decode.cubin"]);
    EXPECT_EQ(content(kernel + "/flags.txt"),
              "--std=c++17\n--use_fast_math=false\n");
  }
};
} // namespace

TEST_F(KernelDumpTest, WhatIsCompiledIsDumped) {
  KernelCache cache(dumping());
  expectDumped(get(cache).key);
}

TEST_F(KernelDumpTest, WhatIsLoadedIsDumped) {
  fill();
  KernelCache cache(dumping());
  const CachedKernel kernel = get(cache);
  EXPECT_TRUE(kernel.hit);
  expectDumped(kernel.key);
}

TEST_F(KernelDumpTest, SourceThatDoesNotCompileIsDumped) {
  KernelCache cache(dumping());
  (void)cache.getOrCompile(
      exampleInputs(),
      [](const KernelKeyInputs &) -> Result<Blobs> { return Error{"error"}; });
  EXPECT_EQ(namesIn(dump).size(), 1u);
}

TEST_F(KernelDumpTest, NamesDoNotLeaveTheFolder) {
  KernelKeyInputs inputs = exampleInputs("../../kernel");
  inputs.headers[0].name = "../x/../ss.cuh";
  inputs.architecture = "..";
  const std::string key = kernelKey(inputs);
  ASSERT_FALSE(dumpSources(dump, inputs, key));
  ASSERT_FALSE(dumpBlobs(dump, inputs, key, {{"../escape", ""}}));
  EXPECT_EQ(namesIn(folder.path), std::vector<std::string>{"dump"});
  ASSERT_EQ(namesIn(dump).size(), 1u);
  EXPECT_EQ(namesIn(dump + "/" + namesIn(dump)[0]),
            (std::vector<std::string>{"_.._.._kernel.cu", "_.._escape",
                                      "flags.txt", "headers"}));
}

TEST_F(KernelDumpTest, FailureIsOneLine) {
  ASSERT_FALSE(writeFile(dump, "a file in the way"));
  KernelCache cache(dumping());
  EXPECT_FALSE(get(cache).hit);
  EXPECT_TRUE(get(cache).hit);
  EXPECT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_TRUE(log.lines[0].starts_with("SS_DUMP_DIR: ")) << log.lines[0];
}

TEST_F(KernelDumpTest, OverrideReplacesTheSourceAndTheKey) {
  const std::string original = fill();
  ASSERT_FALSE(makeFolders(replacements));
  ASSERT_FALSE(writeFile(replacements + "/gdn_decode.cu", "// mine\n"));
  KernelCache cache(overriding());
  std::string compiled;
  Result<CachedKernel> kernel = cache.getOrCompile(
      exampleInputs(), [&](const KernelKeyInputs &inputs) -> Result<Blobs> {
        compiled = inputs.source;
        return exampleBlobs(inputs);
      });
  ASSERT_TRUE(bool(kernel));
  EXPECT_FALSE(kernel->hit);
  EXPECT_EQ(compiled, "// mine\n");
  EXPECT_NE(kernel->key, original);
  EXPECT_TRUE(get(cache).hit) << "an overridden kernel is cached like any";
  ASSERT_EQ(log.lines.size(), 2u) << log.joined();
  EXPECT_EQ(log.lines[0], "kernel 'gdn_decode' is overridden by '" +
                              replacements + "/gdn_decode.cu'");
}

TEST_F(KernelDumpTest, OtherKernelsAreNotOverridden) {
  fill();
  ASSERT_FALSE(makeFolders(replacements));
  ASSERT_FALSE(writeFile(replacements + "/kda_decode.cu", "// mine\n"));
  KernelCache cache(overriding());
  EXPECT_TRUE(get(cache).hit);
  EXPECT_EQ(log.joined(), "");
}

TEST_F(KernelDumpTest, OverrideThatCannotBeReadIsReported) {
  ASSERT_FALSE(makeFolders(replacements + "/gdn_decode.cu"));
  KernelCache cache(overriding());
  EXPECT_EQ(get(cache).key, kernelKey(exampleInputs()));
  ASSERT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_NE(log.lines[0].find("is not a regular file"), std::string::npos);
}

TEST_F(KernelDumpTest, MissingOverrideFolderIsReportedOnce) {
  KernelCache cache(overriding());
  get(cache), get(cache);
  ASSERT_EQ(log.lines.size(), 1u) << log.joined();
  EXPECT_TRUE(log.lines[0].starts_with("SS_OVERRIDE_DIR is '"));
}
