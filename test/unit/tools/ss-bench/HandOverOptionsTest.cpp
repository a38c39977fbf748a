//===- HandOverOptionsTest.cpp - ss-bench init and ss-bench hand-over -----===//

#include "HandOverMain.h"
#include "HandOverOptions.h"

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(InitOptions, HaveDefaultsAndTakeEveryOption) {
  auto options = parseInitOptions({"--package", "p"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->states, 0);
  EXPECT_TRUE(options->cuda);
  EXPECT_EQ(options->profile, "nemo4b");
  EXPECT_EQ(options->eps, 3e-3f);
  options = parseInitOptions(
      {"--package", "p", "--profile", "uniform:3", "--eps", "0.1", "--states",
       "9", "--chunk", "4", "--solver-states", "0", "--repeats", "2",
       "--copy-mib", "3", "--device", "cuda:1", "--json", "j"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->eps, 0.1f);
  EXPECT_EQ(options->states + options->chunk + options->solverStates, 13);
  EXPECT_EQ(options->repeats + options->copyMib + options->device, 6);
  options = parseInitOptions(
      {"--package", "p", "--device", "cpu", "--threads", "2"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_FALSE(options->cuda);
  EXPECT_EQ(options->threads, 2);
}

TEST(InitOptions, SayWhatIsWrong) {
  EXPECT_EQ(parseInitOptions({}).error(),
            "found no --package; expected the folder of a package: see ss-bench "
            "init --help");
  const std::string count = "a whole number from 1 to 2147483647";
  struct Case {
    std::string name, value, expected;
  };
  for (const Case &wrong : {Case{"--eps", "1", "a number above 0 and below 1"},
                            {"--eps", "0", "a number above 0 and below 1"},
                            {"--eps", "nan", "a number above 0 and below 1"},
                            {"--states", "0", count},
                            {"--device", "1", "cpu, cuda or cuda:N"},
                            {"--repeats", "two", count}})
    EXPECT_EQ(parseInitOptions({wrong.name, wrong.value}).error(),
              "found '" + wrong.name + " " + wrong.value + "'; expected " +
                  wrong.expected);
  EXPECT_EQ(
      parseInitOptions({"--batch", "1"}).error(),
      "found '--batch'; expected an option that ss-bench init --help lists");
  EXPECT_EQ(parseInitOptions({"--json"}).error(),
            "found no value of --json; expected a file");
}

TEST(InitOptions, HaveHelp) {
  auto init = parseInitOptions({"--help"});
  ASSERT_TRUE(init) << init.error();
  EXPECT_NE(init->help.find("\n  --solver-states N\n"), std::string::npos);
  auto handOver = parseHandOverOptions({"--package", "p", "--help"});
  ASSERT_TRUE(handOver) << handOver.error();
  EXPECT_EQ(handOver->help.find("--solver-states"), std::string::npos);
  EXPECT_NE(handOver->help.find("\n  --repeats N\n"), std::string::npos);
}

TEST(HandOverOptions, KnowDevices) {
  auto options = parseHandOverOptions({"--package", "p"});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->cuda);
  options = parseHandOverOptions({"--package", "p", "--device", "cuda:2"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->cuda);
  EXPECT_EQ(options->device, 2);
  for (const char *wrong : {"gpu", "cuda:", "cuda:-1", "cuda:x"})
    EXPECT_FALSE(parseHandOverOptions({"--package", "p", "--device", wrong}))
        << wrong;
}

TEST(HandOverMain, LeavesOtherCommandsAlone) {
  EXPECT_FALSE(runHandOver({}));
  EXPECT_FALSE(runHandOver({"start", "--package", "p"}));
  EXPECT_FALSE(runHandOver({"--package", "init"}));
  EXPECT_TRUE(runHandOver({"init"}));
  EXPECT_NE(*runHandOver({"hand-over", "--package", "p", "--profile", "x"}),
            "");
}

} // namespace
