//===- QualityTableTest.cpp - Policies and storages side by side ----------===//

#include "DenseBackend.h"
#include "QualityTable.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

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
                              {{"exact", &same, &small}, {"worse", &worse, &large}},
                              options);
  ASSERT_TRUE(table) << table.error();
  ASSERT_EQ(table->variants.size(), 2u);
  const VariantQuality &exact = table->variants[0], &other = table->variants[1];
  EXPECT_EQ(exact.name, "exact");
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
  EXPECT_EQ(formatQuality(*table).rfind("Quality and bytes from token 8 on\n\n|", 0), 0u);
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
  table.variants = {
      {"relative:0.03", 1.0355, 0.0012, {0.001, 0.0011, 0.0012, 0.0015}, 594, 726, 1056},
      {"a<b", 1.0325, 0, {0, 0, 0, 0}, 200, 200, 400}};
  return table;
}

TEST(QualityText, IsAMarkdownTable) {
  EXPECT_EQ(formatQuality(example()),
            "| policy and storage | bits per byte (dense 1.0325) | KL to dense, "
            "nats | by quarters | live bytes, mean | live bytes, peak | "
            "allocated, peak |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n"
            "| relative:0.03 | 1.0355 | 0.00120 | 0.00100, 0.00110, 0.00120, "
            "0.00150 | 594 (59.4 %) | 726 (72.6 %) | 1056 |\n"
            "| a<b | 1.0325 | 0.00000 | 0.00000, 0.00000, 0.00000, 0.00000 | "
            "200 (20.0 %) | 200 (20.0 %) | 400 |\n");
}

TEST(QualityText, IsJsonToo) {
  const auto json = nlohmann::json::parse(formatQualityJson(example(), "1.2"));
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
