//===- DenseFormTest.cpp - Layers that keep H itself ----------------------===//

#include "ConformanceTest.h"

#include <algorithm>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

class DenseForm : public ConformanceTest {};

// Read, updated and written every token: float32 rounding and nothing else.
TEST_P(DenseForm, FollowsTheRecurrence) {
  Running run(GetParam());
  DrivenRequest request = run.request(4);
  for (int step = 0; step < 100; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError, 1e-5) << step;
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    EXPECT_LE(run.driver.stateError(request, layer), 1e-5) << layer;
}

TEST_P(DenseForm, WithDecaysThatWipeTheState) {
  RequestStyle style;
  style.adjust = [](int64_t position, TokenValues &token) {
    if (position % 5 == 3)
      std::fill(token.gate.begin(), token.gate.end(), 1e32f);
  };
  Running run(GetParam());
  DrivenRequest request = run.request(4, style);
  for (int step = 0; step < 20; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError, 1e-5) << step;
}

TEST_P(DenseForm, HasNoRankAndNoStatus) {
  Running run(GetParam());
  DrivenRequest request = run.request(4);
  for (int step = 0; step < 9; ++step)
    run.driver.step({&request});
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const size_t heads = size_t(run.layers[layer].heads);
    EXPECT_EQ(run.engine.ranks(int32_t(layer), request.slot),
              std::vector<int32_t>(heads, -1));
    EXPECT_EQ(run.engine.status(int32_t(layer), request.slot),
              std::vector<int32_t>(heads, 0));
    EXPECT_TRUE(run.engine.layerInfo(int32_t(layer)).dense_form);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, DenseForm, onEveryBackEnd({"dense"}),
                         caseName);

} // namespace
