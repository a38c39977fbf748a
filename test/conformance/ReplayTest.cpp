//===- ReplayTest.cpp - Steps as CUDA graphs ------------------------------===//
//
// A step that was captured once gives, replayed with other slots, positions and
// ranks, the bits of a step that is launched call by call.
//
//===----------------------------------------------------------------------===//

#include "ConvertedTwins.h"
#include "GraphReplay.h"
#include "TokenDecoder.h"
#include "UntilLanded.h"

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

class Replay : public ConformanceTest {
protected:
  void SetUp() override {
    if (GetParam().backEnd->name() != "cuda")
      GTEST_SKIP() << GetParam().backEnd->name()
                   << ": only streams can be captured";
    ConformanceTest::SetUp();
  }
};

struct Pair {
  Running captured, launched;
  test::GraphReplay replay;
  std::vector<DrivenRequest> a, b;

  Pair(const Case &parameter, int32_t slots)
      : captured(parameter, optionsFor(slots)),
        launched(parameter, optionsFor(slots), false),
        replay(captured.driver) {}

  void add(uint64_t seed) {
    RequestStyle style;
    style.rank = int32_t(seed % 4) * 3;
    a.push_back(captured.request(seed, style));
    b.push_back(launched.request(seed, style));
  }
  /// Both engines decode these requests; -1: padding.
  void step(const std::vector<int> &which) {
    std::vector<DrivenRequest *> rowsA, rowsB;
    for (int i : which) {
      rowsA.push_back(i < 0 ? nullptr : &a[size_t(i)]);
      rowsB.push_back(i < 0 ? nullptr : &b[size_t(i)]);
    }
    ASSERT_EQ(captured.driver.step(rowsA).y, launched.driver.step(rowsB).y);
  }
  void expectEqualStates() {
    for (size_t i = 0; i < a.size(); ++i)
      for (int32_t layer = 0; layer < captured.engine.layerCount(); ++layer) {
        EXPECT_EQ(captured.engine.ranks(layer, a[i].slot),
                  launched.engine.ranks(layer, b[i].slot));
        EXPECT_EQ(captured.engine.densify(layer, a[i].slot),
                  launched.engine.densify(layer, b[i].slot));
      }
  }
};

TEST_P(Replay, GivesTheBitsOfLaunches) {
  Pair pair(GetParam(), 5);
  for (uint64_t seed = 0; seed < 4; ++seed)
    pair.add(seed);
  const std::vector<std::vector<int>> batches = {
      {0, 1, 2, 3}, {3, -1, 0, 2}, {1}, {2}, {1, 0, 3, 2},
      {0, 2},       {3, 1},        {-1}, {0}, {2, 3, -1, -1}};
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    ASSERT_NO_FATAL_FAILURE(pair.step(batches[size_t(step) % batches.size()]));
  }
  EXPECT_EQ(pair.replay.captured(), 3u); // batches of 1, 2 and 4
  pair.expectEqualStates();
}

// A slot changes its owner between two replays of one graph.
TEST_P(Replay, SeesNewOwnersOfSlots) {
  Pair pair(GetParam(), 2);
  pair.add(1);
  pair.add(2);
  for (int step = 0; step < 13; ++step)
    ASSERT_NO_FATAL_FAILURE(pair.step({0, 1}));
  pair.captured.engine.freeSlot(pair.a[0].slot);
  pair.launched.engine.freeSlot(pair.b[0].slot);
  pair.add(3);
  for (int step = 0; step < 13; ++step)
    ASSERT_NO_FATAL_FAILURE(pair.step({2, 1}));
  EXPECT_EQ(pair.replay.captured(), 1u);
}

// Two graphs, of calls of 3 and of 5 tokens, take turns with two requests.
TEST_P(Replay, SeveralTokensAreAsManySteps) {
  Running run(GetParam(), optionsFor(4), /*withOracle=*/false);
  TokenDecoder first(run, 3, RequestStyle()), second(run, 4, RequestStyle());
  TokenCall three(first, {3}), five(second, {5});
  const test::CapturedCalls threeTokens(
      [&](void *stream) { three.enqueue(stream); });
  const test::CapturedCalls fiveTokens(
      [&](void *stream) { five.enqueue(stream); });
  struct Request {
    int32_t slot, twin; ///< of replays, and of single steps
    int64_t position = 0;
  };
  std::vector<Request> requests;
  for (uint64_t key : {7, 8}) {
    requests.push_back({run.engine.allocateSlot(), run.engine.allocateSlot()});
    run.engine.setRoundingKey(requests.back().slot, key);
    run.engine.setRoundingKey(requests.back().twin, key);
  }
  for (int call = 0; call < 24; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const bool isLong = call % 3 == 1;
    Request &request = requests[size_t(call / 3) % 2];
    TokenCall &tokens = isLong ? five : three;
    tokens.fill(0, request.slot, request.position);
    run.engine.tend();
    (isLong ? fiveTokens : threeTokens).replay();
    TokenDecoder &decoder = isLong ? second : first;
    const int32_t count = isLong ? 5 : 3;
    ASSERT_EQ(tokens.outputs(0),
              decoder.decodeSingle(request.twin, request.position, count));
    request.position += count;
  }
  run.engine.synchronize();
  for (const Request &request : requests)
    for (int32_t layer = 0; layer < run.engine.layerCount(); ++layer)
      EXPECT_EQ(run.engine.densify(layer, request.slot),
                run.engine.densify(layer, request.twin));
}

// Slots, padding and numbers of any type are what they are at each replay.
TEST_P(Replay, ConvertsWhatIsThereThen) {
  constexpr int32_t kRows = 4;
  Running run(GetParam(), twinOptions(3, kRows), false);
  Twins twins(run, 3, 1);
  const std::vector<std::vector<int>> orders = {
      {-1, 0, 1, -1}, {2, 1, -1, 0}, {-1, -1, 1, -1}, {1, 2, 0, -1}};
  const std::vector<RowForm> forms = reference::allRowForms();
  for (size_t i = 0; i < forms.size(); i += 10) {
    SCOPED_TRACE(testing::Message() << forms[i]);
    TypedBatch typed(run.engine, run.layers, forms[i], kRows);
    const test::CapturedCalls captured(
        [&](void *stream) { typed.enqueue(stream); });
    for (int step = 0; step < 18 && !HasFailure(); ++step)
      twins.step(forms[i], typed, orders[size_t(step) % orders.size()],
                 [&] { captured.replay(); });
    twins.expectEqualStates();
    twins.restart();
  }
}

// Replayed steps call nobody, and results land in them nevertheless.
TEST_P(Replay, TakesOverWhatIsConsolidatedMeanwhile) {
  ss_engine_options options = optionsFor(3);
  options.consolidation = SS_CONSOLIDATION_ASYNCHRONOUS;
  options.consolidate_every = 1;
  Running run(GetParam(), options);
  test::GraphReplay replay(run.driver);
  std::vector<DrivenRequest> requests;
  RequestStyle style;
  style.rank = 12;
  style.noise = 0.05;
  for (uint64_t seed = 0; seed < 3; ++seed)
    requests.push_back(run.request(seed, style));
  for (int step = 0; step < 120; ++step) {
    run.driver.step({&requests[0], &requests[1], &requests[2]});
    if (step % 12 == 7)
      run.engine.synchronize();
    if (step % 40 == 39) { // with jobs under way
      run.engine.freeSlot(requests[2].slot);
      requests[2] = run.request(uint64_t(step), style);
    }
  }
  EXPECT_EQ(replay.captured(), 1u);
  for (DrivenRequest &request : requests)
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      EXPECT_LT(run.driver.stateError(request, layer), 0.5)
          << "layer " << layer;
  test::decodeUntilLanded(run.engine, [&] {
    run.driver.step({&requests[0], &requests[1], &requests[2]});
  });
  run.engine.synchronize();
  const ss_statistics s = run.engine.statistics();
  EXPECT_EQ(s.consolidation_waits, 0);
  EXPECT_EQ(s.consolidations_started,
            s.consolidations_landed + s.consolidations_dropped);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Replay,
                         onEveryBackEnd(withBothCores({"hybrid", "hybrid_relative"})),
                         caseName);

// Rows are rounded by random bits of their position.
INSTANTIATE_TEST_SUITE_P(Random, Replay, onEveryBackEnd({"hybrid_random"}),
                         caseName);

} // namespace
