//===- ReportTest.cpp - Tables and JSON -----------------------------------===//

#include "Report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace ss_run;

namespace {

Measurement sample() {
  Measurement measurement;
  measurement.bitsPerByteDense = 1.25;
  measurement.bitsPerByteCompressed = 1.2495;
  measurement.divergence = 0.00125;
  measurement.bytes = {1000, 640.5, 700, 1200};
  measurement.dense = {2, 10};
  measurement.compressed = {1, 9};
  measurement.ranks["gdn"] = {12.25, 40, 0};
  measurement.ranks["kda"] = {60, 128, 0.5};
  measurement.statistics.compactions = 17;
  measurement.statistics.folds = 3;
  measurement.statistics.consolidations = 4;
  measurement.generated = "h\xff";
  return measurement;
}

RunOptions options() {
  RunOptions options;
  options.model = "examples/tiny-hybrid";
  options.text = "sample.bin";
  options.generate = 2;
  return options;
}

std::vector<ss_tools::PackageLayer> layers() {
  ss_tools::PackageLayer layer;
  layer.name = "layer0", layer.type = "gdn", layer.form = "sink";
  layer.policy = "sink:16", layer.core = "svd";
  layer.storage = "fp8", layer.rounding = "stochastic";
  layer.active = layer.buffer = 16;
  return {layer};
}

TEST(Report, TableShowsEveryFigure) {
  const std::string table = formatTable(sample(), options(), "relative:0.03");
  for (
      const char *line :
      {"examples/tiny-hybrid: 1 request of 1024 tokens, 1 thread, states "
       "on cpu\n",
       "relative:0.03, consolidation every 4 compactions, dense fallback on\n",
       "bits per byte                      1.2500       1.2495       -0.0005\n",
       "KL(dense || compressed), nats                   0.00125\n",
       "state bytes, live mean               1000          640        64.0 %\n",
       "state bytes, allocated peak          1000         1200       120.0 %\n",
       "seconds in the state kernels        2.000        1.000        50.0 %\n",
       "  kda                                60.0          128        50.0 %\n",
       "17 compactions, 3 folds of dense states, 4 consolidations\n"})
    EXPECT_NE(table.find(line), std::string::npos) << line << "\n" << table;
}

TEST(Report, JsonHasTheSameFigures) {
  auto json = nlohmann::json::parse(
      formatJson(sample(), options(), "relative:0.03", layers(), {}, "0.1.0"));
  EXPECT_EQ(json["bits_per_byte"]["dense"], 1.25);
  EXPECT_EQ(json["bits_per_byte"]["compressed"], 1.2495);
  EXPECT_EQ(json["kl_nats"], 0.00125);
  EXPECT_EQ(json["state_bytes"]["dense"], 1000);
  EXPECT_EQ(json["state_bytes"]["live_mean"], 640.5);
  EXPECT_EQ(json["state_bytes"]["live_peak"], 700);
  EXPECT_EQ(json["state_bytes"]["allocated_peak"], 1200);
  EXPECT_EQ(json["state_seconds"]["dense"], 2);
  EXPECT_EQ(json["state_seconds"]["compressed"], 1);
  EXPECT_EQ(json["rank"]["gdn"]["mean"], 12.25);
  EXPECT_EQ(json["rank"]["kda"]["max"], 128);
  EXPECT_EQ(json["compactions"], 17);
  EXPECT_EQ(json["consolidations"], 4);
  EXPECT_EQ(json["policy"], "relative:0.03");
  EXPECT_EQ(json["version"], "0.1.0");
  EXPECT_EQ(json["options"]["active"], 8);
  EXPECT_EQ(json["options"]["core"], "default");
  const auto &states = json["states"];
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0],
            nlohmann::json::parse(R"({"name": "layer0", "type": "gdn",
                "form": "sink", "storage": "fp8", "rounding": "stochastic",
                "policy": "sink:16", "core": "svd", "active": 16,
                "buffer": 16})"));
  EXPECT_EQ(json["generated_bytes"], (std::vector<int>{'h', 255}));
}

TEST(Report, SaysWhereRowsRanOut) {
  Measurement measurement = sample();
  const std::string line = "3 states have dropped components that the policy "
                           "would have kept, for lack of rows\n";
  EXPECT_EQ(formatTable(measurement, options(), "p").find("lack of rows"),
            std::string::npos);
  measurement.tightenedStates = 3;
  EXPECT_NE(formatTable(measurement, options(), "p").find(line),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(formatJson(measurement, options(), "p", {}, {},
                                             "v"))["tightened_states"],
            3);
}

TEST(Report, JsonSurvivesPathsThatAreNotText) {
  RunOptions odd = options();
  odd.text = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(formatJson(sample(), odd, "p", {}, {}, "v")));
}

TEST(Report, TimingShowsPhases) {
  const std::string timing = formatTiming(sample(), {1, 2, 3, 4});
  EXPECT_NE(timing.find("import and compile                  2.000\n"),
            std::string::npos)
      << timing;
  EXPECT_EQ(timing.find("cached"), std::string::npos) << timing;
}

TEST(Report, ShowsTheStartOfAnEngineOnAGpu) {
  PhaseTimes phases;
  phases.start = {2.5, 0.25, 0.125, 9, SS_OK, ""};
  const std::string timing = formatTiming(sample(), phases);
  for (const char *line : {"  start, nothing cached             2.500\n",
                           "  start, kernels cached             0.250\n",
                           "  the same, beside another          0.125\n",
                           "  kernels compiled                      9\n"})
    EXPECT_NE(timing.find(line), std::string::npos) << line << "\n" << timing;
  const auto json =
      nlohmann::json::parse(formatJson(sample(), options(), "p", {}, phases, "v"));
  EXPECT_EQ(json["start_seconds"]["cold"], 2.5);
  EXPECT_EQ(json["start_seconds"]["cached"], 0.25);
  EXPECT_EQ(json["start_seconds"]["beside"], 0.125);
  EXPECT_EQ(json["start_seconds"]["kernels"], 9);
}

TEST(Report, NamesTheDeviceAndWhatItDoes) {
  RunOptions gpu = options();
  gpu.device = Device::Cuda;
  gpu.deviceOrdinal = 1;
  gpu.denseFallback = false;
  gpu.consolidateEvery = 0;
  gpu.rowCapacity = 64;
  const std::string table = formatTable(sample(), gpu, "p");
  EXPECT_NE(table.find("1 thread, states on cuda:1\np, no consolidation, dense "
                       "fallback off, 64 rows a state\n"),
            std::string::npos)
      << table;
  const auto json =
      nlohmann::json::parse(formatJson(sample(), gpu, "p", {}, {}, "v"));
  EXPECT_EQ(json["options"]["device"], "cuda:1");
  EXPECT_EQ(json["options"]["dense_fallback"], false);
  EXPECT_EQ(json["options"]["consolidate"], 0);
  EXPECT_EQ(json["options"]["row_capacity"], 64);
  EXPECT_FALSE(json.contains("start_seconds"));
}

} // namespace
