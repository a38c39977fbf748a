//===- BenchOptionsTest.cpp - The command line of ss-bench ----------------===//

#include "BenchOptions.h"

#include <gtest/gtest.h>

#include <sstream>

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
       "--deferred-package", "w", "--dense-f32-package", "v", "--threads", "3", "--device", "cuda:1"});
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
  EXPECT_EQ(options->denseF32Package, "v");
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
         "found 2 of --package, --preset, --model and --graph, expected one: "
         "see ss-bench --help"}}) {
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
            "found '--batch'; expected an option that ss-bench start --help "
            "lists");
}

TEST(BenchOptions, SayWhatTheyExpect) {
  const std::string count = "a whole number from 1 to 2147483647";
  const std::string counts =
      "whole numbers from 1 to 2147483647 with commas between them";
  const std::string device = "cpu, cuda or cuda:N";
  struct Case {
    std::string name, value, expected;
  };
  for (const Case &wrong :
       {Case{"--batch", "0", counts}, {"--batch", "1,", counts},
        {"--batch", "x", counts}, {"--steps", "0", count},
        {"--steps", "3x", count}, {"--steps", "2147483648", count},
        {"--stagger", "maybe", "on or off, or on,off"},
        {"--data", "zeros", "synthetic or random, or synthetic,random"},
        {"--device", "-1", device}, {"--device", "cuda:x", device},
        {"--device", "cuda:", device}, {"--dense", "maybe", "on or off"},
        {"--clock", "sun", "wall or processor"},
        {"--rows", "many", "pools or fixed"},
        {"--consolidation", "off,sync", "off or async, or off,async"},
        {"--order", "random", "drawn, descending or ascending"},
        {"--threads", "-1", "a whole number from 0 to 1024"},
        {"--threads", "1025", "a whole number from 0 to 1024"},
        {"--copy-mib", "65537", "a whole number from 1 to 65536"},
        {"--compaction-streams", "-2", "a whole number from -1 to 2147483647"},
        {"--json", "", "a file"}, {"--start", "", "on or off"}}) {
    const std::string error = "found '" + wrong.name + " " + wrong.value +
                              "'; expected " + wrong.expected;
    EXPECT_EQ(parseOptions({"--package", "p", wrong.name, wrong.value}).error(),
              error);
    EXPECT_EQ(
        parseOptions({"--package", "p", wrong.name + "=" + wrong.value}).error(),
        error);
  }
}

TEST(BenchOptions, SayWhatCommandsThereAre) {
  const std::string see = ": see ss-bench --help";
  EXPECT_EQ(
      parseOptions({}).error(),
      "found 0 of --package, --preset, --model and --graph, expected one" + see);
  EXPECT_EQ(
      parseOptions({"encode"}).error(),
      "found 'encode'; expected decode, start, init, hand-over or an option" +
          see);
  EXPECT_EQ(parseOptions({"--package"}).error(),
            "found no value of --package; expected a folder");
  EXPECT_EQ(parseOptions({"--package", "p", "--unknown", "1"}).error(),
            "found '--unknown'; expected an option that ss-bench --help lists");
  EXPECT_EQ(parseOptions({"--package", "p", "--steps", "1", "--steps=1"}).error(),
            "found --steps twice; expected it once");
}

TEST(BenchOptions, TakeValuesBehindAnEqualsSign) {
  auto options = parseOptions({"--package=a=b", "--batch=3,4"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->package, "a=b");
  EXPECT_EQ(options->batches, (std::vector<int32_t>{3, 4}));
}

/// Of every help: words are broken over lines, unless one is longer.
void expectReadable(const std::string &text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_FALSE(line.ends_with(" ")) << line;
  }
}

TEST(BenchOptions, HaveHelp) {
  // Nothing else has to be right, up to there.
  auto decode = parseOptions({"--batch", "2", "--help", "--nonsense"});
  ASSERT_TRUE(decode) << decode.error();
  expectReadable(decode->help);
  EXPECT_NE(decode->help.find("\n  --batch N,N,...\n"), std::string::npos);
  EXPECT_NE(decode->help.find("\n  --rows pools|fixed\n"), std::string::npos);
  EXPECT_FALSE(parseOptions({"--nonsense", "--help"}));
  auto start = parseOptions({"start", "--help"});
  ASSERT_TRUE(start) << start.error();
  expectReadable(start->help);
  EXPECT_EQ(start->help.find("--batch"), std::string::npos);
  EXPECT_EQ(parseOptions({"--package", "p"})->help, "");
}

} // namespace
