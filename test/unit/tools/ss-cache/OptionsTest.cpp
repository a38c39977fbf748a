//===- OptionsTest.cpp - The command line of ss-cache ---------------------===//

#include "Options.h"

#include <gtest/gtest.h>

#include <vector>

using namespace ss_cache;
using sinkstate::Result;

namespace {
Result<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "ss-cache");
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  return parseOptions(int(pointers.size()), pointers.data());
}
} // namespace

TEST(CacheToolOptions, Commands) {
  EXPECT_EQ(parse({"ls"})->command, Command::List);
  EXPECT_EQ(parse({"verify"})->command, Command::Verify);
  EXPECT_EQ(parse({"prune"})->command, Command::Prune);
  EXPECT_EQ(parse({"env"})->command, Command::Environment);
  EXPECT_EQ(parse({"show", "3fa9"})->command, Command::Show);
  EXPECT_EQ(parse({"show", "3fa9"})->keyPrefix, "3fa9");
  EXPECT_EQ(parse({"--help"})->command, Command::Help);
  EXPECT_EQ(parse({"ls", "-h"})->command, Command::Help);
  EXPECT_EQ(parse({"--version"})->command, Command::Version);
}

TEST(CacheToolOptions, Values) {
  EXPECT_EQ(parse({"--cache-dir", "/x", "ls"})->cacheFolder, "/x");
  EXPECT_EQ(parse({"ls", "--cache-dir=/x=y"})->cacheFolder, "/x=y");
  EXPECT_EQ(parse({"prune", "--max-size", "2K"})->maxBytes, 2048u);
  EXPECT_EQ(parse({"prune", "--older-than=3"})->olderThan,
            std::chrono::hours(72));
  EXPECT_EQ(parse({"prune"})->maxBytes, std::nullopt);
  EXPECT_TRUE(parse({"verify", "--remove"})->removeBroken);
}

TEST(CacheToolOptions, Errors) {
  for (const auto &[words, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{},
            "no command, expected ls, show, verify, prune or env: see "
            "ss-cache --help"},
           {{"list"},
            "'list' is no command, expected ls, show, verify, prune "
            "or env: see ss-cache --help"},
           {{"ls", "x"},
            "'x' after ls is one word too many: see ss-cache "
            "--help"},
           {{"show"},
            "show has no key, expected the beginning of one: see "
            "ss-cache ls"},
           {{"show", ""},
            "show has no key, expected the beginning of one: see "
            "ss-cache ls"},
           {{"show", "a", "b"},
            "'b' after show is one word too many: see "
            "ss-cache --help"},
           {{"--frobnicate"},
            "unknown option '--frobnicate': see ss-cache "
            "--help"},
           {{"ls", "--remove"},
            "unknown option '--remove' after ls: see "
            "ss-cache --help"},
           {{"verify", "--remove=yes"},
            "--remove takes no value: see ss-cache "
            "--help"},
           {{"prune", "--max-size"},
            "--max-size has no value: see ss-cache "
            "--help"},
           {{"prune", "--max-size", "big"},
            "--max-size is 'big', expected a "
            "number of bytes such as 512M or "
            "2G"},
           {{"prune", "--older-than", "-1"},
            "--older-than is '-1', expected a "
            "whole number of days"},
           {{"prune", "--older-than", "9999999"},
            "--older-than is '9999999', "
            "expected a whole number of "
            "days"},
           {{"--cache-dir=", "ls"},
            "--cache-dir is empty, expected a folder"},
           {{"--cache-dir", "a", "ls", "--cache-dir", "b"},
            "--cache-dir is given twice, expected it once: see ss-cache "
            "--help"},
           {{"prune", "--max-size", "1", "--max-size", "1"},
            "--max-size is given twice, expected it once: see ss-cache --help"},
           {{"prune", "--older-than", "1", "--older-than", "2"},
            "--older-than is given twice, expected it once: see ss-cache "
            "--help"}}) {
    Result<Options> options = parse(words);
    ASSERT_FALSE(bool(options)) << message;
    EXPECT_EQ(options.error(), message);
  }
}
