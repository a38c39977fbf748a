//===- ToolTest.cpp - The program, run as a user does ---------------------===//

#include "CacheFixture.h"
#include "Commands.h"
#include "ScopedVariable.h"

#include <fstream>
#include <filesystem>
#include <regex>
#include <sstream>

using namespace cache_test;
using namespace ss_cache;

namespace {
struct Ran {
  int code;
  std::string out, errors;
};

class CacheTool : public CacheTest {
protected:
  ScopedVariable cacheFolder{"SS_CACHE_DIR", folder.path.c_str()};
  ScopedVariable cacheMode{"SS_CACHE", nullptr};
  ScopedVariable maxSize{"SS_CACHE_MAX_SIZE", nullptr};

  std::string content(const std::string &path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  Ran run(const std::string &arguments) {
    TemporaryFolder outputs;
    const std::string out = outputs.path + "/out", err = outputs.path + "/err";
    const int status =
        std::system((std::string("'" SS_CACHE_TOOL "' ") + arguments + " >'" +
                     out + "' 2>'" + err + "'")
                        .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(out),
            content(err)};
  }
  void breakEntry(const std::string &key) {
    ASSERT_EQ(
        ::truncate((store().entryFolder(key) + "/gdn_decode.cubin").c_str(), 7),
        0);
  }
};
} // namespace

TEST_F(CacheTool, ListIsEmptyAtFirst) {
  const Ran ran = run("ls");
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(ran.out, "0 entries, 0 B in " + store().root() + "\n");
  EXPECT_EQ(ran.errors, "");
  EXPECT_FALSE(exists(store().root())) << "looking does not write";
}

TEST_F(CacheTool, ListShowsTheMostRecentFirst) {
  const std::string old = fill(exampleInputs("old_kernel"));
  const std::string recent = fill(exampleInputs("recent_kernel"));
  setTime(store().entryFolder(old) + "/used", std::time(nullptr) - 5 * 86400);
  const Ran ran = run("ls");
  EXPECT_EQ(ran.code, kDone);
  EXPECT_TRUE(std::regex_match(
      ran.out, std::regex("KEY +KERNEL +ARCH +SIZE +USED +CREATED\n" +
                          recent.substr(0, 12) +
                          " +recent_kernel +sm_90a +5\\.\\d KiB +now +20.*Z\n" +
                          old.substr(0, 12) +
                          " +old_kernel +sm_90a +5\\.\\d KiB +5 d +20.*Z\n"
                          "2 entries, 1\\d\\.\\d KiB in .*/v1\n")))
      << ran.out;
}

TEST_F(CacheTool, ShowTellsWhatWentIn) {
  const std::string key = fill();
  fill(exampleInputs("other"));
  const Ran ran = run("show " + key.substr(0, 10));
  EXPECT_EQ(ran.code, kDone) << ran.errors;
  for (const std::string &part :
       {key, std::string("sm_90a"), std::string("build-id:0123"),
        std::string("--std=c++17 --use_fast_math=false"),
        std::string("gdn_decode.cu "), std::string("ss_tile.cuh"),
        std::string("gdn_decode.cubin"), std::string("compile.log")})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
}

TEST_F(CacheTool, ShowNeedsOneEntry) {
  fill();
  fill(exampleInputs("other"));
  Ran ran = run("show zz");
  EXPECT_EQ(ran.code, kFound);
  EXPECT_EQ(ran.errors, "ss-cache: 0 entries with a key that begins with 'zz', "
                        "expected one: see ss-cache ls\n");
  // Every prefix that both have, here the empty one spelled as none at all.
  ran = run("show ''");
  EXPECT_EQ(ran.code, kWrongUse);
}

TEST_F(CacheTool, VerifyFindsAndRemovesWhatIsBroken) {
  const std::string key = fill();
  fill(exampleInputs("other"));
  Ran ran = run("verify");
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(ran.out, "2 entries whole, 0 broken\n");
  breakEntry(key);
  ran = run("verify");
  EXPECT_EQ(ran.code, kFound);
  EXPECT_TRUE(ran.out.starts_with(key.substr(0, 12) + ": broken: ")) << ran.out;
  EXPECT_NE(ran.out.find("has 7 bytes, expected 5000"), std::string::npos);
  EXPECT_TRUE(ran.out.ends_with("1 entry whole, 1 broken\n")) << ran.out;
  ran = run("verify --remove");
  EXPECT_EQ(ran.code, kFound);
  EXPECT_NE(ran.out.find("(removed)"), std::string::npos) << ran.out;
  EXPECT_EQ(run("verify").code, kDone);
}

TEST_F(CacheTool, PruneBySize) {
  const std::string a = fill(exampleInputs("a")), b = fill(exampleInputs("b"));
  setTime(store().entryFolder(a) + "/used", 1000);
  EXPECT_TRUE(run("prune").out.starts_with("removed 0 entries (0 B), kept 2"));
  const Ran ran = run("prune --max-size 8K");
  EXPECT_EQ(ran.code, kDone);
  EXPECT_TRUE(ran.out.starts_with("removed 1 entry (")) << ran.out;
  ASSERT_EQ(store().list().size(), 1u);
  EXPECT_EQ(store().list()[0].key, b);
  ScopedVariable small("SS_CACHE_MAX_SIZE", "1K");
  EXPECT_TRUE(run("prune").out.starts_with("removed 1 entry ("));
}

TEST_F(CacheTool, PruneByAgeKeepsTheRest) {
  const std::string a = fill(exampleInputs("a"));
  fill(exampleInputs("b"));
  setTime(store().entryFolder(a) + "/used", 1000);
  ScopedVariable small("SS_CACHE_MAX_SIZE", "1K");
  EXPECT_TRUE(run("prune --older-than 30").out.starts_with("removed 1 entry ("))
      << "the variable's limit is for prune without options";
  EXPECT_EQ(store().list().size(), 1u);
}

TEST_F(CacheTool, OtherFolder) {
  fill();
  TemporaryFolder other;
  EXPECT_EQ(run("--cache-dir '" + other.path + "' ls").out,
            "0 entries, 0 B in " + other.path + "/v1\n");
}

TEST_F(CacheTool, EnvironmentIsTheDocument) {
  const Ran ran = run("env");
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(ran.out, content(SS_SOURCE_DIR "/docs/environment.md"))
      << "run: ss-cache env > docs/environment.md";
}

TEST_F(CacheTool, ErrorsAreOneLine) {
  Ran ran = run("frobnicate");
  EXPECT_EQ(ran.code, kWrongUse);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.errors.begin(), ran.errors.end(), '\n'), 1);
  ScopedVariable wrong("SS_CACHE", "sometimes");
  ran = run("ls");
  EXPECT_EQ(ran.code, kWrongUse);
  EXPECT_EQ(ran.errors, "ss-cache: SS_CACHE is 'sometimes', expected 'on', "
                        "'ro', 'off': correct or unset it\n");
  EXPECT_EQ(run("env").code, kDone) << "the table helps to correct it";
}

TEST_F(CacheTool, NoFolderAtAll) {
  ScopedVariable home("HOME", nullptr), cacheHome("XDG_CACHE_HOME", nullptr),
      noFolder("SS_CACHE_DIR", nullptr);
  const Ran ran = run("ls");
  EXPECT_EQ(ran.code, kWrongUse);
  EXPECT_NE(ran.errors.find("--cache-dir"), std::string::npos);
}

TEST_F(CacheTool, OutputThatCannotBeWritten) {
  const int status = std::system("'" SS_CACHE_TOOL "' --help >/dev/full 2>&1");
  EXPECT_EQ(WEXITSTATUS(status), kWrongUse);
}

TEST_F(CacheTool, AFolderThatIsNamedHasToBeACaches) {
  const std::string other = folder.path + "/other";
  std::filesystem::create_directories(other);
  EXPECT_EQ(run("--cache-dir '" + other + "' ls").code, kDone); // it is empty
  std::filesystem::create_directories(other + "/vendor");
  for (const std::string &wrong : {other, std::string("/proc")})
    for (const std::string command :
         {"ls", "prune", "prune --max-size 0", "verify", "verify --remove", "show 12"}) {
      const Ran ran = run("--cache-dir '" + wrong + "' " + command);
      EXPECT_EQ(ran.code, kWrongUse) << command;
      EXPECT_EQ(ran.out, "") << command;
      EXPECT_EQ(ran.errors, "ss-cache: --cache-dir '" + wrong +
                                "' has other files and no 'v1', expected the folder "
                                "of a kernel cache\n")
          << command;
    }
  std::filesystem::create_directories(other + "/v7"); // of another format
  EXPECT_EQ(run("--cache-dir '" + other + "' ls").code, kDone);
}

TEST_F(CacheTool, AFolderThatIsNamedHasToBeThere) {
  const std::string missing = folder.path + "/misspelt";
  for (const std::string command :
       {"ls", "prune", "verify", "verify --remove", "show 12"}) {
    const Ran ran = run("--cache-dir '" + missing + "' " + command);
    EXPECT_EQ(ran.code, kWrongUse) << command;
    EXPECT_EQ(ran.out, "") << command;
    EXPECT_EQ(ran.errors, "ss-cache: --cache-dir '" + missing +
                              "' is not there, expected the folder of a kernel "
                              "cache\n")
        << command;
    EXPECT_FALSE(exists(missing)) << command;
  }
  // That of the environment comes with the first kernel.
  ScopedVariable variable("SS_CACHE_DIR", missing.c_str());
  EXPECT_EQ(run("ls").code, kDone);
  EXPECT_EQ(run("prune").code, kDone);
}
