//===- CompactionTest.cpp - The local SVD of one state --------------------===//
//
// Single compactions on tables that the tests fill: what is there before and
// after is compared with the matrix and with the float64 compaction.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"
#include "RandomState.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

constexpr double kTolerance = 1e-5; // of |H|_F, and of orthogonality

/// A launcher and tables of a graph's first layer.
struct KernelTest {
  explicit KernelTest(const Case &parameter, int32_t slots = 3)
      : layer(parameter.graph->layers[0]),
        launcher(parameter.backEnd->model(*parameter.graph), 0),
        memory(layer, slots), state(int64_t(slots) * layer.heads - 1) {}

  void compact(float policyValue = 0, int32_t maxRank = INT32_MAX) {
    launcher.compact(memory, {int32_t(state)}, {policyValue, maxRank, 0});
    memory.count[size_t(state / layer.heads)] = 0;
  }
  int32_t rank() const { return memory.rank[size_t(state)]; }
  int32_t status() const { return memory.status[size_t(state)]; }

  /// Compacts at eps 0: H stays and what is new is orthonormal.
  void expectExactCompaction() {
    const std::vector<double> before = memory.matrix(state);
    const auto old = rowBytes();
    compact();
    const std::vector<double> after = memory.matrix(state);
    EXPECT_LE(distance(before, after), kTolerance * norm(before));
    EXPECT_EQ(status(), 0);
    EXPECT_LE(rank(), layer.rank());
    for (float weight : sortedWeights(memory, state))
      EXPECT_GT(weight, 0);
    // Rows of a layer with channel decay all change; only where there was no
    // frozen part are they all new.
    const bool mixed =
        layer.channelDecay() && int64_t(old.size()) > layer.active;
    if (!mixed)
      EXPECT_LE(orthogonality(memory, state,
                              [&](int64_t i) {
                                return old.count(bytesOf(i)) == 0;
                              }),
                kTolerance);
  }

  const LayerSpec layer;
  KernelLauncher launcher;
  LayerMemory memory;
  int64_t state; ///< the last head of the last slot

private:
  std::vector<float> bytesOf(int64_t i) {
    const float *row = memory.row(state, i);
    return {row, row + layer.dk + layer.dv};
  }
  std::set<std::vector<float>> rowBytes() {
    std::set<std::vector<float>> rows;
    for (int64_t i = 0; i < rank(); ++i)
      rows.insert(bytesOf(i));
    return rows;
  }
};

const std::vector<std::string> kExactGraphs = {
    "gdn_64x128", "gdn_128x128",  "gdn_100x60",    "mamba2_80x128",
    "mamba2_a16_b16",
    "kda_64x128", "kda_a4_b12",   "gdn_a1_b2",     "gdn_draft",
    "gdn_a4_b4",  "mamba2_60x100"};

class Compaction : public ConformanceTest {};

numerics::Core coreOf(const LayerSpec &layer) {
  return layer.core == "qr" ? numerics::Core::qr : numerics::Core::svd;
}

double halving(int64_t i) { return std::ldexp(3.0, int(-i)); }
double slowly(int64_t i) { return 2 * std::pow(0.9, double(i)); }

TEST_P(Compaction, IsExactAtZeroForAnyRankAndCount) {
  KernelTest sizes(GetParam());
  const LayerSpec &layer = sizes.layer;
  for (int64_t rank : {0, 1, layer.active - 1, layer.active, layer.active + 1,
                       layer.rank() - layer.buffer - layer.draft})
    for (int64_t count : {0, 1, layer.buffer / 2, layer.buffer}) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", " +
                   std::to_string(count) + " pairs");
      KernelTest test(GetParam());
      StateFiller filler(test.memory, test.state, uint64_t(rank * 100 + count));
      rank = std::min<int64_t>(rank, std::min(layer.dv, layer.dk));
      filler.addOrthonormal(rank, slowly);
      filler.setRandomPairs(count);
      test.expectExactCompaction();
    }
}

// States that were compacted before, up to the rows there are room for.
TEST_P(Compaction, StaysExactWhenRepeated) {
  KernelTest test(GetParam());
  StateFiller filler(test.memory, test.state, 5);
  for (int round = 0;
       round < 4 && test.rank() + test.layer.buffer <= test.layer.rank();
       ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    filler.setRandomPairs(test.layer.buffer);
    test.expectExactCompaction();
  }
}

TEST_P(Compaction, CountsThePairAhead) {
  KernelTest test(GetParam()), ahead(GetParam());
  for (KernelTest *each : {&test, &ahead}) {
    StateFiller filler(each->memory, each->state, 6);
    filler.addOrthonormal(test.layer.active, halving);
    filler.setRandomPairs(test.layer.buffer);
  }
  const size_t slot = size_t(test.state / test.layer.heads);
  --ahead.memory.count[slot];
  ahead.launcher.compact(ahead.memory, {int32_t(ahead.state)},
                         {0, INT32_MAX, 1});
  EXPECT_EQ(ahead.memory.count[slot], test.layer.buffer - 1)
      << "a compaction does not change the count";
  test.compact();
  ahead.memory.count[slot] = 0;
  EXPECT_EQ(ahead.memory.bytes(), test.memory.bytes());
}

TEST_P(Compaction, TouchesNoOtherState) {
  KernelTest test(GetParam());
  for (int64_t state = 0; state < test.memory.states(); ++state) {
    StateFiller filler(test.memory, state, uint64_t(state));
    filler.addOrthonormal(test.layer.active + 2, slowly);
    filler.setRandomPairs(test.layer.buffer);
  }
  const int64_t chosen = test.layer.heads; // the first head of slot 1
  LayerMemory before = test.memory;
  test.launcher.compact(test.memory, {int32_t(chosen)}, {});
  EXPECT_NE(test.memory.bytes(), before.bytes());
  // With the chosen state's parts put back, all is as before.
  const int64_t floats = test.layer.rank() * (test.layer.dk + test.layer.dv);
  std::copy_n(before.row(chosen, 0), floats, test.memory.row(chosen, 0));
  std::copy_n(&before.weight(chosen, 0), test.layer.rank(),
              &test.memory.weight(chosen, 0));
  test.memory.rank[size_t(chosen)] = before.rank[size_t(chosen)];
  EXPECT_EQ(test.memory.bytes(), before.bytes());
}

INSTANTIATE_TEST_SUITE_P(Conformance, Compaction, onEveryBackEnd(withBothCores(kExactGraphs)),
                         caseName);

//===----------------------------------------------------------------------===//
// Policies
//===----------------------------------------------------------------------===//

class Truncation : public ConformanceTest {
protected:
  static numerics::Policy policyOf(const LayerSpec &layer) {
    if (layer.policyKind == "relative")
      return {numerics::Policy::relative, layer.policyValue};
    if (layer.policyKind == "energy")
      return {numerics::Policy::energy, layer.policyValue};
    // A budget is a largest rank, as a fixed rank is.
    return {numerics::Policy::fixed, double(maxRankOf(layer))};
  }
  static int32_t maxRankOf(const LayerSpec &layer) {
    if (layer.policyKind == "fixed")
      return int32_t(layer.policyValue);
    const double row = 4.0 * (layer.dv + layer.dk);
    if (layer.policyKind == "budget")
      return int32_t((layer.policyValue - layer.buffer * row) / (row + 4));
    return INT32_MAX;
  }
};

// Weights, rank and error are those of the float64 compaction.
TEST_P(Truncation, KeepsWhatThePolicySays) {
  for (int64_t rank : {0, 5, 8, 14}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    KernelTest test(GetParam());
    const LayerSpec &layer = test.layer;
    if (layer.policyKind == "fixed")
      rank = std::min<int64_t>(rank, layer.active);
    StateFiller filler(test.memory, test.state, uint64_t(rank));
    filler.addOrthonormal(rank, slowly);
    filler.setRandomPairs(layer.buffer, 0.7);
    const std::vector<double> before = test.memory.matrix(test.state);
    numerics::FactoredState exact = factoredOf(test.memory, test.state);
    const numerics::Compaction expected =
        exact.compact(policyOf(layer), coreOf(layer));
    test.compact(float(layer.policyValue), maxRankOf(layer));

    const std::vector<float> weights = sortedWeights(test.memory, test.state);
    ASSERT_EQ(test.rank(), exact.rank());
    for (int i = 0; i < exact.rank(); ++i)
      EXPECT_NEAR(weights[size_t(i)], exact.s[i], kTolerance * exact.s[0]);
    const double error = distance(before, test.memory.matrix(test.state));
    EXPECT_LE(error, expected.bound() + kTolerance * norm(before));
    const bool tightened = layer.policyKind == "budget" &&
                           exact.rank() == maxRankOf(layer) &&
                           expected.droppedWeights.size() > 0;
    EXPECT_EQ(test.status(), tightened ? SS_STATUS_TIGHTENED : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Truncation,
    onEveryBackEnd(withBothCores(
        {"gdn_relative", "mamba2_relative", "kda_relative", "gdn_fixed",
         "mamba2_fixed", "kda_fixed", "gdn_energy", "mamba2_energy",
         "kda_energy", "gdn_budget", "mamba2_budget"})),
    caseName);

class MaxRank : public ConformanceTest {};

TEST_P(MaxRank, DropsTheSmallestAndSaysSo) {
  for (int32_t maxRank : {1, 3, 10}) {
    SCOPED_TRACE("at most " + std::to_string(maxRank));
    KernelTest test(GetParam());
    StateFiller filler(test.memory, test.state, 3);
    filler.addOrthonormal(test.layer.active + 3, slowly);
    filler.setRandomPairs(test.layer.buffer);
    const std::vector<double> before = test.memory.matrix(test.state);
    numerics::FactoredState exact = factoredOf(test.memory, test.state);
    const numerics::Compaction expected =
        exact.compact({numerics::Policy::fixed, double(maxRank)},
                      coreOf(test.layer));
    test.compact(0, maxRank);
    const bool drops = expected.droppedWeights.size() > 0;
    EXPECT_EQ(test.rank(), exact.rank());
    EXPECT_EQ(test.status(), drops ? SS_STATUS_TIGHTENED : 0);
    EXPECT_LE(distance(before, test.memory.matrix(test.state)),
              expected.bound() + kTolerance * norm(before));
  }
}

// A block that is too small for what there is and what is new.
TEST_P(MaxRank, IsWhatTheBlockOfTheStateHolds) {
  KernelTest test(GetParam(), 1);
  const int32_t capacity = test.layer.active + 3;
  StateFiller filler(test.memory, test.state, 3);
  filler.addOrthonormal(capacity, slowly);
  filler.setRandomPairs(test.layer.buffer);
  const std::vector<double> before = test.memory.matrix(test.state);
  numerics::FactoredState exact = factoredOf(test.memory, test.state);
  const numerics::Compaction expected =
      exact.compact({numerics::Policy::fixed, double(capacity)});
  // What lies behind the block belongs to others.
  const int64_t behind = capacity * (test.layer.dk + test.layer.dv);
  float *first = test.memory.row(test.state, 0);
  float *last = test.memory.row(test.state, test.layer.rank() - 1);
  std::fill(first + behind, last, 77.0f);
  float *firstWeight = &test.memory.weight(test.state, 0);
  std::fill(firstWeight + capacity, firstWeight + test.layer.rank(), 77.0f);
  std::vector<int32_t> capacities(size_t(test.memory.states()), 1);
  capacities[size_t(test.state)] = capacity;
  test.launcher.compact(test.memory, {int32_t(test.state)},
                        {0, INT32_MAX, 0, capacities});
  test.memory.count[size_t(test.state / test.layer.heads)] = 0;
  EXPECT_EQ(test.rank(), exact.rank());
  EXPECT_EQ(test.rank(), capacity);
  EXPECT_EQ(test.status(), SS_STATUS_TIGHTENED);
  EXPECT_LE(distance(before, test.memory.matrix(test.state)),
            expected.bound() + kTolerance * norm(before));
  EXPECT_TRUE(std::all_of(first + behind, last,
                          [](float x) { return x == 77.0f; }));
  EXPECT_TRUE(std::all_of(firstWeight + capacity,
                          firstWeight + test.layer.rank(),
                          [](float x) { return x == 77.0f; }));
}

// Weights that are equal to the last bit: still no more than max_rank.
TEST_P(MaxRank, HoldsAmongEqualWeights) {
  KernelTest test(GetParam());
  StateFiller filler(test.memory, test.state, 4);
  const int32_t rank = test.layer.active + 6;
  filler.addOrthonormal(rank, [](int64_t) { return 1.0; });
  const int32_t maxRank = test.layer.active + 2;
  test.compact(0, maxRank);
  EXPECT_LE(test.rank(), maxRank);
  EXPECT_GE(test.rank(), 1);
  EXPECT_EQ(test.status(), SS_STATUS_TIGHTENED);
}

TEST_P(MaxRank, ThatIsNotReachedSaysNothing) {
  KernelTest test(GetParam());
  StateFiller filler(test.memory, test.state, 3);
  filler.setRandomPairs(test.layer.buffer);
  test.compact(0, test.layer.buffer);
  EXPECT_EQ(test.rank(), test.layer.buffer);
  EXPECT_EQ(test.status(), 0);
}

INSTANTIATE_TEST_SUITE_P(Conformance, MaxRank, onEveryBackEnd(withBothCores(kExactGraphs)),
                         caseName);

class FixedRank : public ConformanceTest {};

// A state that had no memory for R rows keeps what its block holds, and says so.
TEST_P(FixedRank, StaysInABlockThatIsTooSmall) {
  KernelTest test(GetParam(), 1);
  const int32_t capacity = test.layer.active / 2;
  StateFiller filler(test.memory, test.state, 3);
  filler.addOrthonormal(capacity - 1, slowly);
  filler.setRandomPairs(test.layer.buffer);
  const std::vector<double> before = test.memory.matrix(test.state);
  numerics::FactoredState exact = factoredOf(test.memory, test.state);
  const numerics::Compaction expected =
      exact.compact({numerics::Policy::fixed, double(capacity)},
                    coreOf(test.layer));
  const int64_t width = test.layer.dk + test.layer.dv;
  float *first = test.memory.row(test.state, 0);
  std::fill(first + capacity * width, first + test.layer.rank() * width, 77.0f);
  float *weights = &test.memory.weight(test.state, 0);
  std::fill(weights + capacity, weights + test.layer.rank(), 77.0f);
  std::vector<int32_t> capacities(size_t(test.memory.states()), capacity);
  test.launcher.compact(test.memory, {int32_t(test.state)},
                        {0, test.layer.active, 0, capacities});
  test.memory.count[0] = 0;
  EXPECT_EQ(test.rank(), capacity);
  EXPECT_EQ(test.status(), SS_STATUS_TIGHTENED);
  EXPECT_LE(distance(before, test.memory.matrix(test.state)),
            expected.bound() + kTolerance * norm(before));
  auto isUntouched = [](float x) { return x == 77.0f; };
  EXPECT_TRUE(std::all_of(first + capacity * width,
                          first + test.layer.rank() * width, isUntouched));
  EXPECT_TRUE(std::all_of(weights + capacity, weights + test.layer.rank(),
                          isUntouched));
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, FixedRank,
    onEveryBackEnd(withBothCores({"gdn_fixed", "mamba2_fixed", "kda_fixed"})),
    caseName);

//===----------------------------------------------------------------------===//
// The paper's example
//===----------------------------------------------------------------------===//

class WorkedExample : public ConformanceTest {};

// Figure 6 of the paper; numbers as they are printed there.
TEST_P(WorkedExample, GivesTheWeightsOfThePaper) {
  KernelTest test(GetParam(), 1);
  const double decay = 0.8;
  LayerMemory &memory = test.memory;
  memory.addComponent(0, 5.76 / decay, {.4, .2, .8, .4}, {.2, .4, .4, .8});
  memory.addComponent(0, 1.41 / decay, {.5, .5, .5, .5}, {.5, -.5, .5, -.5});
  memory.addComponent(0, .79 / decay, {.5, -.5, .5, -.5}, {.5, .5, -.5, -.5});
  memory.setPair(0, 0, {.74, .52, 1.48, 1.04}, {.52, 1.04, .74, 1.48}, 0);
  memory.setPair(0, 1, {1.68, .64, -.64, -.72}, {.48, -.04, .76, -.48},
                 std::log(decay));
  memory.count[0] = 2;
  test.compact(0.1f);

  const std::vector<float> weights = sortedWeights(memory, 0);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_NEAR(weights[0], 8.99, 5e-3);
  EXPECT_NEAR(weights[1], 2.08, 5e-3);
  EXPECT_NEAR(weights[2], 1.41, 5e-3);
  // Components of the new active part, by weight.
  for (int64_t i = 0; i < 3; ++i) {
    const float *v = memory.row(0, i), *u = v + 4;
    if (memory.weight(0, i) > 8) {
      EXPECT_NEAR(std::abs(u[0]), .22, 5e-3);
      const double expected[] = {.39, .22, .78, .44};
      for (int c = 0; c < 4; ++c)
        EXPECT_NEAR(std::abs(v[c]), expected[c], 5e-3) << c;
    } else if (memory.weight(0, i) > 2) {
      EXPECT_NEAR(std::abs(u[0]), .47, 5e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, WorkedExample,
                         onEveryBackEnd({"worked_example"}), caseName);

} // namespace
