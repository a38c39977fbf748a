//===- StartUpTest.cpp - A kernel cache of one's own ----------------------===//

#include "StartUp.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

using namespace ss_start_up;
namespace fs = std::filesystem;

namespace {

TEST(PrivateCache, IsEmptyAndLeavesNothingBehind) {
  ::setenv("SS_CACHE_DIR", "/elsewhere", 1);
  ::unsetenv("SS_CACHE");
  std::string folder;
  {
    const PrivateCache cache;
    folder = std::getenv("SS_CACHE_DIR");
    EXPECT_STREQ(std::getenv("SS_CACHE"), "on");
    EXPECT_TRUE(fs::is_empty(folder));
    EXPECT_EQ(cache.kernels(), 0);
    fs::create_directories(folder + "/v1/ab");
    std::ofstream(folder + "/v1/ab/kernel.cubin") << "code";
    std::ofstream(folder + "/v1/ab/manifest.json") << "{}";
    EXPECT_EQ(cache.kernels(), 1);
  }
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_STREQ(std::getenv("SS_CACHE_DIR"), "/elsewhere");
  EXPECT_EQ(std::getenv("SS_CACHE"), nullptr);
}

TEST(PrivateCache, SaysWhereNoFolderCanBeMade) {
  const char *old = std::getenv("TMPDIR");
  const std::optional<std::string> saved =
      old ? std::optional<std::string>(old) : std::nullopt;
  ::setenv("TMPDIR", "/proc/self/none", 1);
  try {
    const PrivateCache cache;
    ADD_FAILURE() << "a folder was made";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("set TMPDIR"), std::string::npos)
        << error.what();
  }
  if (saved)
    ::setenv("TMPDIR", saved->c_str(), 1);
  else
    ::unsetenv("TMPDIR");
}

} // namespace
