//===- BenchReportTest.cpp - Tables and JSON of a measurement -------------===//

#include "BenchReport.h"
#include "TestLayers.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace ss_bench;

namespace {

size_t columns(const std::string &line) {
  return size_t(std::count(line.begin(), line.end(), '|'));
}

TEST(BenchReport, PrintsTimesAndRatios) {
  const BenchResult result = someResult();
  const Baselines baselines = *Baselines::parse(kBaselineLines, "times");
  const std::string head = formatHead(result, baselines);
  EXPECT_NE(head.find("copies move 4000 GB/s"), std::string::npos) << head;
  EXPECT_NE(head.find("3 layers (the first: gdn, 4 heads, 2 of keys, 16 x 32), "
                      "relative:0.01, core svd, active 8, buffer 16, storage "
                      "f32, ranks `uniform:8`, on a GPU; "),
            std::string::npos)
      << head;
  EXPECT_NE(head.find("* fla_gdn 0.3\n"), std::string::npos) << head;
  EXPECT_NE(head.find("* not run: flashinfer_gdn: not installed\n"),
            std::string::npos)
      << head;
  const std::string rows = formatTimes(result, result.batches[1], baselines);
  EXPECT_EQ(rows,
            "| 8 | synthetic | on | 80.00 | 64.00 | 16.00 (20.0 %) | 0.0 / 0.0 "
            "| 128.00 | 2.00 (50 %) | 240 | 1.100 | own dense 4.00x, own "
            "deferred 2.00x, fla_gdn f32 3.00x |\n"
            "| 8 | own dense | on | 320.00 | 64.00 | 256.00 (80.0 %) | 0.0 / "
            "0.0 | 128.00 | 2.00 (50 %) | 240 | 1.100 | - |\n"
            "| 8 | own deferred | on | 160.00 | 64.00 | 96.00 (60.0 %) | 0.0 / "
            "0.0 | 128.00 | 2.00 (50 %) | 240 | 1.100 | - |\n");
  const std::string header = formatTimeHeader();
  EXPECT_EQ(columns(header.substr(header.find("|---"))),
            columns(rows.substr(0, rows.find('\n'))));
}

TEST(BenchReport, SaysWhatIsWrong) {
  const std::string sizes = formatSizes(someResult());
  EXPECT_NE(sizes.find("| 1.0e-06 | 0.0e+00 | - | yes |"),
            std::string::npos)
      << sizes;
  EXPECT_EQ(columns(sizes.substr(1, sizes.find('\n', 1))),
            columns(sizes.substr(sizes.find("|---"))) / 7)
      << sizes;
  EXPECT_NE(sizes.find("| 1.0e+00 | 0.0e+00 | - | **no** |"),
            std::string::npos)
      << sizes;
}

// A policy that has no bound is not called kept to it.
TEST(BenchReport, SaysWhatWasNotJudged) {
  BenchResult result = someResult();
  Measured &ours = result.batches[0].ours[0];
  ours.checkedCompactions = 2;
  EXPECT_NE(formatSizes(result).find("| 0.0e+00 | - | decodes alone |"),
            std::string::npos);
  auto checkOf = [&] {
    return nlohmann::json::parse(formatJson(result, Baselines()))
        .at("measurements")[0]
        .at("check");
  };
  EXPECT_TRUE(checkOf().at("compaction_error_of_allowed").is_null());
  ours.judgedCompactions = 2, ours.compactionError = 0.5;
  EXPECT_NE(formatSizes(result).find("| 0.0e+00 | 0.500 | yes |"),
            std::string::npos);
  EXPECT_EQ(checkOf().at("compaction_error_of_allowed"), 0.5);
  EXPECT_EQ(checkOf().at("compactions_judged"), 2);
}

// Narrow rows have three opponents, and their names say of which storage.
TEST(BenchReport, ComparesNarrowRowsWithThreeDenseForms) {
  BenchResult result = someResult();
  result.storage = "f16";
  result.denseStorage[DenseForm::Dense] = "f16";
  result.denseStorage[DenseForm::Deferred] = "f16";
  result.denseStorage[DenseForm::DenseF32] = "f32";
  BatchResult &batch = result.batches[0];
  Measured dense = *batch.dense[DenseForm::Dense];
  dense.step = 60;
  batch.dense[DenseForm::DenseF32] = dense;
  batch.compareAll();
  const std::string rows = formatTimes(result, batch, Baselines());
  EXPECT_NE(rows.find("| own dense f16 4.00x, own deferred f16 2.00x, own dense "
                      "f32 6.00x |\n"),
            std::string::npos)
      << rows;
  EXPECT_NE(rows.find("| 1 | own dense f32 | on | 60.00 |"), std::string::npos)
      << rows;
  EXPECT_NE(formatSizes(result).find("| 1 | own dense f32 | on |"),
            std::string::npos);
  const auto json = nlohmann::json::parse(formatJson(result, Baselines()));
  EXPECT_EQ(json.at("own_dense_f32")[0].at("step_us"), 60);
  EXPECT_EQ(json.at("measurements")[0].at("own_dense_f32_us"), 60);
}

TEST(BenchReport, HasNotes) {
  BenchResult result = someResult();
  result.notes = {"Mind the gap."};
  EXPECT_NE(formatHead(result, Baselines()).find("\n\nMind the gap.\n"),
            std::string::npos);
}

/// P50 100 us, P99 120 us, and bytes of a thousand.
Served someServed() {
  Served served;
  served.batch = 4, served.steps = 50;
  served.data = "synthetic", served.consolidation = "async";
  served.staggered = true;
  served.stepMedian = 100, served.stepP99 = 120, served.stepLongest = 150;
  served.meanRank = 9, served.meanRankAfter = 8.5;
  served.landed = 7, served.dropped = 2;
  served.denseBytes = 1000, served.liveBytes = 400, served.usedBytes = 500;
  served.allocatedBytes = 700, served.peakBytes = 800;
  return served;
}

TEST(BenchReport, PrintsStepsThatGoOn) {
  BenchResult result = someResult();
  EXPECT_EQ(formatServed(result), "");
  result.served.push_back(someServed());
  const std::string table = formatServed(result);
  const std::string row = table.substr(table.find("| 4 |"));
  EXPECT_EQ(row, "| 4 | synthetic | on | async | 50 | 100 | 120 | 1.200 | 150 | "
                 "9.0, 8.5 | 7, 2 | 0 | 0.400, 0.500, 0.700, 0.800 |\n");
  EXPECT_EQ(columns(table), 3 * columns(row));
  const auto json =
      nlohmann::json::parse(formatJson(result, Baselines())).at("served")[0];
  EXPECT_EQ(json.at("p99_us"), 120);
  EXPECT_EQ(json.at("consolidations_landed"), 7);
  EXPECT_EQ(json.at("allocated_peak"), 800);
}

// The states' own bytes are the floor; what takes none has no line.
TEST(BenchReport, PrintsWhatMemoryIsFor) {
  namespace purpose = sinkstate::runtime::purpose;
  BenchResult result = someResult();
  BatchResult only;
  only.batch = result.batches[0].batch;
  only.ours = {result.batches[0].ours[0]};
  result.batches = {only};
  Measured &ours = result.batches[0].ours[0];
  ours.denseBytes = 4e6;
  ours.memory = {{purpose::kComponents, 1000000},
                 {purpose::kPairRows, 500000},
                 {purpose::kValues, 250000},
                 {purpose::kToCome, 0}};
  const std::string table = formatMemory(result);
  const std::string rows = table.substr(table.find("|---|\n") + 6);
  EXPECT_EQ(rows,
            "| 1 | synthetic | on | components and matrices | 1.0 | 0.2500 | 0.2500 |\n"
            "| 1 | synthetic | on | rows for what the buffers hold | 0.5 | 0.1250 | 0.0000 |\n"
            "| 1 | synthetic | on | buffered values | 0.2 | 0.0625 | 0.0625 |\n"
            "| 1 | synthetic | on | **all** | 1.8 | 0.4375 | 0.3125 |\n");
  const auto json = nlohmann::json::parse(formatJson(result, Baselines()))
                        .at("measurements")[0]
                        .at("memory");
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[1].at("purpose"), "rows for what the buffers hold");
  EXPECT_EQ(json[1].at("bytes"), 500000);
  EXPECT_EQ(json[1].at("of_dense"), 0.125);
  EXPECT_EQ(json[1].at("floor_bytes"), 0);
  EXPECT_EQ(json[2].at("floor_bytes"), 250000);
}

// With too little memory a compaction keeps less than its policy says.
TEST(BenchReport, CallsCompactionsWithoutMemoryWrong) {
  BenchResult result = someResult();
  ASSERT_TRUE(isCorrect(result.batches[0].ours[0]));
  result.batches[0].ours[0].tightened = 1;
  EXPECT_FALSE(isCorrect(result.batches[0].ours[0]));
}

TEST(BenchReport, WritesJson) {
  BenchResult result = someResult();
  result.start = StartResult{3, 2, 0.5, 1.5, 0.25, 0.125};
  const auto json = nlohmann::json::parse(
      formatJson(result, *Baselines::parse(kBaselineLines, "times")));
  EXPECT_EQ(json.at("states")[0].at("policy"), "relative:0.01");
  EXPECT_EQ(json.at("states")[0].at("core"), "svd");
  EXPECT_EQ(json.at("states")[0].at("rounding"), "nearest");
  EXPECT_EQ(json.at("machine").at("name"), "a GPU");
  EXPECT_EQ(json.at("machine").at("cuda"), "13.0");
  EXPECT_TRUE(json.at("machine").at("driver").is_null());
  EXPECT_EQ(json.at("measurements").size(), 2u);
  EXPECT_EQ(json.at("measurements")[0].at("compaction_us"), 2);
  EXPECT_EQ(json.at("measurements")[0].at("check").at("correct"), true);
  EXPECT_EQ(json.at("measurements")[1].at("check").at("correct"), false);
  EXPECT_EQ(json.at("own_dense")[1].at("step_us"), 320);
  EXPECT_EQ(json.at("own_deferred")[1].at("step_us"), 160);
  EXPECT_EQ(json.at("measurements")[0].at("own_deferred_us"), 20);
  EXPECT_EQ(json.at("baselines")[0].at("kernel"), "fla_gdn");
  EXPECT_EQ(json.at("start_seconds").at("cached"), 0.25);
  EXPECT_EQ(json.at("start_seconds").at("beside"), 0.125);
  EXPECT_EQ(json.at("start_seconds").at("compile"), 0.5);
}

} // namespace
