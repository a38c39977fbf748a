//===- MeasurementTest.cpp - The run over both kinds of states ------------===//

#include "Measurement.h"
#include "DenseBackend.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

/// Answers like a probe of an engine whose ranks follow a known rule.
class ScriptedProbe : public StateProbe {
public:
  explicit ScriptedProbe(std::vector<ProbedLayer> layers)
      : infos(std::move(layers)) {}

  const std::vector<ProbedLayer> &layers() const override { return infos; }

  // Rank = step for every head, and dense from step 3 on for head 1.
  Result<std::vector<int32_t>> ranks(int layer, int) override {
    std::vector<int32_t> ranks(infos[layer].heads, step);
    if (step >= 3)
      ranks[1] = -1;
    return ranks;
  }

  Result<ss_statistics> statistics() override {
    ++step;
    ss_statistics statistics{};
    statistics.dense_bytes = 1000;
    statistics.live_bytes = 100 * step;
    statistics.allocated_peak = 5000;
    statistics.compactions = step;
    return statistics;
  }

  Result<int> check() override {
    return finalStatus ? Result<int>(*finalStatus) : tightened;
  }

  Status finalStatus;
  int tightened = 0;

private:
  std::vector<ProbedLayer> infos;
  int step = 0;
};

/// Turns the answers of another backend into something wrong.
class DisturbedBackend : public StateBackend {
public:
  DisturbedBackend(StateBackend &inner, const Config &config, float factor)
      : inner(inner), config(config), factor(factor) {}

  Status decodeLayer(int layer, const StateInput &input, float *y) override {
    if (Status status = inner.decodeLayer(layer, input, y))
      return status;
    const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
    for (int i = 0; i < sizes.heads * sizes.dv; ++i)
      y[i] *= factor;
    return std::nullopt;
  }
  Status endStep() override { return inner.endStep(); }

private:
  StateBackend &inner;
  const Config &config;
  float factor;
};

class MeasurementTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(TINY_HYBRID_MODEL);
    ASSERT_TRUE(loaded) << loaded.error();
    model = std::move(*loaded);
  }

  TokenSource golden(int batch, int tokens) {
    auto text = TokenSource::open(TINY_HYBRID_MODEL "/golden.safetensors",
                                  batch, tokens);
    EXPECT_TRUE(text);
    return *text;
  }

  Model model;
  MeasureOptions options;
};

TEST_F(MeasurementTest, EqualStatesDoNotDiverge) {
  DenseBackend dense(model.config, 1, 1), same(model.config, 1, 1);
  ScriptedProbe probe({});
  auto result = measure(model, golden(1, 1024), dense, same, probe, options);
  ASSERT_TRUE(result) << result.error();
  // The value of the float64 model on this text.
  EXPECT_NEAR(result->bitsPerByteDense, 1.1968, 1e-4);
  EXPECT_EQ(result->bitsPerByteDense, result->bitsPerByteCompressed);
  EXPECT_EQ(result->divergence, 0);
  EXPECT_GT(result->dense.all, result->dense.states);
}

TEST_F(MeasurementTest, CollectsWhatTheProbeSees) {
  options.tokens = 4;
  options.batch = 2;
  int progress = 0;
  options.progress = [&](int done) { progress = done; };
  DenseBackend dense(model.config, 2, 1), same(model.config, 2, 1);
  ScriptedProbe probe({{"gdn", 0, 2, 128}, {"kda", 2, 2, 64}});
  auto result = measure(model, golden(2, 4), dense, same, probe, options);
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(progress, 4);
  EXPECT_EQ(result->bytes.dense, 1000);
  EXPECT_EQ(result->bytes.liveMean, 250);
  EXPECT_EQ(result->bytes.livePeak, 400);
  EXPECT_EQ(result->bytes.allocatedPeak, 5000);
  EXPECT_EQ(result->statistics.compactions, 4);
  // Head 0: 1, 2, 3, 4; head 1: 1, 2, dense, dense.
  EXPECT_EQ(result->ranks["gdn"].mean,
            (1 + 2 + 3 + 4 + 1 + 2 + 128 + 128) / 8.0);
  EXPECT_EQ(result->ranks["gdn"].max, 128);
  EXPECT_EQ(result->ranks["gdn"].denseShare, 0.25);
  EXPECT_EQ(result->ranks["kda"].max, 64);
  ASSERT_EQ(result->history.steps.size(), 4u);
  EXPECT_EQ(result->history.steps[2], (std::vector<int32_t>{3, -1, 3, -1}));
}

TEST_F(MeasurementTest, MeasuresFromAToken) {
  options.tokens = 4;
  options.from = 3;
  DenseBackend dense(model.config, 1, 1), same(model.config, 1, 1);
  ScriptedProbe probe({{"gdn", 0, 2, 128}});
  auto result = measure(model, golden(1, 4), dense, same, probe, options);
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->history.steps.size(), 1u);
  options.tokens = 1024;
  options.from = 1023;
  DenseBackend again(model.config, 1, 1), other(model.config, 1, 1);
  auto last = measure(model, golden(1, 1024), again, other, probe, options);
  ASSERT_TRUE(last) << last.error();
  EXPECT_GT(std::fabs(last->bitsPerByteDense - 1.1968), 1e-3); // one byte alone
}

TEST_F(MeasurementTest, SeesDifferences) {
  options.tokens = 64;
  DenseBackend dense(model.config, 1, 1), inner(model.config, 1, 1);
  DisturbedBackend disturbed(inner, model.config, 0.5f);
  // gdn and kda normalise what comes out; mamba2's skip makes it count.
  ScriptedProbe probe({});
  auto result = measure(model, golden(1, 64), dense, disturbed, probe, options);
  ASSERT_TRUE(result) << result.error();
  EXPECT_GT(result->divergence, 1e-3);
  EXPECT_NE(result->bitsPerByteDense, result->bitsPerByteCompressed);
}

TEST_F(MeasurementTest, GeneratesTheSameBytesFromTheSameSeed) {
  options.tokens = 8;
  options.generate = 12;
  options.seed = 3;
  auto run = [&] {
    DenseBackend dense(model.config, 1, 1), same(model.config, 1, 1);
    ScriptedProbe probe({});
    return measure(model, golden(1, 8), dense, same, probe, options)->generated;
  };
  const std::string first = run();
  EXPECT_EQ(first.size(), 12u);
  EXPECT_EQ(run(), first);
  options.seed = 4;
  EXPECT_NE(run(), first);
}

TEST_F(MeasurementTest, ReportsWhatIsNotFiniteAndUnsoundStates) {
  options.tokens = 4;
  DenseBackend dense(model.config, 1, 1), inner(model.config, 1, 1);
  DisturbedBackend broken(inner, model.config, NAN);
  ScriptedProbe probe({});
  EXPECT_EQ(measure(model, golden(1, 4), dense, broken, probe, options).error(),
            "token 0, request 0: found logits that are not finite, expected "
            "finite ones from this model");
  probe.tightened = 2;
  DenseBackend third(model.config, 1, 1), fourth(model.config, 1, 1);
  EXPECT_EQ(measure(model, golden(1, 4), third, fourth, probe, options)
                ->tightenedStates,
            2);
  DenseBackend again(model.config, 1, 1), same(model.config, 1, 1);
  probe.finalStatus = Error{"unsound"};
  EXPECT_EQ(measure(model, golden(1, 4), again, same, probe, options).error(),
            "unsound");
}

} // namespace
