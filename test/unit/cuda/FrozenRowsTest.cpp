//===- FrozenRowsTest.cpp - Rows to the host and results back -------------===//
//
// The device's part of consolidation alone, over states that the test makes: in
// every storage, of widths that no wide copy fits, ill-conditioned and not
// finite.
//
//===----------------------------------------------------------------------===//

#include "CudaUnderTest.h"

#include "cuda/consolidation/FrozenRows.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace sinkstate;
using namespace sinkstate::test;
using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;
using consolidation::HostJob;
using consolidation::Job;
using consolidation::Pipeline;
using consolidation::ReadStage;
using consolidation::StateCopy;

namespace {

LayerSpec layerOf(const std::string &storage, const char *name) {
  LayerSpec layer = gdnLayer(2, 1, 15, 24); // rows of 39 elements
  layer.name = name;
  layer.active = 3;
  layer.buffer = 4;
  layer.storage = storage;
  return layer;
}

/// Two layers of three slots on the fake GPU, without an engine.
struct States {
  explicit States(const std::string &storage)
      : manifest(parseManifest(
            referenceManifest({layerOf(storage, "layer0"),
                               layerOf(storage, "layer1")}))),
        options(optionsOf()), layout(manifest, options),
        context(Context::open(Driver::get(), 0)), current(*context),
        memory(context, size_t(layout.bytes)), stream(context),
        compiler(*context) {
    stream.zero(memory.address(), memory.bytes());
    for (const LayerPlaces &places : layout.layers)
      for (int64_t state = 0; state < places.sizes.states; ++state)
        memory.at<int64_t>(places.rowBase)[state] = state * places.capacity;
    rows = std::make_unique<FrozenRows>(
        ConsolidatedStates{context, manifest, layout, memory.address()},
        options, compiler);
  }

  static ss_engine_options optionsOf() {
    ss_engine_options options = engineOptions();
    options.slots = 3;
    options.row_capacity = 1 << 20; // each state has the rows of its bound
    options.consolidate_every = 1;
    return options;
  }

  const LayerPlaces &places(int32_t layer) const {
    return layout.layers[size_t(layer)];
  }
  int64_t width() const { return places(0).sizes.rowFloats; }
  float *weights(int32_t layer, int64_t state) {
    return memory.at<float>(places(layer).weights) +
           state * places(layer).capacity;
  }
  std::byte *rowsOf(int32_t layer, int64_t state) {
    return memory.at<std::byte>(places(layer).rows) +
           state * places(layer).capacity * places(layer).sizes.rowBytes();
  }
  int32_t &rank(int32_t layer, int64_t state) {
    return memory.at<int32_t>(places(layer).rank)[state];
  }
  int32_t &status(int32_t layer, int64_t state) {
    return memory.at<int32_t>(places(layer).status)[state];
  }

  /// `count` components of which only `directions` are independent, and weights
  /// over six decades.
  void fill(int32_t layer, int64_t state, int32_t count, int32_t directions,
            uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> basis(size_t(directions * width()));
    for (float &x : basis)
      x = normal(random) / 5;
    std::vector<float> values(size_t(count * width()));
    for (int32_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < width(); ++c)
        values[size_t(i * width() + c)] =
            basis[size_t((i % directions) * width() + c)];
      weights(layer, state)[i] = std::pow(10.0f, float(-i % 7));
    }
    storeElements(places(layer).sizes.storage, rowsOf(layer, state),
                  values.data(), int64_t(values.size()));
    rank(layer, state) = count;
  }
  /// H, dv x dk, of a state as it is stored.
  std::vector<double> matrix(int32_t layer, int64_t state) {
    const int32_t count = rank(layer, state);
    std::vector<float> values(size_t(count * width()));
    loadElements(places(layer).sizes.storage, values.data(),
                 rowsOf(layer, state), int64_t(values.size()));
    const int64_t dk = manifest.layers[0].dk, dv = manifest.layers[0].dv;
    std::vector<double> h(size_t(dk * dv));
    for (int32_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < dv; ++r)
        for (int64_t c = 0; c < dk; ++c)
          h[size_t(r * dk + c)] += double(weights(layer, state)[i]) *
                                   values[size_t(i * width() + dk + r)] *
                                   values[size_t(i * width() + c)];
    return h;
  }
  /// A compaction of these slots has happened.
  void compacted(int32_t layer, std::vector<int32_t> slots) {
    const int32_t heads = manifest.layers[size_t(layer)].heads;
    int32_t *work = memory.at<int32_t>(places(layer).work);
    int32_t &count = *memory.at<int32_t>(places(layer).workCount);
    count = 0;
    for (int32_t slot : slots)
      for (int32_t head = 0; head < heads; ++head)
        work[count++] = slot * heads + head;
    rows->noteCompactions(stream.get());
    count = 0;
  }
  std::unique_ptr<HostJob> read(int32_t layer, std::vector<int32_t> slots) {
    Job job;
    job.layer = layer;
    for (int32_t slot : slots)
      job.targets.push_back({slot, rows->epoch(layer, slot)});
    std::unique_ptr<HostJob> host = rows->prepare(std::move(job));
    rows->download(*host);
    return host;
  }
  void decompose(HostJob &job) {
    for (StateCopy &copy : job.states)
      if (*copy.stage == ReadStage::copied) {
        Pipeline::decompose(copy);
        copy.done = true;
      }
  }
  int landed(int32_t box) {
    int count = 0;
    rows->forEachAnswer(box, [&](HostJob &, size_t, bool fresh, int64_t) {
      count += fresh;
    });
    return count;
  }

  Manifest manifest;
  ss_engine_options options;
  CudaLayout layout;
  std::shared_ptr<const Context> context;
  CurrentContext current;
  DeviceMemory memory;
  OwnStream stream;
  KernelCompiler compiler;
  std::unique_ptr<FrozenRows> rows;
};

class FrozenRowsOf : public OnFakeGpu,
                     public testing::WithParamInterface<const char *> {
protected:
  States states{GetParam()};
  double rounding = std::string(GetParam()) == "f32"   ? 0x1p-22
                    : std::string(GetParam()) == "f16" ? 0x1p-10
                                                       : 0x1p-7;

  void expectClose(const std::vector<double> &a, const std::vector<double> &b) {
    double squares = 0, error = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      squares += a[i] * a[i];
      error += (a[i] - b[i]) * (a[i] - b[i]);
    }
    EXPECT_LE(std::sqrt(error), 8 * rounding * std::sqrt(squares));
  }
};

TEST_P(FrozenRowsOf, ComeBackConsolidatedAndRoundedOnce) {
  for (int64_t state = 0; state < 6; ++state)
    states.fill(1, state, state == 2 ? 3 : 11, 5, uint64_t(state + 1));
  std::vector<std::vector<double>> before;
  for (int64_t state = 0; state < 6; ++state)
    before.push_back(states.matrix(1, state));
  states.compacted(1, {0, 1, 2});
  auto job = states.read(1, {2, 1});
  ASSERT_EQ(job->states.size(), 4u);
  EXPECT_EQ(job->states[0].state, 4); // slot 2, head 0
  EXPECT_EQ(job->states[2].state, 2);
  EXPECT_EQ(job->states[2].count, 0); // nothing behind the active rows
  EXPECT_EQ(*job->states[2].stage, ReadStage::pending);
  states.decompose(*job);
  HostJob *jobs[] = {job.get()};
  EXPECT_EQ(states.rows->publish(0, jobs), 1u);
  EXPECT_FALSE(states.rows->isAnswered(0));
  states.rows->swapIn(states.stream.get());
  ASSERT_TRUE(states.rows->isAnswered(0));
  EXPECT_EQ(states.landed(0), 3);
  for (const StateCopy &copy : job->states) {
    if (copy.count == 0)
      continue;
    EXPECT_EQ(states.rank(1, copy.state), copy.rankAfter());
    EXPECT_LE(copy.rankAfter(), 3 + 5);
    // The bits of the host's own rounding, to nearest even.
    std::vector<std::byte> expected(
        size_t(copy.rankAfter()) * size_t(states.places(1).sizes.rowBytes()));
    storeElements(states.places(1).sizes.storage, expected.data(),
                  copy.rows.data(), copy.rankAfter() * states.width());
    EXPECT_EQ(std::memcmp(expected.data(), states.rowsOf(1, copy.state),
                          expected.size()),
              0);
    EXPECT_EQ(std::memcmp(copy.weights.data(), states.weights(1, copy.state),
                          size_t(copy.rankAfter()) * sizeof(float)),
              0);
  }
  for (int64_t state = 0; state < 6; ++state)
    expectClose(before[size_t(state)], states.matrix(1, state));
  EXPECT_EQ(states.rank(1, 0), 11); // of the slot that was not in the job
  // What is answered is not answered again.
  states.rank(1, 3) = 1;
  states.rows->swapIn(states.stream.get());
  EXPECT_EQ(states.rank(1, 3), 1);
  states.rows->clear(0);
}

TEST_P(FrozenRowsOf, OfNaNAreLeftAloneAndSaidToBe) {
  states.fill(0, 0, 9, 9, 1);
  states.fill(0, 1, 9, 9, 2);
  states.weights(0, 0)[4] = std::numeric_limits<float>::quiet_NaN();
  states.compacted(0, {0});
  auto job = states.read(0, {0});
  states.decompose(*job);
  HostJob *jobs[] = {job.get()};
  states.rows->publish(1, jobs);
  states.rows->swapIn(states.stream.get());
  EXPECT_EQ(states.landed(1), 2);
  EXPECT_EQ(states.rank(0, 0), 9);
  EXPECT_EQ(states.status(0, 0), SS_STATUS_NOT_FINITE);
  EXPECT_TRUE(std::isnan(states.weights(0, 0)[4]));
  EXPECT_EQ(states.status(0, 1), 0);
}

TEST_P(FrozenRowsOf, AreDroppedSlotBySlot) {
  for (int64_t state = 0; state < 6; ++state)
    states.fill(0, state, 10, 4, uint64_t(state + 1));
  states.compacted(0, {0, 1, 2});
  auto job = states.read(0, {0, 1, 2});
  states.decompose(*job);
  HostJob *jobs[] = {job.get()};
  states.rows->publish(0, jobs);
  states.compacted(0, {1});
  states.rows->noteSlot(2, states.stream.get());
  states.rows->swapIn(states.stream.get());
  EXPECT_EQ(states.landed(0), 2);
  for (int64_t state = 0; state < 6; ++state)
    EXPECT_EQ(states.rank(0, state) < 10, state < 2) << state;
}

// A rank that is not of the rows read is dropped before any SVD.
TEST_P(FrozenRowsOf, AreNotTakenWhereTheirEpochIsAnother) {
  states.fill(0, 0, 10, 4, 1);
  states.compacted(0, {0});
  Job job;
  job.targets.push_back({0, states.rows->epoch(0, 0)});
  states.compacted(0, {0});
  auto host = states.rows->prepare(std::move(job));
  states.rows->download(*host);
  EXPECT_EQ(host->states[0].count, 10);
  EXPECT_EQ(*host->states[0].stage, ReadStage::cancelled);
}

TEST_P(FrozenRowsOf, SeveralJobsFillAMailboxAndNoMore) {
  std::vector<std::unique_ptr<HostJob>> jobs;
  for (int32_t layer = 0; layer < 2; ++layer)
    for (int32_t slot = 0; slot < 3; ++slot) {
      for (int64_t head = 0; head < 2; ++head)
        states.fill(layer, slot * 2 + head, 19, 19, 1);
      states.compacted(layer, {slot});
      jobs.push_back(states.read(layer, {slot}));
      states.decompose(*jobs.back());
    }
  std::vector<HostJob *> list;
  for (const auto &job : jobs)
    list.push_back(job.get());
  size_t taken = 0;
  int landed = 0, publications = 0;
  while (taken < list.size()) {
    taken += states.rows->publish(0, std::span(list).subspan(taken));
    states.rows->swapIn(states.stream.get());
    ASSERT_TRUE(states.rows->isAnswered(0));
    landed += states.landed(0);
    states.rows->clear(0);
    ++publications;
  }
  EXPECT_EQ(landed, 12);
  EXPECT_GE(publications, 2); // staging memory is that of one layer's slots
}

INSTANTIATE_TEST_SUITE_P(Storages, FrozenRowsOf,
                         testing::Values("f32", "f16", "bf16"),
                         [](const auto &info) { return std::string(info.param); });

// Staging memory has a bound: jobs are smaller there.
TEST(FrozenPlan, SizesJobsByTheStagingMemory) {
  const Manifest manifest =
      parseManifest(referenceManifest({gdnLayer(32, 16, 128, 128)}));
  ss_engine_options options = engineOptions();
  options.slots = 256;
  const CudaLayout layout(manifest, options);
  const FrozenPlan plan(manifest, layout, options.slots);
  ASSERT_EQ(plan.layers.size(), 1u);
  const int64_t slotBytes =
      32 * ss::packed_bytes(layout.layers[0].capacity, 256 * 4);
  EXPECT_EQ(plan.room, int64_t(16) << 20);
  EXPECT_EQ(plan.layers[0].slotsPerJob, plan.room / slotBytes);
  EXPECT_GT(plan.layers[0].slotsPerJob, 1);
  EXPECT_EQ(plan.mostStates, plan.layers[0].slotsPerJob * 32);
  EXPECT_LT(plan.deviceBytes, 4 * plan.room);
  // One slot always fits.
  const Manifest wide =
      parseManifest(referenceManifest({gdnLayer(256, 16, 128, 128)}));
  const CudaLayout wideLayout(wide, options);
  const FrozenPlan large(wide, wideLayout, options.slots);
  EXPECT_EQ(large.layers[0].slotsPerJob, 1);
  EXPECT_GE(large.room, slotBytes * 8);
}

} // namespace
