//===- QualityTableTest.cpp - Policies and storages side by side ----------===//

#include "DenseBackend.h"
#include "QualityTable.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

std::vector<ss_tools::PackageLayer> layersOf(const std::string &core) {
  ss_tools::PackageLayer layer;
  layer.name = "layer0", layer.type = "gdn", layer.form = "factored";
  layer.policy = "relative:0.03", layer.core = core;
  layer.storage = "f16", layer.rounding = "stochastic";
  layer.active = layer.buffer = 8;
  return {layer};
}

class CountingProbe : public StateProbe {
public:
  explicit CountingProbe(int64_t bytes) : bytes(bytes) {}
  const std::vector<ProbedLayer> &layers() const override { return none; }
  Result<std::vector<int32_t>> ranks(int, int) override {
    return std::vector<int32_t>();
  }
  Result<ss_statistics> statistics() override {
    ++step;
    ss_statistics now{};
    now.dense_bytes = 1000;
    now.live_bytes = bytes * step;
    now.allocated_peak = 5 * bytes;
    return now;
  }
  Result<int> check() override { return checked; }
  Result<int> checked = 0;

private:
  std::vector<ProbedLayer> none;
  int64_t bytes;
  int step = 0;
};

/// Exact states until a token, and then outputs that are a little off.
class WorseFrom : public StateBackend {
public:
  WorseFrom(StateBackend &inner, const Config &config, int token)
      : inner(inner), config(config), token(token) {}
  Status decodeLayer(int layer, const StateInput &input, float *y) override {
    if (Status status = inner.decodeLayer(layer, input, y))
      return status;
    const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
    for (int i = 0; step >= token && i < sizes.heads * sizes.dv; ++i)
      y[i] *= 1.5f;
    return std::nullopt;
  }
  Status endStep() override {
    ++step;
    return inner.endStep();
  }

private:
  StateBackend &inner;
  const Config &config;
  int token, step = 0;
};

class QualityTableTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(TINY_HYBRID_MODEL);
    ASSERT_TRUE(loaded) << loaded.error();
    model = std::move(*loaded);
    auto opened = TokenSource::open(TINY_HYBRID_MODEL "/golden.safetensors", 1, 16);
    ASSERT_TRUE(opened);
    text.emplace(*opened);
    options.tokens = 16;
  }

  Model model;
  std::optional<TokenSource> text;
  MeasureOptions options;
};

TEST_F(QualityTableTest, ComparesEveryVariantByQuarters) {
  DenseBackend dense(model.config, 1, 1), same(model.config, 1, 1),
      inner(model.config, 1, 1);
  WorseFrom worse(inner, model.config, 8);
  CountingProbe small(10), large(20);
  auto table = measureQuality(model, *text, dense,
                              {{"exact", &same, &small, layersOf("svd"), true},
                               {"worse", &worse, &large}},
                              options);
  ASSERT_TRUE(table) << table.error();
  ASSERT_EQ(table->variants.size(), 2u);
  const VariantQuality &exact = table->variants[0], &other = table->variants[1];
  EXPECT_EQ(exact.name, "exact");
  EXPECT_EQ(exact.layers.at(0).core, "svd");
  EXPECT_TRUE(exact.denseFallback);
  EXPECT_EQ(exact.divergence, 0);
  EXPECT_EQ(exact.bitsPerByte, table->bitsPerByteDense);
  EXPECT_EQ(exact.liveMean, 85);
  EXPECT_EQ(exact.livePeak, 160);
  EXPECT_EQ(exact.allocatedPeak, 50);
  EXPECT_EQ(table->denseBytes, 1000);
  EXPECT_EQ(other.quarters[0], 0);
  EXPECT_EQ(other.quarters[1], 0);
  EXPECT_GT(other.quarters[2], 0);
  EXPECT_GT(other.quarters[3], 0);
  EXPECT_NEAR(other.divergence, (other.quarters[2] + other.quarters[3]) / 4,
              1e-12);
}

// What comes before is decoded, and counts nowhere.
TEST_F(QualityTableTest, BeginsWhereItIsToldTo) {
  DenseBackend dense(model.config, 1, 1), inner(model.config, 1, 1);
  WorseFrom worse(inner, model.config, 14);
  CountingProbe probe(10);
  options.from = 8;
  auto table =
      measureQuality(model, *text, dense, {{"worse", &worse, &probe}}, options);
  ASSERT_TRUE(table) << table.error();
  const VariantQuality &found = table->variants[0];
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(found.quarters[i], 0) << i;
  EXPECT_GT(found.quarters[3], 0);
  EXPECT_NEAR(found.divergence, found.quarters[3] / 4, 1e-12);
  EXPECT_EQ(found.liveMean, 45) << "eight samples";
  EXPECT_NE(formatQuality(*table).find("\n\nQuality and bytes from token 8 on\n\n|"),
            std::string::npos);
}

TEST_F(QualityTableTest, NamesTheVariantThatIsNotSound) {
  DenseBackend dense(model.config, 1, 1), same(model.config, 1, 1);
  CountingProbe probe(10);
  probe.checked = Error{"layer 3: not finite"};
  auto table =
      measureQuality(model, *text, dense, {{"fixed:1", &same, &probe}}, options);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error(), "fixed:1: layer 3: not finite");
}

QualityTable example() {
  QualityTable table;
  table.bitsPerByteDense = 1.0325;
  table.denseBytes = 1000;
  table.tokens = 4096;
  table.batch = 1;
  table.run.model = "model", table.run.text = "text";
  table.variants = {
      {"relative:0.03", layersOf("qr"), true, 1.0355, 0.0012, {0.001, 0.0011, 0.0012, 0.0015}, 594, 726, 1056},
      {"a<b", layersOf("qr"), true, 1.0325, 0, {0, 0, 0, 0}, 200, 200, 400}};
  return table;
}

TEST(QualityText, IsAMarkdownTable) {
  EXPECT_EQ(formatQuality(example()),
            "model, text: 1 request of 4096 tokens, states on cpu, core qr, "
            "consolidation every 4 compactions, dense fallback on\n\n"
            "| policy and storage | bits per byte (dense 1.0325) | KL to dense, "
            "nats | by quarters | live bytes, mean | live bytes, peak | "
            "allocated, peak |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n"
            "| relative:0.03 | 1.0355 | 0.00120 | 0.00100, 0.00110, 0.00120, "
            "0.00150 | 594 (59.4 %) | 726 (72.6 %) | 1056 |\n"
            "| a<b | 1.0325 | 0.00000 | 0.00000, 0.00000, 0.00000, 0.00000 | "
            "200 (20.0 %) | 200 (20.0 %) | 400 |\n");
}

// Runs with another decomposition, or of another text, can be told apart.
TEST(QualityText, SaysWhatWasRun) {
  QualityTable table = example();
  table.variants[0].layers = layersOf("svd");
  table.variants[1].denseFallback = false;
  table.run.prefill = 16;
  table.run.device = Device::Cuda;
  table.run.consolidateEvery = 0;
  table.batch = 2;
  const std::string text = formatQuality(table);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "model, text: 2 requests of 4096 tokens, states on cuda:0, cores qr "
            "and svd, no consolidation, dense fallback on but for rows of 8 "
            "bits alone, the first 16 tokens dense");
}

TEST(QualityText, IsJsonToo) {
  const auto json = nlohmann::json::parse(formatQualityJson(example(), "1.2"));
  EXPECT_EQ(json["model"], "model");
  EXPECT_EQ(json["text"], "text");
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["core"], "default");
  EXPECT_EQ(json["consolidation"], "default");
  EXPECT_EQ(json["consolidate"], 4);
  EXPECT_EQ(json["variants"][0]["states"][0]["core"], "qr");
  EXPECT_EQ(json["variants"][0]["states"][0]["storage"], "f16");
  EXPECT_EQ(json["variants"][0]["states"][0]["rounding"], "stochastic");
  EXPECT_EQ(json["variants"][0]["dense_fallback"], true);
  EXPECT_EQ(json["format"], "ss-run-quality");
  EXPECT_EQ(json["variants"][0]["kl_nats_by_quarter"][3], 0.0015);
  EXPECT_EQ(json["variants"][1]["name"], "a<b");
}

TEST(QualityPicture, HasAPointForEveryVariant) {
  const std::string svg = drawQuality(example(), "model & text");
  size_t points = 0;
  for (size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at)
    ++points;
  EXPECT_EQ(points, 2u);
  // Each with the range of its quarters.
  size_t ranges = 0;
  for (size_t at = 0;
       (at = svg.find("<path class=\"quarters\"", at)) != std::string::npos; ++at)
    ++ranges;
  EXPECT_EQ(ranges, points);
  for (const char *part : {"a&lt;b", "model &amp; text", "relative:0.03",
                           "KL to dense, nats", "50 %"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  // A divergence of zero has no logarithm.
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(QualityPicture, OfOneVariantHasScalesToo) {
  QualityTable table = example();
  table.variants.resize(1);
  const std::string svg = drawQuality(table, "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("class=\"grid\""), std::string::npos);
}

} // namespace
