//===- CommandLineTest.cpp - The options as they are typed ----------------===//

#include "CommandLine.h"

#include <gtest/gtest.h>

#include <vector>

using namespace ss_run;

namespace {

Result<CommandLine> read(std::vector<const char *> arguments) {
  return readCommandLine(arguments);
}

std::string errorOf(std::vector<const char *> arguments) {
  auto line = read(std::move(arguments));
  return line ? "accepted" : line.error();
}

TEST(CommandLine, TakesValuesInBothSpellings) {
  auto line = read({"--tokens", "3", "--policy=energy:0.9", "-seed", "7",
                    "--json=a=b.json", "--timing"});
  ASSERT_TRUE(line) << line.error();
  EXPECT_EQ(line->texts.tokens, "3");
  EXPECT_EQ(line->texts.policy, "energy:0.9");
  EXPECT_EQ(line->texts.seed, "7");
  EXPECT_EQ(line->texts.json, "a=b.json");
  EXPECT_TRUE(line->texts.timing);
  EXPECT_EQ(line->texts.model, "");
  EXPECT_FALSE(line->help);
}

TEST(CommandLine, AValueMayLookLikeAnOption) {
  auto line = read({"--text", "--odd", "--seed", "-1"});
  ASSERT_TRUE(line) << line.error();
  EXPECT_EQ(line->texts.text, "--odd");
  EXPECT_EQ(line->texts.seed, "-1") << "checkOptions() says what is wrong";
}

TEST(CommandLine, NamesWhatIsWrong) {
  EXPECT_EQ(errorOf({"--tokes", "3"}),
            "found '--tokes', expected an option that --help lists");
  EXPECT_EQ(errorOf({"file"}),
            "found 'file', expected an option that --help lists");
  EXPECT_EQ(errorOf({"--"}),
            "found '--', expected an option that --help lists");
  EXPECT_EQ(errorOf({""}), "found '', expected an option that --help lists");
  EXPECT_EQ(errorOf({"---tokens=3"}),
            "found '---tokens=3', expected an option that --help lists");
  EXPECT_EQ(errorOf({"--timing=on"}),
            "found '--timing=on', expected an option that --help lists");
  EXPECT_EQ(errorOf({"--device"}),
            "--device: found no value, expected cpu|cuda|cuda:N");
  EXPECT_EQ(errorOf({"--device="}),
            "--device: found an empty value, expected cpu|cuda|cuda:N");
  EXPECT_EQ(errorOf({"--tokens=3", "--tokens=4"}),
            "--tokens: found '3' and '4', expected it once");
}

TEST(CommandLine, HelpListsOptionsAndExitCodes) {
  ASSERT_TRUE(read({"--help"})->help);
  ASSERT_TRUE(read({"--version"})->version);
  const std::string help = helpText();
  for (const char *text :
       {"  --device cpu|cuda|cuda:N\n", "  --dense-package DIR\n", "--timing",
        "  -o FILE\n",
        "  3  the device, or its driver, is not on this machine\n"})
    EXPECT_NE(help.find(text), std::string::npos) << text;
  size_t begin = 0;
  for (size_t end; (end = help.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    EXPECT_LE(end - begin, 80u) << help.substr(begin, end - begin);
}

} // namespace
