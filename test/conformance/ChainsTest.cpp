//===- ChainsTest.cpp - decay, append and readout are exact ---------------===//
//
// Between two compactions nothing is approximated, whatever the policy. At
// every compaction the oracle goes on from the engine's own state, so that each
// chain over one buffer is measured by itself.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

constexpr double kTolerance = 1e-5; // of |H|_F |q|

class Chains : public ConformanceTest {
protected:
  void expectExact(RequestStyle style) {
    Running run(GetParam());
    DrivenRequest request = run.request(1, std::move(style));
    for (int step = 0; step < steps(run.layers); ++step) {
      std::vector<size_t> compacted;
      for (size_t layer = 0; layer < run.layers.size(); ++layer)
        if (run.compactsNext(request, layer))
          compacted.push_back(layer);
      ASSERT_LE(run.driver.step({&request}).worstError, kTolerance)
          << "token " << step;
      for (size_t layer : compacted)
        run.driver.rebase(request, layer);
    }
  }

private:
  /// Three buffers: none, few and many stored components.
  static int steps(const std::vector<LayerSpec> &layers) {
    int32_t longest = 1;
    for (const LayerSpec &layer : layers)
      longest = std::max(longest, layer.buffer);
    return 3 * longest + 2;
  }
};

void scale(std::vector<float> &values, float factor) {
  for (float &x : values)
    x *= factor;
}

void fill(std::vector<float> &values, float x) {
  std::fill(values.begin(), values.end(), x);
}

RequestStyle adjusted(std::function<void(int64_t, TokenValues &)> adjust) {
  RequestStyle style;
  style.adjust = std::move(adjust);
  return style;
}

TEST_P(Chains, FollowTheRecurrence) { expectExact({}); }

TEST_P(Chains, OfLargeInputs) {
  expectExact(adjusted([](int64_t, TokenValues &token) {
    scale(token.k, 1e8f);
    scale(token.v, 1e12f);
  }));
}

TEST_P(Chains, OfTinyInputs) {
  expectExact(adjusted([](int64_t, TokenValues &token) {
    scale(token.k, 1e-8f);
    scale(token.v, 1e-12f);
  }));
}

TEST_P(Chains, OfInputsThatJumpInScale) {
  expectExact(adjusted([](int64_t position, TokenValues &token) {
    scale(token.v, position % 2 ? 1e10f : 1e-10f);
  }));
}

// Log-decays of about -5 a token; -5 itself where the gate is bounded.
TEST_P(Chains, OfStrongDecays) {
  expectExact(adjusted(
      [](int64_t, TokenValues &token) { fill(token.gate, 37.0f); }));
}

// Now and then a token whose log-decay is below -1e30: all before it is gone.
TEST_P(Chains, OfDecaysThatWipeTheState) {
  expectExact(adjusted([](int64_t position, TokenValues &token) {
    if (position % 5 == 3)
      fill(token.gate, 1e32f);
  }));
}

// Every token wipes; bounded gates decay by their bound.
TEST_P(Chains, OfNothingButWipingDecays) {
  expectExact(adjusted(
      [](int64_t, TokenValues &token) { fill(token.gate, 1e32f); }));
}

TEST_P(Chains, WithoutDecay) {
  expectExact(adjusted(
      [](int64_t, TokenValues &token) { fill(token.gate, -1e32f); }));
}

TEST_P(Chains, OfZeroKeys) {
  expectExact(adjusted([](int64_t position, TokenValues &token) {
    if (position % 3 != 1)
      fill(token.k, 0);
  }));
}

TEST_P(Chains, OfZeroInputs) {
  expectExact(adjusted([](int64_t position, TokenValues &token) {
    if (position < 11 || position % 4 == 0)
      for (auto *values : {&token.q, &token.k, &token.v})
        fill(*values, 0);
  }));
}

// The delta rule writes the same key again and again.
TEST_P(Chains, OfOneKey) {
  std::map<size_t, std::vector<float>> keys; // layers differ in size
  expectExact(adjusted([&](int64_t, TokenValues &token) {
    token.k = keys.try_emplace(token.k.size(), token.k).first->second;
  }));
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Chains,
    onEveryBackEnd({"gdn_64x128", "gdn_128x128", "gdn_100x60", "gdn_negative",
                    "mamba2_80x128", "mamba2_60x100", "kda_64x128",
                    "kda_bounded_64x128", "kda_bounded_60x100", "gdn_a4_b4",
                    "mamba2_a16_b16", "kda_a4_b12", "gdn_a1_b2", "gdn_draft",
                    "gdn_relative", "mamba2_fixed", "kda_energy",
                    "mamba2_budget", "hybrid", "gdn_f16", "mamba2_bf16",
                    "kda_f16", "mamba2_fp8", "kda_fp8"}),
    caseName);

class Norms : public Chains {
protected:
  /// All keys, and all queries, times a factor; elements beyond float32 become
  /// its largest number.
  void expectExactTimes(float factor) {
    for (auto vector : {&TokenValues::k, &TokenValues::q}) {
      SCOPED_TRACE(testing::Message() << (vector == &TokenValues::k ? "keys" : "queries")
                                      << " times " << factor);
      expectExact(adjusted([&](int64_t, TokenValues &token) {
        for (float &x : token.*vector)
          x = std::clamp(x * factor, -FLT_MAX, FLT_MAX);
      }));
    }
  }
};

// Vectors whose squares, or whose lengths, are beyond float32.
TEST_P(Norms, OfTheLargestVectors) {
  for (float factor : {1e18f, 1e19f, 3e19f, 1e30f, 1e38f, 3e38f})
    expectExactTimes(factor);
}

// Vectors whose squares vanish: the epsilon decides, or where it is as small the
// vector itself.
TEST_P(Norms, OfTheSmallestVectors) {
  for (float factor : {1e-10f, 1e-15f, 1e-19f, 1e-23f, 1e-30f})
    expectExactTimes(factor);
}

// A NaN or an infinity is one in the answer, and not a unit vector.
TEST_P(Norms, KeepWhatIsNotFinite) {
  for (float bad : {NAN, INFINITY}) {
    Running run(GetParam(), plainOptions(1), false);
    DrivenRequest request = run.request(
        1, adjusted([&](int64_t, TokenValues &token) { token.q[0] = bad; }));
    run.driver.step({&request});
    const StepResult y = run.driver.step({&request});
    for (const std::vector<float> &of : rowOf(y, 0, run.layers))
      EXPECT_FALSE(std::isfinite(of[0])) << bad;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Norms,
                         onEveryBackEnd({"gdn_64x128", "kda_bounded_60x100",
                                         "norms", "small_norms"}),
                         caseName);

} // namespace
