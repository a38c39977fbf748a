//===- StorageTest.cpp - Rows of 16 and 8 bits, dense states of 16 --------===//
//
// What is read from memory is exact in f32; only writes round. Chains between
// compactions are therefore as exact as with f32 rows, and each compaction adds
// what the format's rounding is worth.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

/// Half a unit in the last place, relative; a whole one where chance decides.
double roundingOf(const LayerSpec &layer) {
  const double half = layer.storage == "f16"    ? 0x1p-11
                      : layer.storage == "bf16" ? 0x1p-8
                                                : 0x1p-4;
  return layer.rounding == "stochastic" ? 2 * half : half;
}

int64_t bytesOf(const LayerSpec &layer) { return layer.storage == "fp8" ? 1 : 2; }

const std::vector<std::string> kHalfGraphs = {
    "gdn_f16",  "gdn_bf16", "mamba2_f16", "mamba2_bf16",
    "kda_f16",  "kda_bf16", "hybrid_f16", "hybrid_bf16"};
const std::vector<std::string> kByteGraphs = {"gdn_fp8", "mamba2_fp8",
                                              "kda_fp8", "hybrid_fp8"};

const std::vector<std::string> kRandomGraphs = {
    "kda_fp8_random", "mamba2_f16_random", "hybrid_random"};

std::vector<std::string> allGraphs() {
  std::vector<std::string> all = kHalfGraphs;
  all.insert(all.end(), {"kda_fp8_random", "mamba2_f16_random"});
  all.insert(all.end(), kByteGraphs.begin(), kByteGraphs.end());
  return all;
}

/// Decodes and measures every layer right after each compaction, the exact
/// state having been the engine's own right before it.
template <typename Check>
void overCompactions(Running &run, DrivenRequest &request, int steps,
                     const Check &check) {
  for (int step = 0; step < steps; ++step) {
    std::vector<size_t> compacted;
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      if (run.compactsNext(request, layer)) {
        compacted.push_back(layer);
        run.driver.rebase(request, layer);
      }
    ASSERT_LE(run.errorBeforeCompactions(run.driver.step({&request}), compacted),
              1e-5)
        << "token " << step;
    for (size_t layer : compacted) {
      check(layer, run.driver.stateError(request, layer));
      run.driver.rebase(request, layer);
    }
  }
}

class NarrowRows : public ConformanceTest {};

// Both sides of up to 16 new components are rounded; those of a layer with
// channel decay all are.
TEST_P(NarrowRows, AreRoundedAtCompactionsAndNowhereElse) {
  Running run(GetParam(), plainOptions(1));
  RequestStyle style;
  style.rank = 6;
  DrivenRequest request = run.request(11, style);
  std::vector<double> worst(run.layers.size());
  overCompactions(run, request, 42, [&](size_t layer, double error) {
    worst[layer] = std::max(worst[layer], error);
  });
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const double rounding = roundingOf(run.layers[layer]);
    EXPECT_LE(worst[layer], 4 * rounding) << "layer " << layer;
    // Rows of more bits would be better than this.
    EXPECT_GE(worst[layer], rounding / 16) << "layer " << layer;
  }
}

TEST_P(NarrowRows, HoldStatesOfAnyScale) {
  for (float scale : {1e-20f, 1e20f}) {
    SCOPED_TRACE(scale);
    Running run(GetParam(), plainOptions(1));
    RequestStyle style;
    style.rank = 6;
    style.adjust = [scale](int64_t, TokenValues &token) {
      for (float &x : token.v)
        x *= scale;
    };
    DrivenRequest request = run.request(12, style);
    overCompactions(run, request, 26, [&](size_t layer, double error) {
      EXPECT_LE(error, 4 * roundingOf(run.layers[layer])) << "layer " << layer;
    });
  }
}

TEST_P(NarrowRows, KeepConsolidatedRunsClose) {
  ss_engine_options options = plainOptions(1);
  options.consolidate_every = 3;
  Running run(GetParam(), options);
  DrivenRequest request = run.request(13);
  for (int step = 0; step < 150; ++step)
    run.driver.step({&request});
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    EXPECT_LE(run.driver.stateError(request, layer),
              12 * roundingOf(run.layers[layer]))
        << "layer " << layer;
    for (int32_t status : run.engine.status(int32_t(layer), request.slot))
      EXPECT_EQ(status & ~SS_STATUS_TIGHTENED, 0) << "layer " << layer;
  }
}

TEST_P(NarrowRows, BecomeNaNWithTheirInputs) {
  RequestStyle style;
  style.adjust = [](int64_t position, TokenValues &token) {
    if (position == 3)
      token.v[0] = std::numeric_limits<float>::quiet_NaN();
  };
  Running run(GetParam(), plainOptions(1), /*withOracle=*/false);
  DrivenRequest request = run.request(14, style);
  for (int step = 0; step < 30; ++step)
    run.driver.step({&request});
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    EXPECT_TRUE(std::isnan(run.engine.densify(int32_t(layer), request.slot)[0]));
    EXPECT_NE(run.engine.status(int32_t(layer), request.slot)[0] &
                  SS_STATUS_NOT_FINITE,
              0);
  }
}

// `live_bytes` is the formula: elements of 2 bytes or 1, buffer and weights of
// 4; dense where that is smaller and there is such a form.
TEST_P(NarrowRows, AreCountedInTheirBytes) {
  Running run(GetParam(), plainOptions(1));
  DrivenRequest request = run.request(15);
  for (int step = 0; step < 20; ++step)
    run.driver.step({&request});
  int64_t expected = 0;
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const LayerSpec &spec = run.layers[layer];
    const int64_t width = spec.dk + spec.dv;
    const int64_t dense = spec.storage == "fp8"
                              ? std::numeric_limits<int64_t>::max()
                              : int64_t(2) * spec.dk * spec.dv;
    for (int32_t rank : run.engine.ranks(int32_t(layer), request.slot))
      expected += std::min(rank * (bytesOf(spec) * width + 4) +
                               spec.buffer * width * 4,
                           dense);
  }
  EXPECT_EQ(run.engine.statistics().live_bytes, expected);
}

// A snapshot has every bit: what follows is the same.
TEST_P(NarrowRows, AreHandedOver) {
  ss_engine_options options = optionsFor(2);
  Running run(GetParam(), options, /*withOracle=*/false);
  DrivenRequest first = run.request(16);
  for (int step = 0; step < 45; ++step)
    run.driver.step({&first});
  const std::vector<std::byte> snapshot = run.engine.snapshot(first.slot);
  DrivenRequest second = run.request(16);
  run.engine.restore(second.slot, snapshot);
  second.position = first.position;
  EXPECT_EQ(run.engine.snapshot(second.slot), snapshot);
  for (int step = 0; step < 20; ++step) {
    const StepResult y = run.driver.step({&first, &second});
    ASSERT_EQ(rowOf(y, 0, run.layers), rowOf(y, 1, run.layers))
        << "token " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowRows,
                         onEveryBackEnd(allGraphs()), caseName);

class NarrowBlocks : public ConformanceTest {};

// What takes part in a compaction is rounded when it is written and at no other
// time, whatever the layer does with decays: to nearest by 0.41 of half a unit
// in the last place, the root mean square over numbers of all fractions, and so
// on each of two sides.
TEST_P(NarrowBlocks, AreRoundedOnce) {
  Running run(GetParam(), plainOptions(1));
  RequestStyle style;
  style.rank = 6; // all components are active ones
  DrivenRequest request = run.request(19, style);
  double squares = 0;
  int count = 0;
  overCompactions(run, request, 320, [&](size_t, double error) {
    squares += error * error;
    ++count;
  });
  ASSERT_GE(count, 30);
  const double once = 0.41 * std::sqrt(2.0) * roundingOf(run.layers[0]);
  // Of a layer's heads the worst is measured.
  EXPECT_LE(std::sqrt(squares / count), 1.1 * once);
  EXPECT_GE(std::sqrt(squares / count), 0.8 * once);
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowBlocks,
                         onEveryBackEnd({"kda_f16", "kda_bf16", "kda_fp8",
                                         "gdn_fp8"}),
                         caseName);

class NarrowFallback : public ConformanceTest {};

// States of full rank go dense in the layer's storage; each fold rounds.
TEST_P(NarrowFallback, KeepsRunsClose) {
  Running run(GetParam());
  RequestStyle style;
  style.gateMean = -4; // little decay; mamba2 writes with it too
  DrivenRequest request = run.request(7, style);
  for (int step = 0; step < 150; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError,
              16 * roundingOf(run.layers[0]))
        << step;
  EXPECT_GT(run.engine.statistics().went_dense, 0);
  EXPECT_GT(run.engine.statistics().folds, 0);
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    EXPECT_GE(run.driver.stateError(request, layer),
              roundingOf(run.layers[layer]) / 16);
}

// f16 has not the exponents for such a matrix; factors have them in weights.
TEST_P(NarrowFallback, IsNotTakenBeyondTheRangeOfTheType) {
  for (float scale : {1e-12f, 1e12f}) {
    SCOPED_TRACE(scale);
    // What may not go dense stays below its bound of rows by consolidation.
    ss_engine_options options = optionsFor(1);
    options.consolidate_every = 4;
    Running run(GetParam(), options);
    RequestStyle style;
    style.gateMean = -4;
    style.adjust = [scale](int64_t, TokenValues &token) {
      for (float &x : token.v)
        x *= scale;
    };
    DrivenRequest request = run.request(8, style);
    for (int step = 0; step < 120; ++step)
      ASSERT_LE(run.driver.step({&request}).worstError,
                16 * roundingOf(run.layers[0]))
          << step;
    const bool hasRange = run.layers[0].storage == "bf16";
    EXPECT_EQ(run.engine.statistics().went_dense > 0, hasRange);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowFallback,
                         onEveryBackEnd(kHalfGraphs), caseName);

class NarrowFolds : public ConformanceTest {};

// A dense state whose next folds are beyond f16 at either end of its exponents
// is found in factors again, and is as close to the exact one as before.
TEST_P(NarrowFolds, LeaveTheRangeOfTheTypeInFactors) {
  if (std::string(GetParam().backEnd->name()) == "cuda")
    GTEST_SKIP() << "cuda: folds stay in place on the device";
  for (const float scale : {1e-8f, 1e8f}) {
    SCOPED_TRACE(scale);
    ss_engine_options options = optionsFor(1);
    options.consolidate_every = 4;
    Running run(GetParam(), options);
    RequestStyle style;
    style.adjust = [&](int64_t position, TokenValues &token) {
      const bool isLate = position >= 100;
      for (float &x : token.v)
        x *= isLate ? scale : 1;
      // Little decay at first, much when small numbers have to be all of it.
      for (float &x : token.gate)
        x += isLate && scale < 1 ? 1 : -4;
    };
    DrivenRequest request = run.request(9, style);
    int64_t wentDense = 0;
    for (int step = 0; step < 180; ++step) {
      ASSERT_LE(run.driver.step({&request}).worstError,
                16 * roundingOf(run.layers[0]))
          << step;
      if (step == 99)
        wentDense = run.engine.statistics().went_dense;
    }
    EXPECT_GT(wentDense, 0) << "a test of nothing";
    if (run.layers[0].storage == "f16")
      EXPECT_GT(run.engine.statistics().went_factored, 0);
  }
}

// Where such a state stays dense, as on a GPU, that is said: in the status of the
// state, in its count, and nowhere before.
TEST_P(NarrowFolds, SayWhereTheyStayOutOfTheRange) {
  const bool stays = std::string(GetParam().backEnd->name()) == "cuda";
  for (const float scale : {1e-5f, 1e9f}) {
    SCOPED_TRACE(scale);
    Running run(GetParam(), optionsFor(1), false);
    const bool isF16 = run.layers[0].storage == "f16";
    RequestStyle style;
    style.adjust = [&](int64_t position, TokenValues &token) {
      const bool isLate = position >= 100;
      for (float &x : token.v)
        x *= isLate ? scale : 1;
      for (float &x : token.gate)
        x += isLate && scale < 1 ? 1 : -4;
    };
    DrivenRequest request = run.request(9, style);
    auto statusOf = [&] {
      int32_t all = 0;
      for (int32_t status : run.engine.status(0, request.slot))
        all |= status;
      return all & ~SS_STATUS_TIGHTENED;
    };
    for (int step = 0; step < 100; ++step)
      run.driver.step({&request});
    EXPECT_GT(run.engine.statistics().went_dense, 0) << "a test of nothing";
    EXPECT_EQ(statusOf(), 0);
    EXPECT_EQ(run.engine.statistics().out_of_range, 0);
    for (int step = 0; step < 60; ++step)
      run.driver.step({&request});
    const int64_t counted = run.engine.statistics().out_of_range;
    if (!stays || !isF16) {
      EXPECT_EQ(statusOf(), 0);
      EXPECT_EQ(counted, 0);
      continue;
    }
    EXPECT_EQ(statusOf(), SS_STATUS_OUT_OF_RANGE |
                              (scale > 1 ? SS_STATUS_NOT_FINITE : 0));
    EXPECT_GT(counted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowFolds,
                         onEveryBackEnd({"gdn_f16", "mamba2_f16", "kda_f16",
                                         "mamba2_bf16", "mamba2_f16_random"}),
                         caseName);

class ByteRows : public ConformanceTest {};

// A matrix has no unit length: states of full rank keep their factors.
TEST_P(ByteRows, NeverGoDense) {
  Running run(GetParam());
  RequestStyle style;
  style.gateMean = -4;
  DrivenRequest request = run.request(7, style);
  for (int step = 0; step < 150; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError, 0.5) << step;
  EXPECT_EQ(run.engine.statistics().went_dense, 0);
  int32_t largest = 0;
  for (size_t layer = 0; layer < run.layers.size(); ++layer)
    for (int32_t rank : run.engine.ranks(int32_t(layer), request.slot)) {
      EXPECT_GE(rank, 0);
      largest = std::max(largest, rank);
    }
  EXPECT_GT(largest, 30);
}

INSTANTIATE_TEST_SUITE_P(Conformance, ByteRows, onEveryBackEnd(kByteGraphs),
                         caseName);

class RandomRows : public ConformanceTest {
protected:
  using Outputs = std::vector<std::vector<std::vector<float>>>;

  /// One request in the last slot of a few, whatever the others hold.
  static Outputs decoded(uint64_t key, int32_t slots, int steps) {
    Running run(GetParam(), optionsFor(slots), /*withOracle=*/false);
    std::vector<DrivenRequest> others;
    for (int32_t i = 1; i < slots; ++i)
      others.push_back(run.request(uint64_t(100 + i)));
    DrivenRequest request = run.request(5);
    run.engine.setRoundingKey(request.slot, key);
    Outputs outputs;
    for (int step = 0; step < steps; ++step)
      outputs.push_back(rowOf(run.driver.step({&request}), 0, run.layers));
    return outputs;
  }
};

TEST_P(RandomRows, AreTheRequestsOwn) {
  const Outputs outputs = decoded(7, 1, 40);
  EXPECT_EQ(outputs, decoded(7, 1, 40));
  EXPECT_EQ(outputs, decoded(7, 3, 40));
  EXPECT_NE(outputs, decoded(8, 1, 40));
}

// A snapshot carries the key: what follows is what would have followed.
TEST_P(RandomRows, GoOnInASnapshot) {
  Running run(GetParam(), optionsFor(2), /*withOracle=*/false);
  DrivenRequest first = run.request(16);
  run.engine.setRoundingKey(first.slot, 0x123456789abcdef0);
  for (int step = 0; step < 21; ++step)
    run.driver.step({&first});
  DrivenRequest second = run.request(16);
  run.engine.restore(second.slot, run.engine.snapshot(first.slot));
  second.position = first.position;
  for (int step = 0; step < 30; ++step) {
    const StepResult y = run.driver.step({&first, &second});
    ASSERT_EQ(rowOf(y, 0, run.layers), rowOf(y, 1, run.layers))
        << "token " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, RandomRows, onEveryBackEnd(kRandomGraphs),
                         caseName);

class NarrowDenseForm : public ConformanceTest {};

// Rounded at every token.
TEST_P(NarrowDenseForm, FollowsTheRecurrence) {
  Running run(GetParam());
  DrivenRequest request = run.request(4);
  for (int step = 0; step < 100; ++step)
    ASSERT_LE(run.driver.step({&request}).worstError,
              12 * roundingOf(run.layers[0]))
        << step;
  for (size_t layer = 0; layer < run.layers.size(); ++layer) {
    const double rounding = roundingOf(run.layers[layer]);
    EXPECT_LE(run.driver.stateError(request, layer), 12 * rounding) << layer;
    EXPECT_GE(run.driver.stateError(request, layer), rounding / 16) << layer;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, NarrowDenseForm,
                         onEveryBackEnd({"dense_f16", "dense_bf16"}), caseName);

} // namespace
