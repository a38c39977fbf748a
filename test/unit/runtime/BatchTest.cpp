//===- BatchTest.cpp - Requests in one batch do not meet ------------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

std::vector<LayerSpec> threeLayers() {
  std::vector<LayerSpec> layers =
      numbered({mamba2Layer(4, 1, 20, 16), gdnLayer(4, 2, 16, 24), kdaLayer(2, 2, 24, 16)});
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].phase = int32_t(3 * i + 1) % 8;
    layers[i].policyValue = 1e-2;
  }
  return layers;
}

/// Row b of every layer's y.
std::vector<std::vector<float>> rowOf(const StepResult &result, size_t b,
                                      const std::vector<LayerSpec> &layers) {
  std::vector<std::vector<float>> rows;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    auto begin = result.y[layer].begin() +
                 std::ptrdiff_t(b * size_t(layers[layer].valueFloats()));
    rows.emplace_back(begin, begin + layers[layer].valueFloats());
  }
  return rows;
}

using Outputs = std::vector<std::vector<std::vector<float>>>;

/// The outputs of a request that has the engine to itself.
Outputs decodedAlone(uint64_t seed, int steps) {
  EngineUnderTest test(threeLayers(), optionsFor(1), false);
  DrivenRequest request = test.request(seed);
  Outputs outputs;
  for (int step = 0; step < steps; ++step)
    outputs.push_back(rowOf(test.driver.step({&request}), 0,
                            test.kernels.layers()));
  return outputs;
}

TEST(Batch, RequestAloneEqualsRequestInABatchOf16BitForBit) {
  constexpr int kSteps = 40;
  EngineUnderTest test(threeLayers(), optionsFor(16), false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < 16; ++seed)
    requests.push_back(test.request(seed));
  for (DrivenRequest &request : requests)
    batch.push_back(&request);
  std::vector<Outputs> outputs(16);
  for (int step = 0; step < kSteps; ++step) {
    // The order of the batch is another one in every step.
    std::rotate(batch.begin(), batch.begin() + 5, batch.end());
    StepResult result = test.driver.step(batch);
    for (size_t b = 0; b < batch.size(); ++b)
      outputs[size_t(batch[b] - requests.data())].push_back(
          rowOf(result, b, test.kernels.layers()));
  }
  for (uint64_t seed : {0u, 7u, 15u})
    EXPECT_EQ(outputs[seed], decodedAlone(seed, kSteps)) << seed;
}

TEST(Batch, RequestsJoinAndLeaveBetweenSteps) {
  constexpr int kSteps = 48;
  EngineUnderTest test(threeLayers(), optionsFor(3), false);
  DrivenRequest stays = test.request(100);
  std::unique_ptr<DrivenRequest> other;
  Outputs outputs, lateOutputs;
  for (int step = 0; step < kSteps; ++step) {
    if (step % 12 == 5) {
      if (other)
        test.engine.freeSlot(other->slot);
      other = std::make_unique<DrivenRequest>(test.request(step == 29 ? 200
                                                                      : 1));
    }
    bool late = step >= 29 && step < 41;
    std::vector<DrivenRequest *> batch = {&stays};
    if (other)
      batch.insert(batch.begin(), other.get());
    StepResult result = test.driver.step(batch);
    outputs.push_back(rowOf(result, batch.size() - 1, test.kernels.layers()));
    if (late)
      lateOutputs.push_back(rowOf(result, 0, test.kernels.layers()));
  }
  EXPECT_EQ(outputs, decodedAlone(100, kSteps));
  EXPECT_EQ(lateOutputs, decodedAlone(200, 12));
}

TEST(Batch, BitsDoNotDependOnTheNumberOfThreads) {
  std::vector<Outputs> outputs;
  for (int32_t threads : {1, 2, 5}) {
    ss_engine_options options = optionsFor(4);
    options.threads = threads;
    EngineUnderTest test(threeLayers(), options, false);
    std::vector<DrivenRequest> requests;
    for (uint64_t seed = 0; seed < 4; ++seed)
      requests.push_back(test.request(seed));
    outputs.emplace_back();
    for (int step = 0; step < 24; ++step)
      outputs.back().push_back(
          test.driver
              .step({&requests[0], &requests[1], &requests[2], &requests[3]})
              .y);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
}

TEST(Batch, PaddingRowsAreZeroAndTouchNothing) {
  EngineUnderTest test(threeLayers(), optionsFor(2), false);
  DrivenRequest first = test.request(1), second = test.request(2);
  Outputs outputs;
  for (int step = 0; step < 20; ++step) {
    StepResult result =
        test.driver.step({nullptr, &first, nullptr, &second, nullptr});
    outputs.push_back(rowOf(result, 1, test.kernels.layers()));
    for (size_t b : {0u, 2u, 4u})
      for (const std::vector<float> &row :
           rowOf(result, b, test.kernels.layers()))
        for (float y : row)
          ASSERT_EQ(y, 0.0f);
  }
  EXPECT_EQ(outputs, decodedAlone(1, 20));
}

TEST(Batch, ABatchOfPaddingAloneIsAllowed) {
  EngineUnderTest test(threeLayers(), optionsFor(1), false);
  StepResult result = test.driver.step({nullptr, nullptr});
  for (const std::vector<float> &rows : result.y)
    for (float y : rows)
      EXPECT_EQ(y, 0.0f);
}

TEST(Batch, ANaNStaysInItsRequest) {
  EngineUnderTest test({threeLayers()[1]}, optionsFor(2), false);
  DrivenRequest healthy = test.request(1), broken = test.request(2);
  const LayerSpec &layer = test.kernels.layers()[0];
  std::vector<float> y(2 * size_t(layer.valueFloats()));
  for (int step = 0; step < 20; ++step) {
    // By hand: request 2 has a NaN among its values at step 3.
    TokenValues a = healthy.inputs(0).token(step);
    TokenValues b = broken.inputs(0).token(step);
    if (step == 3)
      b.v[0] = std::numeric_limits<float>::quiet_NaN();
    auto both = [](const std::vector<float> &x, const std::vector<float> &z) {
      std::vector<float> rows(x);
      rows.insert(rows.end(), z.begin(), z.end());
      return rows;
    };
    std::vector<float> q = both(a.q, b.q), k = both(a.k, b.k),
                       v = both(a.v, b.v), g = both(a.gate, b.gate),
                       beta = both(a.beta, b.beta);
    const int32_t slots[] = {healthy.slot, broken.slot};
    ss_decode_args args = decodeArgs();
    args.batch = 2;
    args.slots = slots;
    args.q = {q.data(), 0};
    args.k = {k.data(), 0};
    args.v = {v.data(), 0};
    args.gate = {g.data(), 0};
    args.beta = {beta.data(), 0};
    args.a_log = test.driver.weights(0).aLog.data();
    args.dt_bias = test.driver.weights(0).dtBias.data();
    args.y = y.data();
    test.engine.decodeLayer(0, args);
    test.engine.endStep({healthy.slot, broken.slot});
    for (int64_t r = 0; r < layer.valueFloats(); ++r)
      ASSERT_TRUE(std::isfinite(y[size_t(r)])) << step;
  }
  for (int32_t bits : test.engine.status(0, healthy.slot))
    EXPECT_EQ(bits, 0);
  EXPECT_EQ(test.engine.status(0, broken.slot)[0], SS_STATUS_NOT_FINITE);
  EXPECT_EQ(test.engine.status(0, broken.slot)[1], 0); // another head
}

} // namespace
