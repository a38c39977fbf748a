//===- BatchTest.cpp - A request's bits are its own -----------------------===//
//
// Outputs of a request do not depend on who shares its batch, on its slot, on
// when it joined, on the number of threads, or on what padding rows do.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

constexpr int kSteps = 36; // four compactions and a bit

/// y by step and layer.
using Outputs = std::vector<std::vector<std::vector<float>>>;

class Batch : public ConformanceTest {
protected:
  static Outputs decodedAlone(uint64_t seed, int steps,
                              RequestStyle style = RequestStyle(),
                              int32_t threads = 1) {
    ss_engine_options options = optionsFor(1);
    options.threads = threads;
    Running run(GetParam(), options, false);
    DrivenRequest request = run.request(seed, std::move(style));
    Outputs outputs;
    for (int step = 0; step < steps; ++step)
      outputs.push_back(rowOf(run.driver.step({&request}), 0, run.layers));
    return outputs;
  }
};

/// Requests differ in what they hold: some stay at low rank, some are fed
/// nothing for a while.
RequestStyle styleOf(uint64_t seed) {
  RequestStyle style;
  style.rank = int32_t(seed % 4) * 2;
  style.gateMean = double(seed % 3) - 1;
  if (seed % 5 == 4)
    style.adjust = [](int64_t position, TokenValues &token) {
      if (position < 20)
        std::fill(token.v.begin(), token.v.end(), 0.0f);
    };
  return style;
}

TEST_P(Batch, RequestAloneEqualsRequestInABatchOf16) {
  Running run(GetParam(), optionsFor(16), false);
  std::vector<DrivenRequest> requests;
  std::vector<DrivenRequest *> batch;
  for (uint64_t seed = 0; seed < 16; ++seed)
    requests.push_back(run.request(seed, styleOf(seed)));
  for (DrivenRequest &request : requests)
    batch.push_back(&request);
  std::vector<Outputs> outputs(16);
  for (int step = 0; step < kSteps; ++step) {
    // The order of the batch is another one in every step.
    std::rotate(batch.begin(), batch.begin() + 5, batch.end());
    const StepResult result = run.driver.step(batch);
    for (size_t b = 0; b < batch.size(); ++b)
      outputs[size_t(batch[b] - requests.data())].push_back(
          rowOf(result, b, run.layers));
  }
  for (uint64_t seed : {0u, 7u, 9u, 15u})
    EXPECT_EQ(outputs[seed], decodedAlone(seed, kSteps, styleOf(seed)))
        << "request " << seed;
}

TEST_P(Batch, RequestsJoinAndLeaveBetweenSteps) {
  Running run(GetParam(), optionsFor(3), false);
  DrivenRequest stays = run.request(100);
  std::unique_ptr<DrivenRequest> other;
  Outputs outputs, lateOutputs;
  for (int step = 0; step < kSteps; ++step) {
    if (step % 7 == 3) {
      if (other)
        run.engine.freeSlot(other->slot);
      other = std::make_unique<DrivenRequest>(
          run.request(step == 17 ? 200 : uint64_t(step)));
    }
    std::vector<DrivenRequest *> batch = {&stays};
    if (other)
      batch.insert(batch.begin(), other.get());
    const StepResult result = run.driver.step(batch);
    outputs.push_back(rowOf(result, batch.size() - 1, run.layers));
    if (step >= 17 && step < 24)
      lateOutputs.push_back(rowOf(result, 0, run.layers));
  }
  EXPECT_EQ(outputs, decodedAlone(100, kSteps));
  EXPECT_EQ(lateOutputs, decodedAlone(200, 7));
}

// A request that sits some steps out compacts at its own positions.
TEST_P(Batch, RequestsMayPause) {
  Running run(GetParam(), optionsFor(2), false);
  DrivenRequest a = run.request(5), b = run.request(6);
  Outputs outputsA, outputsB;
  for (int step = 0; step < 2 * kSteps; ++step) {
    std::vector<DrivenRequest *> batch;
    if (step % 3 != 1)
      batch.push_back(&a);
    if (step % 4 != 2)
      batch.push_back(&b);
    if (batch.empty())
      continue;
    const StepResult result = run.driver.step(batch);
    for (size_t row = 0; row < batch.size(); ++row)
      (batch[row] == &a ? outputsA : outputsB)
          .push_back(rowOf(result, row, run.layers));
  }
  EXPECT_EQ(outputsA, decodedAlone(5, int(outputsA.size())));
  EXPECT_EQ(outputsB, decodedAlone(6, int(outputsB.size())));
}

TEST_P(Batch, ThreadsDoNotChangeBits) {
  EXPECT_EQ(decodedAlone(3, kSteps, styleOf(3), 1),
            decodedAlone(3, kSteps, styleOf(3), 5));
}

TEST_P(Batch, PaddingRowsWriteZerosAndTouchNothing) {
  Running padded(GetParam(), optionsFor(2), false);
  DrivenRequest a = padded.request(1), b = padded.request(2);
  Outputs outputs;
  for (int step = 0; step < kSteps; ++step) {
    const StepResult result =
        padded.driver.step({nullptr, &a, nullptr, nullptr, &b, nullptr});
    for (size_t row : {0u, 2u, 3u, 5u})
      for (const std::vector<float> &y : rowOf(result, row, padded.layers))
        ASSERT_EQ(y, std::vector<float>(y.size(), 0.0f)) << "step " << step;
    outputs.push_back(rowOf(result, 4, padded.layers));
  }
  EXPECT_EQ(outputs, decodedAlone(2, kSteps));
}

// A GPU runs the programs of a small batch by several warps each, those of a large
// one by one.
TEST_P(Batch, LargeBatchesHaveTheBitsOfSmallOnes) {
  constexpr int kFew = 12; // a compaction and a bit
  constexpr size_t kRows = 4000;
  Running run(GetParam(), optionsFor(2), false);
  DrivenRequest a = run.request(1, styleOf(1)), b = run.request(2, styleOf(2));
  std::vector<DrivenRequest *> batch(kRows, nullptr);
  batch.front() = &a;
  batch[kRows - 2] = &b;
  Outputs outputsA, outputsB;
  for (int step = 0; step < kFew; ++step) {
    const StepResult result = run.driver.step(batch);
    outputsA.push_back(rowOf(result, 0, run.layers));
    outputsB.push_back(rowOf(result, kRows - 2, run.layers));
  }
  EXPECT_EQ(outputsA, decodedAlone(1, kFew, styleOf(1)));
  EXPECT_EQ(outputsB, decodedAlone(2, kFew, styleOf(2)));
}

// Requests whose ranks differ widely meet in one batch.
TEST_P(Batch, UnevenRanksStayApart) {
  Running run(GetParam(), optionsFor(4));
  std::vector<DrivenRequest> requests;
  for (int32_t rank : {1, 3, 9, 0}) {
    RequestStyle style;
    style.rank = rank;
    requests.push_back(run.request(uint64_t(rank), style));
  }
  for (int step = 0; step < 24; ++step) {
    std::vector<DrivenRequest *> batch;
    for (DrivenRequest &request : requests)
      batch.push_back(&request);
    run.driver.step(batch);
  }
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    // One direction of keys stays one component, give or take rounding.
    if (!run.layers[layer].denseForm)
      EXPECT_LE(run.engine.ranks(int32_t(layer), requests[0].slot)[0], 3);
    for (const DrivenRequest &request : requests)
      EXPECT_EQ(run.engine.status(int32_t(layer), request.slot),
                std::vector<int32_t>(size_t(run.layers[layer].heads), 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Batch,
                         onEveryBackEnd(withBothCores({"hybrid", "hybrid_relative"})),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Random, Batch, onEveryBackEnd({"hybrid_random"}),
                         caseName);

class Slots : public ConformanceTest {};

RequestStyle poisonAt(int64_t at) {
  RequestStyle style;
  style.adjust = [at](int64_t position, TokenValues &token) {
    if (position == at)
      token.v[0] = std::numeric_limits<float>::quiet_NaN();
  };
  return style;
}

// A NaN stays in the state it was written to, and leaves with its owner.
TEST_P(Slots, AreCleanAfterANaN) {
  Running run(GetParam(), optionsFor(2), false),
      fresh(GetParam(), optionsFor(2), false);
  DrivenRequest healthy = run.request(1), broken = run.request(2, poisonAt(3));
  DrivenRequest same = fresh.request(1);
  const int32_t slot = broken.slot;
  for (int step = 0; step < 20; ++step) {
    const StepResult result = run.driver.step({&healthy, &broken});
    ASSERT_EQ(rowOf(result, 0, run.layers),
              rowOf(fresh.driver.step({&same}), 0, run.layers))
        << "step " << step;
  }
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const std::vector<int32_t> status =
        run.engine.status(int32_t(layer), slot);
    if (!run.layers[layer].denseForm)
      EXPECT_EQ(status[0], SS_STATUS_NOT_FINITE) << "layer " << layer;
    for (size_t head = 1; head < status.size(); ++head)
      EXPECT_EQ(status[head], 0) << "layer " << layer << " head " << head;
    EXPECT_EQ(run.engine.status(int32_t(layer), healthy.slot),
              std::vector<int32_t>(status.size(), 0));
  }
  run.engine.freeSlot(slot);
  DrivenRequest next = run.request(3), twin = fresh.request(3);
  ASSERT_EQ(next.slot, slot);
  for (int step = 0; step < 20; ++step)
    ASSERT_EQ(rowOf(run.driver.step({&next}), 0, run.layers),
              rowOf(fresh.driver.step({&twin}), 0, run.layers))
        << "step " << step;
}

TEST_P(Slots, ResetForgetsEverything) {
  Running run(GetParam(), optionsFor(1), false),
      fresh(GetParam(), optionsFor(1), false);
  DrivenRequest old = run.request(1);
  for (int step = 0; step < 13; ++step)
    run.driver.step({&old});
  run.engine.resetSlot(old.slot);
  DrivenRequest again(run.layers, 2), twin = fresh.request(2);
  again.slot = old.slot;
  for (int step = 0; step < 20; ++step)
    ASSERT_EQ(run.driver.step({&again}).y, fresh.driver.step({&twin}).y)
        << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(Conformance, Slots,
                         onEveryBackEnd(withBothCores({"hybrid", "hybrid_relative"})),
                         caseName);

class Schedule : public ConformanceTest {};

// Every step compacts exactly the layers whose phase it is.
TEST_P(Schedule, StaggersLayers) {
  Running run(GetParam(), plainOptions(1), false);
  DrivenRequest request = run.request(1);
  std::vector<int32_t> steps;
  int64_t expected = 0;
  for (int step = 0; step < 24; ++step) {
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      if (run.compactsNext(request, layer))
        expected += run.layers[layer].heads;
    run.driver.step({&request});
    ASSERT_EQ(run.engine.statistics().compactions, expected) << step;
  }
  for (const LayerSpec &layer : run.layers)
    if (!layer.denseForm && layer.buffer == 8)
      steps.push_back((layer.phase + layer.compactsBefore()) % layer.buffer);
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(std::unique(steps.begin(), steps.end()), steps.end())
      << "two layers compact in the same step";
}

INSTANTIATE_TEST_SUITE_P(Conformance, Schedule,
                         onEveryBackEnd(withBothCores({"hybrid", "hybrid_relative"})),
                         caseName);

} // namespace
