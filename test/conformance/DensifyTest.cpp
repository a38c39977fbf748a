//===- DensifyTest.cpp - H itself, at any token ---------------------------===//

#include "ConformanceTest.h"

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

class Densify : public ConformanceTest {};

// At eps 0 what densify writes is the exact H, buffered pairs and decays
// included, and looking changes nothing.
TEST_P(Densify, IsExactAndChangesNothing) {
  Running watched(GetParam()), unwatched(GetParam());
  DrivenRequest a = watched.request(4), b = unwatched.request(4);
  for (int step = 0; step < 21; ++step) {
    const auto y = watched.driver.step({&a}).y;
    for (size_t layer = 0; layer < watched.layers.size(); ++layer)
      ASSERT_LE(watched.driver.stateError(a, layer), 1e-5)
          << "token " << step << " layer " << layer;
    ASSERT_EQ(y, unwatched.driver.step({&b}).y) << "token " << step;
  }
}

TEST_P(Densify, OfAFreshSlotIsZero) {
  Running run(GetParam(), optionsFor(2));
  const int32_t slot = run.request(1).slot;
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const std::vector<float> h = run.engine.densify(int32_t(layer), slot);
    EXPECT_EQ(h, std::vector<float>(h.size(), 0.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Densify,
    onEveryBackEnd({"gdn_64x128", "gdn_128x128", "gdn_100x60", "gdn_negative",
                    "mamba2_80x128", "mamba2_60x100", "kda_64x128",
                    "kda_bounded_60x100", "gdn_a4_b4", "mamba2_a16_b16",
                    "kda_a4_b12", "gdn_a1_b2", "gdn_draft", "hybrid",
                    "dense"}),
    caseName);

// Nothing is lost between two compactions under any policy.
class DensifyTruncated : public ConformanceTest {};

TEST_P(DensifyTruncated, IsExactBetweenCompactions) {
  Running run(GetParam());
  DrivenRequest request = run.request(4);
  for (int step = 0; step < 40; ++step) {
    const bool compacts = run.compactsNext(request, 0);
    run.driver.step({&request});
    if (compacts)
      run.driver.rebase(request, 0);
    ASSERT_LE(run.driver.stateError(request, 0), 1e-5) << "token " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, DensifyTruncated,
    onEveryBackEnd({"gdn_relative", "mamba2_relative", "kda_relative",
                    "gdn_fixed", "mamba2_fixed", "kda_fixed", "gdn_energy",
                    "mamba2_energy", "kda_energy", "gdn_budget",
                    "mamba2_budget", "gdn_f16", "mamba2_bf16", "kda_f16", "mamba2_fp8", "kda_fp8"}),
    caseName);

} // namespace
