//===- BenchOptionsTest.cpp - The command line of ss-bench ----------------===//

#include "BenchOptions.h"

#include <gtest/gtest.h>

using namespace ss_bench;

namespace {

TEST(BenchOptions, SayHowRowsLieAndWhatIsServed) {
  auto options = parseOptions({"--package", "p"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->rows, RowMemory::Pools);
  EXPECT_EQ(options->serve, 0);
  options = parseOptions({"--package", "p", "--rows", "fixed", "--serve", "64",
                          "--consolidation", "off,async"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->rows, RowMemory::Fixed);
  EXPECT_EQ(options->serve, 64);
  EXPECT_EQ(options->consolidation,
            (std::vector{Consolidation::Off, Consolidation::Asynchronous}));
  for (const std::vector<std::string> &wrong :
       {std::vector<std::string>{"--rows", "many"},
        {"--consolidation", "sync"},
        {"--consolidation", "async"},
        {"--serve", "8", "--device", "cpu"},
        {"--rows", "fixed", "--device", "cpu"}}) {
    std::vector<std::string> line = {"--package", "p"};
    line.insert(line.end(), wrong.begin(), wrong.end());
    const auto parsed = parseOptions(line);
    ASSERT_FALSE(parsed) << wrong[0] << ' ' << wrong[1];
    EXPECT_NE(parsed.error().find(wrong[0]), std::string::npos);
  }
}

using Arguments = std::vector<std::string>;

TEST(BenchOptions, HaveDefaults) {
  auto options = parseOptions({"--package", "p"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->package, "p");
  EXPECT_EQ(options->batches, (std::vector<int32_t>{1, 8, 32, 128, 512}));
  EXPECT_EQ(options->data, std::vector<DataKind>{DataKind::Synthetic});
  EXPECT_EQ(options->staggered, (std::vector<bool>{true, false}));
  EXPECT_EQ(options->steps, 1000);
  EXPECT_FALSE(options->startOnly);
}

TEST(BenchOptions, TakeEveryOption) {
  auto options = parseOptions(
      {"decode", "--package", "p", "--dense-package", "d", "--batch", "2,64",
       "--profile", "uniform:3", "--data", "random,synthetic", "--stagger",
       "off", "--steps", "16", "--order", "ascending", "--baselines", "b",
       "--json", "j", "--svg", "s", "--start", "on", "--copy-mib", "4",
       "--deferred-package", "w", "--threads", "3", "--device", "cuda:1"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->densePackage, "d");
  EXPECT_EQ(options->batches, (std::vector<int32_t>{2, 64}));
  EXPECT_EQ(options->profile, "uniform:3");
  EXPECT_EQ(options->data,
            (std::vector<DataKind>{DataKind::Random, DataKind::Synthetic}));
  EXPECT_EQ(options->staggered, std::vector<bool>{false});
  EXPECT_EQ(options->steps, 16);
  EXPECT_EQ(options->order, RankOrder::Ascending);
  EXPECT_EQ(options->baselines + options->json + options->svg, "bjs");
  EXPECT_TRUE(options->start);
  EXPECT_EQ(options->copyMib, 4);
  EXPECT_EQ(options->device, DeviceKind::Cuda);
  EXPECT_EQ(options->ordinal, 1);
  EXPECT_EQ(options->deferredPackage, "w");
  EXPECT_EQ(options->threads, 3);
}

TEST(BenchOptions, TakeWhatIsCompiledHere) {
  auto options = parseOptions({"--preset", "Kimi-K3", "--storage", "f16",
                               "--policy", "fixed:16", "--active", "4",
                               "--buffer", "16", "--core", "svd", "--dense",
                               "off", "--device", "cpu"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->source(), "Kimi-K3");
  EXPECT_EQ(options->storage + options->policy + options->core,
            "f16fixed:16svd");
  EXPECT_EQ(options->active, 4);
  EXPECT_EQ(options->buffer, 16);
  EXPECT_FALSE(options->dense);
  EXPECT_EQ(options->device, DeviceKind::Cpu);
  EXPECT_FALSE(options->processorTime);
  auto busy = parseOptions({"--preset", "p", "--device", "cpu", "--threads", "1",
                            "--clock", "processor"});
  ASSERT_TRUE(busy) << busy.error();
  EXPECT_TRUE(busy->processorTime);
  auto graph = parseOptions({"--graph", "g", "--storage", "bf16"});
  ASSERT_TRUE(graph) << graph.error();
  EXPECT_EQ(graph->source(), "g");
}

TEST(BenchOptions, SayWhatBringsItsOwn) {
  const std::string package = "a package brings its own, expected it left out";
  const std::string graph =
      "a package or a graph brings its own, expected it left out";
  struct Case {
    Arguments arguments;
    std::string error;
  };
  for (const Case &wrong :
       {Case{{"--package", "p", "--storage", "f16"},
             "--storage was given, but " + package},
        {{"--package", "p", "--buffer", "4"}, "--buffer was given, but " + graph},
        {{"--graph", "g", "--policy", "fixed:2"},
         "--policy was given, but " + graph},
        {{"--graph", "g", "--core", "qr"}, "--core was given, but " + graph},
        {{"--graph", "g", "--active", "4"}, "--active was given, but " + graph},
        {{"--package", "p", "--explain", "on"},
         "--explain was given, but " + package},
        {{"--preset", "p", "--dense-package", "d"},
         "--dense-package was given, but dense forms are compiled here, expected "
         "it left out"},
        {{"--package", "p", "--clock", "processor", "--device", "cpu"},
         "--clock processor was given, expected it with --device cpu --threads "
         "1: threads that wait count too"},
        {{"--preset", "p", "--graph", "g"},
         std::string("found 2 of --package, --preset, --model and --graph, "
                     "expected one; ") +
             kUsage}}) {
    auto options = parseOptions(wrong.arguments);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error(), wrong.error);
  }
}

TEST(BenchOptions, OfAStartAreFew) {
  auto options = parseOptions({"start", "--package", "p", "--device", "cuda:2"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_TRUE(options->startOnly);
  EXPECT_EQ(parseOptions({"start", "--package", "p", "--batch", "1"}).error(),
            std::string("found '--batch 1'; ") + kUsage);
}

TEST(BenchOptions, SayWhatTheyExpect) {
  const std::string usage = kUsage;
  for (const Arguments &wrong :
       {Arguments{"--batch", "0"}, {"--batch", "1,"}, {"--batch", "x"},
        {"--steps", "0"}, {"--steps", "3x"}, {"--stagger", "maybe"},
        {"--data", "zeros"}, {"--device", "-1"}, {"--device", "cuda:x"},
        {"--dense", "maybe"}, {"--clock", "sun"}, {"--threads", "-1"}, {"--unknown", "1"},
        {"--start", ""}}) {
    Arguments all = {"--package", "p"};
    all.insert(all.end(), wrong.begin(), wrong.end());
    auto options = parseOptions(all);
    ASSERT_FALSE(options) << wrong[0] << wrong[1];
    EXPECT_EQ(options.error(),
              "found '" + wrong[0] + " " + wrong[1] + "'; " + usage);
  }
  EXPECT_EQ(parseOptions({}).error(),
            "found 0 of --package, --preset, --model and --graph, expected one; " +
                usage);
  EXPECT_EQ(parseOptions({"encode"}).error(), "found 'encode'; " + usage);
  EXPECT_EQ(parseOptions({"--package"}).error(),
            "option --package has no value; " + usage);
}

} // namespace
