//===- EnvironmentTest.cpp - The variables and their table ----------------===//

#include "environment/Environment.h"

#include "ScopedVariable.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace sinkstate;
using namespace sinkstate::environment;

namespace {
std::string contentOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
} // namespace

TEST(Environment, Choice) {
  for (auto [text, mode] :
       {std::pair<const char *, CacheMode>{nullptr, CacheMode::On},
        {"", CacheMode::On},
        {"on", CacheMode::On},
        {"ro", CacheMode::ReadOnly},
        {"off", CacheMode::Off}}) {
    ScopedVariable variable("SS_CACHE", text);
    Result<CacheMode> value = read(cacheMode);
    ASSERT_TRUE(bool(value));
    EXPECT_EQ(*value, mode);
  }
}

TEST(Environment, WrongChoiceNamesVariableFoundAndExpected) {
  for (const char *text : {"maybe", "ON", "on ", "0"}) {
    ScopedVariable variable("SS_CACHE", text);
    Result<CacheMode> value = read(cacheMode);
    ASSERT_FALSE(bool(value)) << text;
    EXPECT_EQ(value.error(), "SS_CACHE is '" + std::string(text) +
                                 "', expected 'on', 'ro', 'off': correct or "
                                 "unset it");
  }
}

TEST(Environment, ByteSize) {
  {
    ScopedVariable variable("SS_CACHE_MAX_SIZE", nullptr);
    EXPECT_EQ(*read(cacheMaxSize), uint64_t(1) << 30);
  }
  {
    ScopedVariable variable("SS_CACHE_MAX_SIZE", "3M");
    EXPECT_EQ(*read(cacheMaxSize), uint64_t(3) << 20);
  }
  ScopedVariable variable("SS_CACHE_MAX_SIZE", "3MB");
  Result<uint64_t> value = read(cacheMaxSize);
  ASSERT_FALSE(bool(value));
  EXPECT_EQ(value.error(),
            "SS_CACHE_MAX_SIZE is '3MB', expected a number of bytes such as "
            "'1G', '512M' or '1048576': correct or unset it");
}

TEST(Environment, ParseByteSize) {
  EXPECT_EQ(parseByteSize("0"), 0u);
  EXPECT_EQ(parseByteSize("1000"), 1000u);
  EXPECT_EQ(parseByteSize("2K"), 2048u);
  EXPECT_EQ(parseByteSize("2k"), 2048u);
  EXPECT_EQ(parseByteSize("4g"), uint64_t(4) << 30);
  EXPECT_EQ(parseByteSize("18446744073709551615"), ~uint64_t(0));
  EXPECT_EQ(parseByteSize("17179869183G"), uint64_t(17179869183) << 30);
  for (const char *wrong :
       {"", "K", "-1", "+1", " 1", "1 ", "1.5G", "1T", "1KK", "0x10",
        "18446744073709551616", "17179869184G", "99999999999999999999999"})
    EXPECT_EQ(parseByteSize(wrong), std::nullopt) << wrong;
}

TEST(Environment, FormatByteSizeIsReadBackExactly) {
  for (uint64_t bytes : {uint64_t(0), uint64_t(1), uint64_t(1023),
                         uint64_t(1024), uint64_t(1536), uint64_t(1) << 20,
                         uint64_t(1) << 30, uint64_t(5) << 40, ~uint64_t(0)})
    EXPECT_EQ(parseByteSize(formatByteSize(bytes)), bytes);
  EXPECT_EQ(formatByteSize(uint64_t(1) << 30), "1G");
  EXPECT_EQ(formatByteSize(1536), "1536");
}

TEST(Environment, UserCacheHome) {
  ScopedVariable home("HOME", "/home/somebody");
  {
    ScopedVariable cacheHome("XDG_CACHE_HOME", "/caches");
    EXPECT_EQ(userCacheHome(), "/caches");
  }
  {
    ScopedVariable cacheHome("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(userCacheHome(), "/home/somebody/.cache");
  }
  ScopedVariable cacheHome("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(userCacheHome(), "/home/somebody/.cache");
  ScopedVariable noHome("HOME", nullptr);
  EXPECT_EQ(userCacheHome(), "");
}

TEST(Environment, TableIsComplete) {
  std::set<std::string> names;
  for (const Row &row : allRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.type.empty()) << row.name;
    EXPECT_FALSE(row.defaultText.empty()) << row.name;
    EXPECT_TRUE(row.description.ends_with('.')) << row.name;
  }
  // The declarations of the header, each of which has to have its row.
  const std::string header =
      contentOf(SS_SOURCE_DIR "/runtime/src/environment/Environment.h");
  size_t declared = 0;
  for (size_t at = 0;
       (at = header.find("\nextern const ", at)) != std::string::npos; ++at)
    ++declared;
  EXPECT_EQ(declared, names.size());
}

TEST(Environment, DocumentIsTheTable) {
  EXPECT_EQ(contentOf(SS_SOURCE_DIR "/docs/environment.md"), tableAsMarkdown())
      << "run: ss-cache env > docs/environment.md";
}

TEST(Environment, NothingElseReadsTheEnvironment) {
  for (const char *folder :
       {"runtime", "codegen", "passes", "dialect", "tools"})
    for (const auto &entry : std::filesystem::recursive_directory_iterator(
             std::string(SS_SOURCE_DIR "/") + folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h")
        continue;
      // StartUp.cpp sets variables for a while and puts back what was there.
      if (entry.path().filename() == "Environment.cpp" ||
          entry.path().filename() == "StartUp.cpp")
        continue;
      EXPECT_EQ(contentOf(entry.path()).find("getenv("), std::string::npos)
          << entry.path() << ": declare the variable in Environment.h";
    }
}
