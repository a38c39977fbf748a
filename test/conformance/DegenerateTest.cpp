//===- DegenerateTest.cpp - Inputs that break careless kernels ------------===//
//
// Zero, repeated, nearly parallel, tiny and huge vectors give finite and
// orthonormal results; a NaN stays in its own state.
//
//===----------------------------------------------------------------------===//

#include "ConformanceTest.h"
#include "RandomState.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

using Doubles = StateFiller::Doubles;

constexpr double kTolerance = 1e-5;

/// What a matrix of this size may be off by; float32 has nothing below.
double allowance(double size) {
  return std::max(kTolerance * size, double(std::numeric_limits<float>::min()));
}

/// Fills a state with something difficult.
struct Difficulty {
  const char *name;
  void (*fill)(StateFiller &);
};

double one(int64_t) { return 1; }

/// Pairs around one key and one update, at a relative distance.
void fillNearlyParallel(StateFiller &f, double relativeDistance) {
  const Doubles key = f.unit(f.layer.dk), update = f.unit(f.layer.dv);
  auto near = [&](const Doubles &x) {
    Doubles result = f.unit(int64_t(x.size()), relativeDistance);
    for (size_t i = 0; i < x.size(); ++i)
      result[i] += x[i];
    return result;
  };
  f.setPairs(
      f.layer.buffer, [&](int64_t) { return near(key); },
      [&](int64_t) { return near(update); });
}

/// Pairs along the components that are there.
void fillParallelToComponents(StateFiller &f) {
  f.addOrthonormal(f.layer.active, [](int64_t i) { return 1.0 + double(i); });
  f.setPairs(
      f.layer.buffer,
      [&](int64_t j) {
        const float *row = f.memory.row(f.state, j % f.layer.active);
        return Doubles(row, row + f.layer.dk);
      },
      [&](int64_t j) {
        const float *row =
            f.memory.row(f.state, j % f.layer.active) + f.layer.dk;
        return Doubles(row, row + f.layer.dv);
      });
}

void fillScaled(StateFiller &f, double componentScale, double updateScale) {
  f.addOrthonormal(f.layer.active + 2, [=](int64_t i) {
    return componentScale * std::pow(0.8, double(i));
  });
  f.setRandomPairs(f.layer.buffer, updateScale);
}

const Difficulty kDifficulties[] = {
    {"nothing", [](StateFiller &) {}},
    {"zero updates",
     [](StateFiller &f) {
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return f.unit(f.layer.dk); },
           [&](int64_t) { return Doubles(size_t(f.layer.dv)); });
     }},
    {"zero keys",
     [](StateFiller &f) {
       f.setPairs(
           f.layer.buffer,
           [&](int64_t) { return Doubles(size_t(f.layer.dk)); },
           [&](int64_t) { return f.unit(f.layer.dv); });
     }},
    {"some zeros beside components",
     [](StateFiller &f) {
       f.addOrthonormal(f.layer.active, one);
       f.setPairs(
           f.layer.buffer,
           [&](int64_t j) { return f.unit(f.layer.dk, j % 2 ? 0 : 1); },
           [&](int64_t j) { return f.unit(f.layer.dv, j % 3 ? 1 : 0); });
     }},
    {"one pair again and again",
     [](StateFiller &f) {
       const Doubles key = f.unit(f.layer.dk), update = f.unit(f.layer.dv);
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return key; },
           [&](int64_t) { return update; });
     }},
    {"one key, many updates",
     [](StateFiller &f) {
       const Doubles key = f.unit(f.layer.dk);
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return key; },
           [&](int64_t) { return f.unit(f.layer.dv); });
     }},
    {"pairs along components", fillParallelToComponents},
    {"condition 1e2", [](StateFiller &f) { fillNearlyParallel(f, 1e-2); }},
    {"condition 1e4", [](StateFiller &f) { fillNearlyParallel(f, 1e-4); }},
    {"condition 1e6", [](StateFiller &f) { fillNearlyParallel(f, 1e-6); }},
    {"repeated weights",
     [](StateFiller &f) { f.addOrthonormal(f.layer.active + 4, one); }},
    {"repeated weights and pairs",
     [](StateFiller &f) {
       f.addOrthonormal(f.layer.active + 4, one);
       f.setRandomPairs(f.layer.buffer);
     }},
    {"tiny everything", [](StateFiller &f) { fillScaled(f, 1e-30, 1e-30); }},
    {"huge everything", [](StateFiller &f) { fillScaled(f, 1e30, 1e30); }},
    {"huge components, tiny pairs",
     [](StateFiller &f) { fillScaled(f, 1e30, 1e-30); }},
    {"tiny components, huge pairs",
     [](StateFiller &f) { fillScaled(f, 1e-30, 1e30); }},
    {"pairs that range over 1e20",
     [](StateFiller &f) {
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return f.unit(f.layer.dk); },
           [&](int64_t j) {
             return f.unit(f.layer.dv, j % 2 ? 1e10 : 1e-10);
           });
     }},
    {"one element each",
     [](StateFiller &f) {
       f.setPairs(
           f.layer.buffer,
           [&](int64_t j) {
             Doubles key(size_t(f.layer.dk));
             key[size_t(j % f.layer.dk)] = 1;
             return key;
           },
           [&](int64_t j) {
             Doubles update(size_t(f.layer.dv));
             update[size_t(j * 5 % f.layer.dv)] = 2;
             return update;
           });
     }},
    {"strong decays",
     [](StateFiller &f) {
       f.addOrthonormal(f.layer.active + 1, one);
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return f.unit(f.layer.dk); },
           [&](int64_t) { return f.unit(f.layer.dv); }, -5);
     }},
    {"components that are gone",
     [](StateFiller &f) {
       f.addOrthonormal(f.layer.active + 1, one);
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return f.unit(f.layer.dk); },
           [&](int64_t) { return f.unit(f.layer.dv); }, -104);
     }},
    {"nothing but components that are gone",
     [](StateFiller &f) {
       f.addOrthonormal(f.layer.active + 1, one);
       f.setPairs(
           f.layer.buffer, [&](int64_t) { return f.unit(f.layer.dk); },
           [&](int64_t) { return Doubles(size_t(f.layer.dv)); }, -104);
     }},
};

class Degenerate : public ConformanceTest {
protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped())
      return;
    layer = GetParam().graph->layers[0];
    launcher = std::make_unique<KernelLauncher>(
        GetParam().backEnd->model(*GetParam().graph), 0);
  }

  /// The last head of the last of two slots.
  int64_t chosen() const { return 2 * layer.heads - 1; }
  void compact(LayerMemory &memory, int32_t maxRank = INT32_MAX) const {
    launcher->compact(memory, {int32_t(chosen())}, {0, maxRank, 0});
    memory.count[1] = 0;
  }

  LayerSpec layer;
  std::unique_ptr<KernelLauncher> launcher;
};

TEST_P(Degenerate, CompactionsAreFiniteExactAndOrthonormal) {
  for (const Difficulty &difficulty : kDifficulties) {
    SCOPED_TRACE(difficulty.name);
    LayerMemory memory(layer, 2);
    StateFiller filler(memory, chosen(), 11);
    difficulty.fill(filler);
    const int32_t rank = memory.rank[size_t(chosen())];
    const std::vector<double> before = memory.matrix(chosen());
    compact(memory);
    const std::vector<double> after = memory.matrix(chosen());
    EXPECT_LE(distance(before, after), allowance(norm(before)));
    EXPECT_EQ(memory.status[size_t(chosen())], 0);
    if (rank <= layer.active)
      EXPECT_LE(orthogonality(memory, chosen(), [](int64_t) { return true; }),
                kTolerance);
    // What came out can be compacted again.
    compact(memory);
    EXPECT_LE(distance(before, memory.matrix(chosen())),
              2 * allowance(norm(before)));
  }
}

TEST_P(Degenerate, DensifyWritesTheMatrix) {
  for (const Difficulty &difficulty : kDifficulties) {
    SCOPED_TRACE(difficulty.name);
    LayerMemory memory(layer, 2);
    StateFiller filler(memory, chosen(), 12);
    difficulty.fill(filler);
    const std::vector<uint8_t> bytes = memory.bytes();
    const std::vector<float> h =
        launcher->densify(memory, int32_t(chosen()));
    const std::vector<double> exact = memory.matrix(chosen());
    EXPECT_LE(distance(exact, {h.begin(), h.end()}), allowance(norm(exact)));
    EXPECT_EQ(memory.bytes(), bytes);
  }
}

/// A number that spoils a state.
struct Poison {
  const char *where;
  float value;
  float *(*at)(LayerMemory &, int64_t);
};

std::vector<Poison> poisons() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {
      {"update", nan, [](LayerMemory &m, int64_t s) { return m.update(s, 0); }},
      {"last update", nan,
       [](LayerMemory &m, int64_t s) {
         return m.update(s, m.layer.buffer - 1) + m.layer.dv - 1;
       }},
      {"infinite update", HUGE_VALF,
       [](LayerMemory &m, int64_t s) { return m.update(s, 1) + 3; }},
      {"largest weight", nan,
       [](LayerMemory &m, int64_t s) { return &m.weight(s, 0); }},
      {"frozen weight", nan,
       [](LayerMemory &m, int64_t s) {
         return &m.weight(s, m.rank[size_t(s)] - 1);
       }},
      {"active row", nan, [](LayerMemory &m, int64_t s) { return m.row(s, 0); }},
      {"log-decay", nan,
       [](LayerMemory &m, int64_t s) {
         return m.logDecay(s, m.layer.buffer - 1);
       }},
  };
}

/// Every state but `spoiled` has the bits of the clean ones, and no fault.
void expectOthersClean(LayerMemory &poisoned, LayerMemory &clean,
                       int64_t spoiled) {
  const LayerSpec &layer = clean.layer;
  for (int64_t state = 0; state < clean.states(); ++state) {
    if (state == spoiled)
      continue;
    const int64_t rank = clean.rank[size_t(state)];
    ASSERT_EQ(poisoned.rank[size_t(state)], rank);
    EXPECT_EQ(poisoned.status[size_t(state)], 0);
    EXPECT_EQ(std::memcmp(poisoned.row(state, 0), clean.row(state, 0),
                          size_t(rank * (layer.dk + layer.dv)) * 4),
              0)
        << "state " << state;
    EXPECT_EQ(std::memcmp(&poisoned.weight(state, 0), &clean.weight(state, 0),
                          size_t(rank) * 4),
              0)
        << "state " << state;
  }
}

// A NaN or an infinity marks its own state and no other state notices.
TEST_P(Degenerate, ANaNStaysInItsState) {
  for (const Poison &poison : poisons()) {
    SCOPED_TRACE(poison.where);
    LayerMemory clean(layer, 3);
    std::vector<int32_t> work;
    for (int64_t state = 0; state < clean.states(); ++state) {
      StateFiller filler(clean, state, uint64_t(state));
      filler.addOrthonormal(layer.active + 2, [](int64_t i) {
        return std::pow(0.5, double(i));
      });
      filler.setRandomPairs(layer.buffer);
      work.push_back(int32_t(state));
    }
    LayerMemory poisoned = clean;
    *poison.at(poisoned, chosen()) = poison.value;
    launcher->compact(clean, work, {});
    launcher->compact(poisoned, work, {});
    EXPECT_EQ(poisoned.status[size_t(chosen())], SS_STATUS_NOT_FINITE);
    EXPECT_GE(poisoned.rank[size_t(chosen())], 1) << "the fault must show";
    EXPECT_TRUE(std::isnan(norm(poisoned.matrix(chosen()))));
    ASSERT_NO_FATAL_FAILURE(expectOthersClean(poisoned, clean, chosen()));
    // Later compactions keep the mark and still do not spread.
    const std::vector<int32_t> status = poisoned.status;
    launcher->compact(poisoned, work, {});
    EXPECT_EQ(poisoned.status, status);
  }
}

/// Decode inputs of a batch, drawn like a request's.
KernelLauncher::DecodeArguments decodeArguments(const LayerSpec &layer,
                                                std::vector<int32_t> slots) {
  KernelLauncher::DecodeArguments arguments;
  const reference::LayerWeights weights = reference::randomWeights(layer, 3);
  arguments.aLog = weights.aLog;
  arguments.dtBias = weights.dtBias;
  for (size_t b = 0; b < slots.size(); ++b) {
    const TokenValues token = reference::RandomRequest(layer, b).token(0);
    auto add = [](std::vector<float> &rows, const std::vector<float> &row) {
      rows.insert(rows.end(), row.begin(), row.end());
    };
    add(arguments.q, token.q);
    add(arguments.k, token.k);
    add(arguments.v, token.v);
    add(arguments.gate, token.gate);
    add(arguments.beta, token.beta);
  }
  arguments.slots = std::move(slots);
  return arguments;
}

// Rank 0 and count 0 mean zero, whatever the bytes are.
TEST_P(Degenerate, AnEmptyStateReadsNoneOfItsBytes) {
  LayerMemory memory(layer, 2); // NaN everywhere
  const auto arguments = decodeArguments(layer, {1});
  const std::vector<float> y = launcher->decode(memory, arguments);
  reference::DenseRecurrence exact(layer);
  const auto expected =
      exact.step({arguments.q.data(), arguments.k.data(), arguments.v.data(),
                  arguments.gate.data(), arguments.beta.data()},
                 arguments.aLog.data(), arguments.dtBias.data());
  const double size = norm(expected);
  EXPECT_LE(distance(expected, {y.begin(), y.end()}), 1e-5 * size);
  // Nothing but the first pair of the slot was written.
  memory.count[1] = 1;
  EXPECT_TRUE(std::isfinite(norm(memory.matrix(chosen()))));
  EXPECT_TRUE(std::isnan(*memory.update(0, 0)));
  EXPECT_TRUE(std::isnan(*memory.key(0, 0)));
}

TEST_P(Degenerate, PaddingTouchesNothing) {
  LayerMemory memory(layer, 2);
  for (int64_t state = 0; state < memory.states(); ++state) {
    StateFiller filler(memory, state, uint64_t(state));
    filler.addOrthonormal(3, one);
    filler.setRandomPairs(1);
  }
  const std::vector<uint8_t> before = memory.bytes();
  const std::vector<float> y =
      launcher->decode(memory, decodeArguments(layer, {-1, -7, INT32_MIN}));
  EXPECT_EQ(y, std::vector<float>(y.size(), 0.0f));
  EXPECT_EQ(memory.bytes(), before);
}

TEST_P(Degenerate, SplitsOfALaunchGiveTheSameBits) {
  LayerMemory memory(layer, 3);
  for (int64_t state = 0; state < memory.states(); ++state) {
    StateFiller filler(memory, state, uint64_t(state));
    filler.addOrthonormal(state % (layer.active + 3), one);
    filler.setRandomPairs(state / layer.heads);
  }
  LayerMemory split = memory;
  const auto arguments = decodeArguments(layer, {2, -1, 0, 1});
  EXPECT_EQ(launcher->decode(memory, arguments),
            launcher->decode(split, arguments, 3));
  EXPECT_EQ(memory.bytes(), split.bytes());
}

TEST_P(Degenerate, TheOrderOfProgramsChangesNoBits) {
  LayerMemory memory(layer, 3);
  for (int64_t state = 0; state < memory.states(); ++state) {
    StateFiller filler(memory, state, uint64_t(state));
    filler.addOrthonormal(state % (layer.active + 3), one);
    filler.setRandomPairs(state / layer.heads);
  }
  LayerMemory reordered = memory;
  auto arguments = decodeArguments(layer, {2, -1, 0, 1});
  const std::vector<float> y = launcher->decode(memory, arguments);
  arguments.order.resize(4 * size_t(layer.heads));
  std::iota(arguments.order.begin(), arguments.order.end(), 0);
  std::shuffle(arguments.order.begin(), arguments.order.end(),
               std::mt19937(3));
  EXPECT_EQ(launcher->decode(reordered, arguments), y);
  EXPECT_EQ(memory.bytes(), reordered.bytes());
}

INSTANTIATE_TEST_SUITE_P(
    Conformance, Degenerate,
    onEveryBackEnd(withBothCores(
        {"gdn_64x128", "gdn_128x128", "gdn_100x60", "mamba2_80x128",
         "mamba2_a16_b16", "kda_64x128", "kda_bounded_60x100", "kda_a4_b12",
         "gdn_a4_b4", "gdn_draft", "mamba2_60x100"})),
    caseName);

} // namespace
