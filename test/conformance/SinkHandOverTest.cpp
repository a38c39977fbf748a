//===- SinkHandOverTest.cpp - Sinks that move between engines -------------===//
//
// A state's first row is a sink or an ordinary component, by the layer it is in.
// What comes from the other form is the same matrix at once, and what follows is
// as exact as in a state that was always there.
//
//===----------------------------------------------------------------------===//

#include "SinkFixture.h"

#include <algorithm>
#include <cmath>

using namespace sinkstate;
using namespace sinkstate::conformance;

namespace {

using Bytes = std::vector<std::byte>;

class SinkHandOver : public SinkFixture {
protected:
  /// All heads of a snapshot in a new request, whose exact states are those of
  /// the engine that wrote it.
  static DrivenRequest taken(Sunk &to, Sunk &from, DrivenRequest &source,
                             const RequestStyle &style, uint64_t seed) {
    DrivenRequest request = to.request(seed, style);
    to.engine.restoreHeads(request.slot, from.engine.snapshot(source.slot), {});
    request.position = source.position;
    for (size_t layer = 0; layer < to.layers.size(); ++layer) {
      from.driver.rebase(source, layer);
      request.exact(layer) = source.exact(layer);
      EXPECT_LE(to.driver.stateError(request, layer),
                to.layers[layer].storage == from.layers[layer].storage ? 1e-6
                                                                       : 0.1)
          << "layer " << layer << ", at once";
    }
    return request;
  }

  static double roundingOf(const LayerSpec &layer) {
    return layer.storage == "f16"    ? 0x1p-11
           : layer.storage == "bf16" ? 0x1p-8
           : layer.storage == "fp8"  ? 0x1p-4
                                     : 0;
  }

  /// Of a request whose rank is far below what is kept, nothing is lost.
  static void expectExact(Sunk &run, DrivenRequest &request, int steps) {
    for (int step = 0; step < steps; ++step)
      run.driver.step({&request});
    for (size_t layer = 0; layer < run.layers.size(); ++layer)
      EXPECT_LE(run.driver.stateError(request, layer),
                2e-5 + 16 * roundingOf(run.layers[layer]))
          << "layer " << layer << ", " << steps << " tokens later";
  }

  static RequestStyle lowRank(const Sunk &run) {
    RequestStyle style = run.style();
    style.rank = 3;
    return style;
  }

  static ss_result restored(Sunk &to, int32_t slot, const Bytes &bytes) {
    return ss_snapshot_restore(to.engine.get(), slot, bytes.data(),
                               bytes.size(), nullptr);
  }
  static ss_result restoredHeads(Sunk &to, int32_t slot, const Bytes &bytes) {
    return ss_snapshot_restore_heads(to.engine.get(), slot, bytes.data(),
                                     bytes.size(), nullptr, 0, nullptr);
  }
};

// The rows of a state without a sink are content, and its sink is empty: the next
// compaction moves there what they have of the mean value.
TEST_P(SinkHandOver, StatesWithoutASinkGetOne) {
  Sunk from(GetParam(), 1, /*withSinks=*/false), to(GetParam());
  DrivenRequest first = from.request(21, lowRank(from));
  for (int step = 0; step < 37; ++step)
    from.driver.step({&first});
  DrivenRequest second = taken(to, from, first, lowRank(to), 21);
  expectExact(to, second, 16);
  expectExact(to, second, 64);
}

// What content had of the mean value is in the sink before anything is truncated.
TEST_P(SinkHandOver, ContentGivesItsShareToTheSink) {
  Sunk from(GetParam(), 1, /*withSinks=*/false), to(GetParam());
  DrivenRequest first = from.request(22, from.style());
  for (int step = 0; step < 37; ++step)
    from.driver.step({&first});
  DrivenRequest second = taken(to, from, first, to.style(), 22);
  for (int step = 0; step < 60; ++step)
    to.driver.step({&second});
  bool truncated = false;
  for (size_t layer = 0; layer < to.layers.size(); ++layer)
    if (to.layers[layer].sinkForm) {
      EXPECT_LE(sinkError(to, second, layer),
                1e-6 + 2 * roundingOf(to.layers[layer]))
          << "layer " << layer;
      truncated |= to.driver.stateError(second, layer) > 1e-3;
    }
  EXPECT_TRUE(truncated) << "a test of nothing";
}

// A sink belongs to a mean value: with another one the state would change at its
// next compaction.
TEST_P(SinkHandOver, SinksOfOtherMeanValuesAreRefused) {
  Sunk from(GetParam()), same(GetParam(), 2), none(GetParam(), 1, false);
  Sunk other(GetParam(), 1, false);
  for (size_t layer = 0; layer < other.layers.size(); ++layer)
    if (other.layers[layer].sinkForm) {
      std::vector<float> means = other.means[layer];
      means[0] += 0.5f;
      other.engine.setSink(int32_t(layer), means);
    }
  DrivenRequest first = from.request(23, from.style());
  for (int step = 0; step < 21; ++step)
    from.driver.step({&first});
  const Bytes bytes = from.engine.snapshot(first.slot);
  for (Sunk *wrong : {&none, &other}) {
    const int32_t slot = wrong->engine.allocateSlot();
    EXPECT_EQ(restored(*wrong, slot, bytes), SS_FOREIGN_SNAPSHOT);
    EXPECT_NE(std::string(ss_last_error()).find("of another mean value"),
              std::string::npos)
        << ss_last_error();
    EXPECT_EQ(restoredHeads(*wrong, slot, bytes), SS_FOREIGN_SNAPSHOT);
    EXPECT_EQ(wrong->engine.position(slot), 0);
  }
  DrivenRequest second = same.request(23, same.style());
  ASSERT_EQ(restored(same, second.slot, bytes), SS_OK) << ss_last_error();
  second.position = first.position;
  EXPECT_EQ(same.engine.snapshot(second.slot), bytes);
  for (int step = 0; step < 20; ++step)
    ASSERT_EQ(rowOf(same.driver.step({&second}), 0, same.layers),
              rowOf(from.driver.step({&first}), 0, from.layers))
        << "token " << step;
}

INSTANTIATE_TEST_SUITE_P(Conformance, SinkHandOver,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink",
                                         "mixed_sink", "narrow_sink"}),
                         caseName);

class SinkPairs : public SinkHandOver {};

// Without a compaction there is no row that could be another engine's sink.
TEST_P(SinkPairs, AreOfAnyMeanValue) {
  Sunk from(GetParam()), none(GetParam(), 1, false);
  DrivenRequest first = from.request(24, lowRank(from));
  from.driver.step({&first});
  for (int32_t rank : from.engine.ranks(0, first.slot))
    ASSERT_EQ(rank, 0);
  DrivenRequest second = taken(none, from, first, lowRank(none), 24);
  expectExact(none, second, 24);
}

INSTANTIATE_TEST_SUITE_P(Conformance, SinkPairs,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink"}),
                         caseName);

class SinkTwins : public SinkHandOver {
protected:
  /// The same layers as ordinary factors.
  static Case twin() {
    const std::string name = GetParam().graph->name;
    return {GetParam().backEnd,
            &graphNamed(name.substr(0, name.find("_sink")) + "_fixed")};
  }
  /// What `from` has decoded of a request stays exact in `to`, for long.
  static void expectExactAcross(Sunk &from, Sunk &to, uint64_t seed) {
    DrivenRequest first = from.request(seed, lowRank(from));
    for (int step = 0; step < 37; ++step)
      from.driver.step({&first});
    DrivenRequest second = taken(to, from, first, lowRank(to), seed);
    expectExact(to, second, 16);
    expectExact(to, second, 64);
  }
};

TEST_P(SinkTwins, FactorsBecomeContent) {
  Sunk from(twin()), to(GetParam());
  expectExactAcross(from, to, 25);
}

TEST_P(SinkTwins, ASinkBecomesAComponent) {
  Sunk from(GetParam()), to(twin());
  expectExactAcross(from, to, 26);
}

// A layer of fixed rank R holds R components, a sink beside them or not.
TEST_P(SinkTwins, OneComponentTooManyIsRefused) {
  Sunk from(GetParam()), to(twin());
  DrivenRequest first = from.request(27, from.style());
  for (int step = 0; step < 60; ++step)
    from.driver.step({&first});
  const int32_t slot = to.engine.allocateSlot();
  EXPECT_EQ(restoredHeads(to, slot, from.engine.snapshot(first.slot)),
            SS_FOREIGN_SNAPSHOT);
  EXPECT_NE(std::string(ss_last_error()).find("of a larger fixed rank"),
            std::string::npos)
      << ss_last_error();
}

INSTANTIATE_TEST_SUITE_P(Conformance, SinkTwins,
                         onEveryBackEnd({"gdn_sink", "mamba2_sink", "kda_sink"}),
                         caseName);

} // namespace
