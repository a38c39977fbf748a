//===- DeferredFormTest.cpp - Dense states that are written late ----------===//
//
// A matrix that is read in every step and written once in K, and the pairs since.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include <algorithm>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

double roundingOf(const LayerSpec &layer) {
  return layer.storage == "f32"   ? 0x1p-24
         : layer.storage == "f16" ? 0x1p-11
                                  : 0x1p-8;
}

/// Of outputs and states, at any token: a state is rounded once in K tokens, and
/// the arithmetic is f32's.
double toleranceOf(const LayerSpec &layer) {
  return 1e-5 + 12 * roundingOf(layer);
}

class DeferredForm : public ConformanceTest {
protected:
  static void expectExact(Running &run, DrivenRequest &request) {
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      ASSERT_LE(run.driver.stateError(request, layer),
                toleranceOf(run.layers[layer]))
          << "layer " << layer << ", position " << request.position;
  }
  static double outputTolerance(const Running &run) {
    double worst = 0;
    for (const LayerSpec &layer : run.layers)
      worst = std::max(worst, toleranceOf(layer));
    return worst;
  }
};

// Through several turns of both halves of the keys, the state at every number of
// buffered pairs.
TEST_P(DeferredForm, FollowsTheRecurrence) {
  Running run(GetParam());
  DrivenRequest request = run.request(4);
  for (int step = 0; step < 70; ++step) {
    ASSERT_LE(run.driver.step({&request}).worstError, outputTolerance(run))
        << step;
    ASSERT_NO_FATAL_FAILURE(expectExact(run, request));
  }
}

// Folds of the requests of a batch fall on different steps; a freed slot comes
// back clean, whatever its count was.
TEST_P(DeferredForm, KeepsRequestsApart) {
  Running run(GetParam(), optionsFor(3));
  DrivenRequest first = run.request(5), second = run.request(6);
  for (int step = 0; step < 11; ++step)
    ASSERT_LE(run.driver.step({&first}).worstError, outputTolerance(run));
  for (int step = 0; step < 20; ++step)
    ASSERT_LE(run.driver.step({&second, nullptr, &first}).worstError,
              outputTolerance(run))
        << step;
  run.engine.freeSlot(second.slot);
  DrivenRequest third = run.request(7);
  ASSERT_EQ(third.slot, second.slot);
  for (int step = 0; step < 20; ++step)
    ASSERT_LE(run.driver.step({&third, &first}).worstError,
              outputTolerance(run))
        << step;
  expectExact(run, first);
  expectExact(run, third);
}

// exp(-104) is zero: what a fold keeps of the matrix, and of older pairs.
TEST_P(DeferredForm, WithDecaysThatWipeTheState) {
  Running run(GetParam());
  // mamba2 writes with it too, and f16 has not the exponents for more.
  const float gate = run.layers[0].storage == "f16" ? 1e3f : 1e32f;
  RequestStyle style;
  style.adjust = [gate](int64_t position, TokenValues &token) {
    if (position % 5 == 3)
      std::fill(token.gate.begin(), token.gate.end(), gate);
  };
  DrivenRequest request = run.request(8, style);
  for (int step = 0; step < 40; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError, outputTolerance(run))
        << step;
  expectExact(run, request);
}

TEST_P(DeferredForm, CountsAsDense) {
  Running run(GetParam());
  DrivenRequest request = run.request(9);
  for (int step = 0; step < 20; ++step)
    run.driver.step({&request});
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    if (!run.layers[layer].deferred)
      continue;
    const size_t heads = size_t(run.layers[layer].heads);
    EXPECT_EQ(run.engine.ranks(int32_t(layer), request.slot),
              std::vector<int32_t>(heads, -1));
    EXPECT_EQ(run.engine.status(int32_t(layer), request.slot),
              std::vector<int32_t>(heads, 0));
    EXPECT_TRUE(run.engine.layerInfo(int32_t(layer)).dense_form);
  }
}

// The form is there to be measured against: its states are not handed over.
TEST_P(DeferredForm, IsNotHandedOver) {
  Running run(GetParam(), optionsFor(2));
  DrivenRequest request = run.request(10);
  run.driver.step({&request});
  try {
    (void)run.engine.snapshot(request.slot);
    FAIL() << "a snapshot was taken";
  } catch (const Exception &error) {
    EXPECT_EQ(error.code(), SS_NOT_SUPPORTED) << error.what();
  }
  ASSERT_LE(run.driver.step({&request}).worstError, outputTolerance(run));
}

INSTANTIATE_TEST_SUITE_P(Conformance, DeferredForm,
                         onEveryBackEnd({"deferred", "deferred_f16",
                                         "deferred_bf16"}),
                         caseName);

} // namespace
