//===- MemoryTest.cpp - Pools and the accounting of bytes -----------------===//

#include "EngineUnderTest.h"
#include "ForwardingDevice.h"

#include "engine/Engine.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

using namespace sinkstate;
using namespace sinkstate::test;
using runtime::CpuDevice;
using runtime::PagedRange;
using runtime::Reservation;
using runtime::RowBlock;
using runtime::RowPool;

namespace {

TEST(PagedRange, CountsPagesOnceHoweverManySpansShareThem) {
  CpuDevice device(1);
  const size_t page = device.pageBytes();
  Reservation memory(device, 100 * page);
  PagedRange range(device, memory.begin(), memory.bytes());
  EXPECT_EQ(range.heldBytes(), 0);
  range.retain(0, 100);
  range.retain(100, 100);
  EXPECT_EQ(range.heldBytes(), int64_t(page));
  range.retain(page - 1, 2); // touches two pages
  EXPECT_EQ(range.heldBytes(), int64_t(2 * page));
  range.release(100, 100);
  range.release(0, 100);
  EXPECT_EQ(range.heldBytes(), int64_t(2 * page));
  range.release(page - 1, 2);
  EXPECT_EQ(range.heldBytes(), 0);
}

TEST(PagedRange, ReleasedPagesComeBackWithoutTheirBytes) {
  CpuDevice device(1);
  const size_t page = device.pageBytes();
  Reservation memory(device, 4 * page);
  PagedRange range(device, memory.begin(), memory.bytes());
  range.retain(0, 3 * page);
  std::fill_n(memory.begin(), 3 * page, std::byte(1));
  range.retain(page, page);
  range.release(0, 3 * page);
  EXPECT_EQ(memory.begin()[0], std::byte(0));
  EXPECT_EQ(memory.begin()[page], std::byte(1)); // still held
  EXPECT_EQ(memory.begin()[2 * page], std::byte(0));
}

/// Has large pages of four, and notes where it is asked for one.
class DeviceWithLargePages final : public ForwardingDevice {
public:
  std::vector<std::byte *> made;

  size_t largePageBytes() const override { return 4 * pageBytes(); }
  void makeLargePage(std::byte *begin) noexcept override {
    made.push_back(begin);
  }
};

TEST(PagedRange, APartThatIsInUseAsAWholeBecomesALargePage) {
  DeviceWithLargePages device;
  const size_t page = device.pageBytes(), large = device.largePageBytes();
  Reservation memory(device, 6 * large);
  // Begins a page behind an aligned place, wherever the reservation does.
  const size_t to = -reinterpret_cast<uintptr_t>(memory.begin()) % large;
  PagedRange range(device, memory.begin() + to + page, 3 * large);
  std::byte *const first = memory.begin() + to + large;

  range.retain(0, 6 * page); // three in front of the first part, which lacks one
  EXPECT_TRUE(device.made.empty());
  range.retain(6 * page, page);
  EXPECT_EQ(device.made, std::vector<std::byte *>{first});
  EXPECT_EQ(range.heldBytes(), int64_t(7 * page));
  // What is left behind the second one is no whole part, though it is in use.
  range.retain(7 * page, 5 * page);
  EXPECT_EQ(device.made, (std::vector<std::byte *>{first, first + large}));
  EXPECT_EQ(range.heldBytes(), int64_t(12 * page));
}

TEST(PagedRange, APartOfALargePageGoesBackAndCountsAtOnce) {
  DeviceWithLargePages device;
  const size_t page = device.pageBytes(), large = device.largePageBytes();
  Reservation memory(device, 2 * large);
  const size_t to = -reinterpret_cast<uintptr_t>(memory.begin()) % large;
  PagedRange range(device, memory.begin() + to, large);
  // One that fills up again and again is made the first, second and fourth time.
  const size_t expected[] = {1, 2, 2, 3, 3};
  range.retain(0, 3 * page);
  for (size_t made : expected) {
    range.retain(3 * page, page);
    EXPECT_EQ(device.made.size(), made);
    EXPECT_EQ(range.heldBytes(), int64_t(4 * page));
    memory.begin()[to + 3 * page] = std::byte(1);
    range.release(3 * page, page);
    EXPECT_EQ(range.heldBytes(), int64_t(3 * page));
    EXPECT_EQ(memory.begin()[to + 3 * page], std::byte(0));
  }
}

/// Kilobytes that a line of the process's memory map sums up to.
int64_t mapped(const std::string &what) {
  std::ifstream map("/proc/self/smaps_rollup");
  std::string word;
  int64_t kilobytes = 0;
  while (map >> word)
    if (word == what + ":")
      map >> kilobytes;
  return kilobytes;
}

TEST(CpuDevice, LargePagesKeepContentsAndGoBackInParts) {
  CpuDevice device(1);
  const size_t large = device.largePageBytes(), page = device.pageBytes();
  if (large == 0)
    GTEST_SKIP() << "this system gives no large pages";
  Reservation memory(device, large);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(memory.begin()) % large, 0u);
  device.commit(memory.begin(), large);
  for (size_t i = 0; i < large; i += page)
    memory.begin()[i] = std::byte(i / page % 251);
  device.makeLargePage(memory.begin());
  for (size_t i = 0; i < large; i += page)
    ASSERT_EQ(memory.begin()[i], std::byte(i / page % 251)) << i;
  const int64_t before = mapped("Rss");
  device.discard(memory.begin(), large / 2);
  EXPECT_LE(mapped("Rss"), before - int64_t(large / 2048) + 256);
  EXPECT_EQ(memory.begin()[page], std::byte(0));
  EXPECT_EQ(memory.begin()[large - page],
            std::byte((large / page - 1) % 251));
}

TEST(RowPool, BlocksOfAllClassesAreDisjoint) {
  CpuDevice device(1);
  RowPool pool(device, 40, {8, 16, 50}, 208);
  std::set<int64_t> rows;
  int64_t total = 0;
  for (int i = 0; i < 40; ++i)
    for (int64_t size : {3, 8, 9, 16, 17, 50}) {
      if (i >= 20 && size % 8 != 0)
        continue;
      RowBlock block = pool.allocate(size);
      EXPECT_GE(pool.capacity(block), size);
      EXPECT_EQ(pool.capacity(block), size <= 8 ? 8 : size <= 16 ? 16 : 50);
      for (int64_t r = 0; r < pool.capacity(block); ++r, ++total) {
        rows.insert(pool.base(block) + r);
        pool.rows()[(pool.base(block) + r) * 208] = std::byte(1); // usable
        pool.weights()[pool.base(block) + r] = 1;
      }
    }
  EXPECT_EQ(int64_t(rows.size()), total);
}

TEST(RowPool, KeepsFewFreeBlocksWhileAClassIsUsedAndGivesTheRestBack) {
  CpuDevice device(1);
  RowPool pool(device, 64, {16}, 1024); // a block is four pages
  std::vector<RowBlock> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(pool.allocate(16));
  const int64_t block = 16 * 256 * 4, page = int64_t(device.pageBytes());
  EXPECT_EQ(pool.heldBytes(), 64 * block + page);
  for (size_t i = 32; i < 64; ++i)
    pool.free(blocks[i]);
  EXPECT_EQ(pool.heldBytes(), 34 * block + page);
  pool.releaseKept();
  EXPECT_EQ(pool.heldBytes(), 32 * block + page);
  for (size_t i = 0; i < 32; ++i)
    pool.free(blocks[i]);
  EXPECT_EQ(pool.heldBytes(), 0);
  for (RowBlock &b : blocks)
    b = pool.allocate(16);
  EXPECT_EQ(pool.heldBytes(), 64 * block + page);
}

std::vector<LayerSpec> layers() {
  std::vector<LayerSpec> layers = {gdnLayer(4, 2, 80, 128),
                                   mamba2Layer(2, 1, 16, 24)};
  layers[0].policyValue = 3e-2;
  layers[1].name = "layer1";
  return layers;
}

TEST(Accounting, ReturnsToTheStart) {
  EngineUnderTest test(layers(), optionsFor(6), false);
  const int64_t start = test.engine.statistics().allocated_bytes;
  EXPECT_GT(start, 0);
  int64_t afterFirstRound = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<DrivenRequest> requests;
    for (uint64_t seed = 0; seed < 6; ++seed)
      requests.push_back(test.request(seed));
    std::vector<DrivenRequest *> batch;
    for (DrivenRequest &request : requests)
      batch.push_back(&request);
    for (int step = 0; step < 60; ++step)
      test.driver.step(batch);
    ss_statistics s = test.engine.statistics();
    EXPECT_GT(s.allocated_bytes, start);
    EXPECT_GE(s.allocated_peak, s.allocated_bytes);
    EXPECT_LE(s.live_bytes, s.dense_bytes);
    EXPECT_EQ(s.dense_bytes, 6 * (4 * 80 * 128 + 2 * 16 * 24) * 4);
    for (DrivenRequest &request : requests)
      test.engine.freeSlot(request.slot);
    s = test.engine.statistics();
    EXPECT_EQ(s.live_bytes, 0);
    EXPECT_EQ(s.dense_bytes, 0);
    EXPECT_EQ(s.allocated_bytes, start);
    if (round == 0)
      afterFirstRound = s.allocated_bytes;
    // Which blocks are kept may differ, and so the pages at their edges.
    EXPECT_NEAR(double(s.allocated_bytes), double(afterFirstRound), 1 << 18);
  }
}

TEST(Accounting, StaysBelowThePlannedWorstCase) {
  for (int32_t fallback : {0, 1}) {
    ss_engine_options options = optionsFor(3);
    options.dense_fallback = fallback;
    KernelSet kernels(layers());
    Package package = Package::fromMemory(kernels.manifest(),
                                          &KernelSet::lookup, &kernels);
    ss_memory_plan plan = package.plan(options);
    EXPECT_EQ(plan.dense, 3 * (4 * 80 * 128 + 2 * 16 * 24) * 4);
    EXPECT_LT(plan.expected, plan.worst_case);
    // A limit is what both are at most.
    ss_engine_options limited = options;
    limited.state_bytes_limit = (plan.expected + plan.worst_case) / 2;
    EXPECT_EQ(package.plan(limited).worst_case, limited.state_bytes_limit);
    EXPECT_EQ(package.plan(limited).expected, plan.expected);
    limited.state_bytes_limit = plan.expected - 1;
    EXPECT_EQ(package.plan(limited).expected, limited.state_bytes_limit);
    limited.max_batch = 10; // what it takes comes on top
    EXPECT_GT(package.plan(limited).expected, limited.state_bytes_limit);
    EngineUnderTest test(layers(), options, false);
    std::vector<DrivenRequest> requests;
    for (uint64_t seed = 0; seed < 3; ++seed)
      requests.push_back(test.request(seed));
    for (int step = 0; step < 150; ++step)
      test.driver.step({&requests[0], &requests[1], &requests[2]});
    EXPECT_LE(test.engine.statistics().allocated_peak, plan.worst_case);
  }
}

// Rows of a state move to larger and to smaller blocks as its rank changes.
TEST(Accounting, RowsFollowTheRank) {
  LayerSpec layer = mamba2Layer(1, 1, 128, 128);
  layer.policyValue = 1e-3;
  KernelSet kernels({layer});
  auto package = runtime::Package::fromMemory(kernels.manifest(),
                                              &KernelSet::lookup, &kernels);
  runtime::Engine engine(package, optionsFor(1));
  runtime::LayerState &state = engine.layerState(0);
  const int32_t slot = engine.allocateSlot(nullptr);
  const LayerWeights weights = randomWeights(layer, 0);
  int64_t largest = 0;
  auto decode = [&](const RandomRequest &request, int64_t from, int64_t to) {
    for (int64_t position = from; position < to; ++position) {
      TokenValues token = request.token(position);
      std::vector<float> y(128);
      ss_decode_args args = decodeArgs();
      args.batch = 1;
      args.slots = &slot;
      args.q = {token.q.data(), 0};
      args.k = {token.k.data(), 0};
      args.v = {token.v.data(), 0};
      args.gate = {token.gate.data(), 0};
      args.a_log = weights.aLog.data();
      args.dt_bias = weights.dtBias.data();
      args.y = y.data();
      engine.decodeLayer(0, args);
      engine.endStep({&slot, 1}, nullptr);
      ASSERT_LE(state.rank[0], state.capacityOf(0));
      largest = std::max(largest, state.capacityOf(0));
    }
  };
  EXPECT_EQ(state.capacityOf(0), 0);
  decode(RandomRequest(layer, 1), 0, 40);
  EXPECT_GE(largest, 40);
  decode(RandomRequest(layer, 2, {2, 0, 4.0}), 40, 400);
  EXPECT_LE(state.capacityOf(0), 24);
  EXPECT_LE(state.rank[0], 6);
}

/// Makes the entries of all slots but the first `kept` unreadable, as far as
/// whole pages have no others, while it lives.
class Barrier {
public:
  Barrier(runtime::LayerState &layer, int64_t slots, int64_t kept) {
    const int64_t heads = layer.heads();
    close(layer.rowBase.data(), slots * heads, kept * heads);
    close(layer.rank.data(), slots * heads, kept * heads);
    close(layer.status.data(), slots * heads, kept * heads);
    close(layer.rowCapacity.data(), slots * heads, kept * heads);
    close(layer.count.data(), slots, kept);
    const LayerManifestSizes sizes(layer);
    close(layer.bufferK.data(), slots * sizes.k, kept * sizes.k);
    close(layer.bufferU.data(), slots * sizes.u, kept * sizes.u);
    close(layer.bufferG.data(), slots * sizes.g, kept * sizes.g);
  }
  ~Barrier() {
    for (auto [begin, bytes] : closed)
      mprotect(begin, bytes, PROT_READ | PROT_WRITE);
  }
  size_t pages() const { return closedPages; }

private:
  struct LayerManifestSizes {
    explicit LayerManifestSizes(const runtime::LayerState &layer)
        : k(int64_t(layer.manifest().keyHeads) * layer.manifest().buffer *
            layer.manifest().dk),
          u(layer.heads() * layer.manifest().buffer * layer.manifest().dv),
          g(layer.heads() * layer.manifest().buffer) {}
    int64_t k, u, g; ///< floats of a slot
  };

  template <typename T> void close(T *table, int64_t entries, int64_t kept) {
    const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
    const auto from = uintptr_t(table + kept), to = uintptr_t(table + entries);
    const uintptr_t begin = (from + page - 1) / page * page;
    const uintptr_t end = to / page * page;
    if (begin >= end)
      return;
    ASSERT_EQ(mprotect(reinterpret_cast<void *>(begin), end - begin, PROT_NONE),
              0);
    closed.push_back({reinterpret_cast<void *>(begin), end - begin});
    closedPages += (end - begin) / page;
  }

  std::vector<std::pair<void *, size_t>> closed;
  size_t closedPages = 0;
};

// With thousands of slots a step of few requests costs what these cost: it does
// not so much as read an entry of another slot. (A step that does ends this
// program with a segmentation fault.)
TEST(Steps, LookAtNoSlotOutsideTheirBatch) {
  for (ss_consolidation mode :
       {SS_CONSOLIDATION_INLINE, SS_CONSOLIDATION_ASYNCHRONOUS,
        SS_CONSOLIDATION_DETERMINISTIC}) {
    constexpr int32_t kSlots = 5000;
    ss_engine_options options = optionsFor(kSlots);
    options.consolidation = mode;
    options.consolidate_every = 1;
    KernelSet kernels({gdnLayer(1, 1, 8, 12)});
    runtime::Engine engine(
        runtime::Package::fromMemory(kernels.manifest(), &KernelSet::lookup,
                                     &kernels),
        runtime::resolveOptions(options));
    std::vector<int32_t> batch;
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      const int32_t given = engine.allocateSlot(nullptr);
      if (slot < 3)
        batch.push_back(given);
    }
    ASSERT_EQ(batch, (std::vector<int32_t>{0, 1, 2}));
    const Barrier barrier(engine.layerState(0), kSlots, 3);
    ASSERT_GT(barrier.pages(), 100u);
    RandomRequest inputs(kernels.layers()[0], 5);
    const LayerWeights weights = randomWeights(kernels.layers()[0], 6);
    for (int64_t step = 0; step < 60; ++step) {
      TokenValues one = inputs.token(step), all;
      for (auto field : {&TokenValues::q, &TokenValues::k, &TokenValues::v,
                         &TokenValues::gate, &TokenValues::beta})
        for (size_t row = 0; row < batch.size(); ++row)
          (all.*field).insert((all.*field).end(), (one.*field).begin(),
                              (one.*field).end());
      std::vector<float> y(batch.size() * 8);
      ss_decode_args args = decodeArgs();
      args.batch = int32_t(batch.size());
      args.slots = batch.data();
      args.q = {all.q.data(), 0};
      args.k = {all.k.data(), 0};
      args.v = {all.v.data(), 0};
      args.gate = {all.gate.data(), 0};
      args.beta = {all.beta.data(), 0};
      args.a_log = weights.aLog.data();
      args.dt_bias = weights.dtBias.data();
      args.y = y.data();
      engine.beginStep(batch, nullptr);
      engine.decodeLayer(0, args);
      engine.endStep(batch, nullptr);
    }
    engine.synchronize(nullptr);
    engine.resetSlot(1, nullptr);
    engine.freeSlot(2);
  }
}

// Counted slot by slot as ranks change, and the same as counted from nothing.
TEST(Accounting, LiveBytesFollowEveryChange) {
  std::vector<LayerSpec> layers = {gdnLayer(2, 1, 16, 24),
                                   mamba2Layer(2, 1, 16, 24)};
  layers[1].name = "layer1";
  layers[1].denseForm = true;
  layers[0].policyValue = 0.05;
  for (ss_consolidation mode :
       {SS_CONSOLIDATION_INLINE, SS_CONSOLIDATION_ASYNCHRONOUS,
        SS_CONSOLIDATION_DETERMINISTIC}) {
    ss_engine_options options = optionsFor(4);
    options.consolidation = mode;
    options.consolidate_every = 1;
    EngineUnderTest test(layers, options, false);
    std::vector<DrivenRequest> requests;
    auto expected = [&] {
      const int64_t dense = 16 * 24 * 4;
      int64_t bytes = 0;
      for (const DrivenRequest &request : requests) {
        bytes += 2 * dense;
        for (int32_t rank : test.engine.ranks(0, request.slot))
          bytes += rank < 0 ? dense
                            : std::min<int64_t>(dense, rank * (40 * 4 + 4) +
                                                           8 * 40 * 4);
      }
      return bytes;
    };
    double sum = 0;
    for (int step = 0; step < 120; ++step) {
      if (step % 10 == 0) {
        if (requests.size() == 4) {
          test.engine.freeSlot(requests.front().slot);
          requests.erase(requests.begin());
        }
        requests.push_back(test.request(uint64_t(step)));
      }
      if (step % 33 == 32) {
        const std::vector<std::byte> snapshot =
            test.engine.snapshot(requests[0].slot);
        test.engine.resetSlot(requests[0].slot);
        EXPECT_EQ(test.engine.statistics().live_bytes, expected());
        test.engine.restore(requests[0].slot, snapshot);
      }
      std::vector<DrivenRequest *> batch;
      for (DrivenRequest &request : requests)
        batch.push_back(&request);
      test.driver.step(batch);
      const ss_statistics s = test.engine.statistics();
      EXPECT_EQ(s.live_bytes, expected()) << step;
      sum += double(s.live_bytes);
      EXPECT_NEAR(s.mean_live_bytes * double(s.steps), sum, 1e-6 * sum) << step;
    }
    for (const DrivenRequest &request : requests)
      test.engine.freeSlot(request.slot);
    EXPECT_EQ(test.engine.statistics().live_bytes, 0);
  }
}

} // namespace
