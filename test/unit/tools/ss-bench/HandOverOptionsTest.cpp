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
  EXPECT_EQ(parseInitOptions({}).error().rfind("expected: ss-bench init", 0),
            0u);
  for (const std::vector<std::string> &wrong :
       std::vector<std::vector<std::string>>{{"--eps", "1"},
                                             {"--eps", "0"},
                                             {"--states", "0"},
                                             {"--device", "1"},
                                             {"--batch", "1"},
                                             {"--repeats", "two"}}) {
    auto options = parseInitOptions(wrong);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().rfind("found '" + wrong[0] + " " + wrong[1] +
                                        "'; expected: ss-bench init",
                                    0),
              0u)
        << options.error();
  }
  EXPECT_EQ(parseInitOptions({"--json"}).error().rfind(
                "option --json has no value; ", 0),
            0u);
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
