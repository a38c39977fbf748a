//===- ConversionsTest.cpp - Callers' rows of every type ------------------===//
//
// Every element type, slot type, padding rule and stride, beside f32 and beside
// the recurrence in float64. A run goes from one form to the next, so that states
// are compacted meanwhile; ReplayTest.cpp does the same in captured steps.
//
//===----------------------------------------------------------------------===//

#include "ConvertedTwins.h"

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

class Conversions : public ConformanceTest {};

constexpr int32_t kRows = 4;

void expectRoundedOutputs(const Case &parameter) {
  Running run(parameter, twinOptions(3, kRows), false);
  Twins twins(run, 3, 1);
  const std::vector<std::vector<int>> orders = {
      {-1, 0, 1, -1}, {2, 1, -1, 0}, {0, -1, -1, 2}, {1, 2, 0, -1}};
  int step = 0;
  for (const RowForm &form : reference::allRowForms()) {
    SCOPED_TRACE(testing::Message() << "step " << step << ": " << form);
    TypedBatch typed(run.engine, run.layers, form, kRows);
    twins.step(form, typed, orders[size_t(step) % orders.size()],
               [&] { typed.enqueue(); });
    if (testing::Test::HasFailure())
      return;
    if (++step % 20 == 0) {
      twins.expectEqualStates();
      twins.restart();
    }
  }
  twins.expectEqualStates();
  EXPECT_GT(run.engine.statistics().conversion_bytes, 0);
}

TEST_P(Conversions, GiveTheRoundedOutputsOfF32) {
  expectRoundedOutputs(GetParam());
}

TEST_P(Conversions, OfSeveralTokens) {
  constexpr int32_t kTokens = 3;
  Running run(GetParam(), twinOptions(2, 3 * kTokens), false);
  Twins twins(run, 2, kTokens);
  const std::vector<RowForm> forms = reference::allRowForms();
  int call = 0;
  for (size_t i = 0; i < forms.size(); i += 5) {
    SCOPED_TRACE(testing::Message() << "call " << call << ": " << forms[i]);
    TypedBatch typed(run.engine, run.layers, forms[i], 3, kTokens);
    twins.step(forms[i], typed,
               call % 2 ? std::vector<int>{1, 0, -1} : std::vector<int>{0, -1, 1},
               [&] { typed.enqueue(); });
    if (testing::Test::HasFailure())
      return;
    if (++call % 6 == 0) {
      twins.expectEqualStates();
      twins.restart();
    }
  }
  twins.expectEqualStates();
}

INSTANTIATE_TEST_SUITE_P(Conformance, Conversions,
                         onEveryBackEnd({"hybrid", "gdn_100x60",
                                         "kda_bounded_60x100", "mamba2_60x100",
                                         "gdn_draft", "dense"}),
                         caseName);

class DeferredConversions : public ConformanceTest {};

TEST_P(DeferredConversions, GiveTheRoundedOutputsOfF32) {
  expectRoundedOutputs(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Conformance, DeferredConversions,
                         onEveryBackEnd({"deferred"}), caseName);

} // namespace
