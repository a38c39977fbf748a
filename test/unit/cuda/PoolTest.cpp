//===- PoolTest.cpp - Row pools of a GPU on the host ----------------------===//

#include "HostRows.h"

#include "cuda/PoolMemory.h"
#include "cuda/RowPoolLayout.h"
#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <numeric>
#include <vector>

using namespace sinkstate;
using namespace sinkstate::test;
using runtime::cuda::RowPoolSizes;

namespace {

/// A pool without rows of its own: only addresses are handed out.
struct TestPool {
  TestPool(int32_t mostRows, std::vector<int32_t> exact, int32_t chunks,
           int32_t mostRequests = 4096)
      : sizes(64, mostRows, exact), chunkClass(size_t(chunks), ss::kNoBlock),
        freeBlocks(size_t(chunks) * ss::kMaskWords),
        leaving(size_t(chunks)),
        requests(size_t(mostRequests)), granted(size_t(mostRequests)),
        limit(chunks) {
    pool.chunk_rows = sizes.chunkRows;
    pool.chunk_count = chunks;
    pool.class_count = int32_t(sizes.capacity.size());
    pool.most_requests = mostRequests;
    std::copy(sizes.capacity.begin(), sizes.capacity.end(), pool.capacity);
    std::copy(sizes.blocks.begin(), sizes.blocks.end(), pool.blocks);
    pool.class_of = sizes.classOf.data();
    pool.chunk_class = chunkClass.data();
    pool.free_blocks = freeBlocks.data();
    pool.leaving = leaving.data();
    pool.requests = requests.data();
    pool.granted = granted.data();
    pool.report = &report;
    pool.limit = &limit;
  }
  bool ask(int32_t rows) {
    return ss::ask_block(pool, rows, {0, 0, 0, 0, ss::kResize, 0}) !=
           ss::kNoRequest;
  }
  struct Block {
    int64_t base;
    int32_t rows;
  };
  /// Answers all requests; denied ones have base -1.
  std::vector<Block> answers(int32_t threads, bool backwards) {
    provide(pool, threads, backwards);
    std::vector<Block> blocks;
    for (int32_t i = 0; i < pool.grant_count; ++i) {
      const ss::RowRequest &request = requests[size_t(i)];
      const int32_t block = ss::granted_block(pool, request);
      blocks.push_back({block == ss::kNoBlock
                            ? -1
                            : ss::block_base(pool, block, request.size_class),
                        pool.capacity[request.size_class]});
    }
    return blocks;
  }

  RowPoolSizes sizes;
  std::vector<int32_t> chunkClass;
  std::vector<uint32_t> freeBlocks;
  std::vector<int32_t> leaving;
  std::vector<ss::RowRequest> requests;
  std::vector<int32_t> granted;
  int64_t limit;
  ss::PoolReport report = {};
  ss::RowPool pool = {};
};

TEST(RowPoolSizes, HaveClassesOfSmallSteps) {
  for (int32_t most : {2, 16, 24, 104, 152, 280, 1000, 4200}) {
    const RowPoolSizes sizes(64, most, {most / 2 + 1});
    ASSERT_EQ(sizes.classOf.size(), size_t(most) + 1);
    for (int32_t rows = 1; rows <= most; ++rows) {
      const int32_t capacity = sizes.capacityFor(rows);
      EXPECT_GE(capacity, rows);
      // A quarter of the largest of a class is lost at most, beside the least.
      EXPECT_LE(capacity, rows + std::max(rows / 4, sizes.chunkRows / 128 + 3))
          << rows << " of " << most;
    }
    for (size_t c = 0; c < sizes.capacity.size(); ++c) {
      EXPECT_LE(sizes.blocks[c], ss::kMostBlocks);
      EXPECT_LE(sizes.blocks[c] * sizes.capacity[c], sizes.chunkRows);
      EXPECT_GT(sizes.capacity[c], c == 0 ? 0 : sizes.capacity[c - 1]);
    }
  }
}

/// Every row belongs to one block at most, and blocks stay in their pool.
class Ownership {
public:
  explicit Ownership(const TestPool &test)
      : taken(size_t(test.pool.chunk_count * test.pool.chunk_rows +
                     ss::kScrapRows)) {}
  void take(TestPool::Block block) {
    ASSERT_GE(block.base, ss::kScrapRows);
    ASSERT_LE(block.base + block.rows, int64_t(taken.size()));
    for (int64_t row = block.base; row < block.base + block.rows; ++row) {
      ASSERT_FALSE(taken[size_t(row)]) << "row " << row;
      taken[size_t(row)] = true;
    }
    rows += block.rows;
  }
  void give(TestPool::Block block) {
    for (int64_t row = block.base; row < block.base + block.rows; ++row)
      taken[size_t(row)] = false;
    rows -= block.rows;
  }
  int64_t rows = 0;

private:
  std::vector<bool> taken;
};

// What a restore or an initialisation takes at once says nothing of steps.
TEST(PoolDemand, TakesPlacingForNoGrowth) {
  RowPoolSizes sizes(64, 104, {49});
  sizes.dueStates = 1, sizes.dueRows = 10;
  ss::PoolReport report = {};
  report.step = 5, report.fresh = report.used_chunks = 40;
  report.coming = -1;
  runtime::cuda::PoolDemand grown(sizes), placed(sizes);
  placed.ignore(report);
  const int64_t calm = placed.chunks(report, {2}, 0);
  EXPECT_EQ(calm, 40 + 2 * placed.stepChunks());
  EXPECT_EQ(placed.stepChunks(), 1 + 2); // of due states that keep all their pairs
  EXPECT_EQ(grown.chunks(report, {2}, 0), 40 + 2 * 2 * 40);
  // The steps behind it do.
  report.step = 6, report.fresh = 3;
  EXPECT_EQ(placed.chunks(report, {2}, 0), 40 + 2 * 2 * 3);
}

// Not of slots that have joined since, nor right behind a placing, nor for a while
// after steps in which nobody could look ahead.
TEST(PoolDemand, TakesWhatTheDeviceForesees) {
  RowPoolSizes sizes(64, 104, {49});
  sizes.dueStates = 1, sizes.dueRows = 10;
  ss::PoolReport report = {};
  report.used_chunks = 40, report.coming = 3;
  runtime::cuda::PoolDemand demand(sizes);
  auto worst = [&](int64_t slots) { // of one step
    return (slots * 10 + sizes.chunkRows - 1) / sizes.chunkRows +
           std::min(slots, int64_t(sizes.capacity.size()));
  };
  EXPECT_EQ(demand.chunks(report, {4000, 4000}, 0), 40 + 2 * worst(4000)); // no report yet
  report.step = 1;
  EXPECT_EQ(demand.chunks(report, {4000}, 0), 40 + 3 + 2 * worst(4000));
  report.step = 3;
  EXPECT_EQ(demand.chunks(report, {4000}, 0), 40 + 3);
  EXPECT_EQ(demand.stepChunks(), 3);
  EXPECT_EQ(demand.chunks(report, {4400, 400}, 1), 40 + 3 + 2 * worst(400));
  EXPECT_EQ(demand.stepChunks(), 3 + worst(400));
  report.step = 6;
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 3);
  demand.ignore(report);
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 2 * worst(4400));
  report.step = 7;
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 3);
  report.step = 8, report.coming = -1;
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 2 * worst(4400));
  report.step = 9, report.coming = 2;
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 2 * worst(4400));
  for (int call = 0; call < 40; ++call)
    demand.chunks(report, {4400}, 0);
  EXPECT_EQ(demand.chunks(report, {4400}, 0), 40 + 2);
}

// Whether or not as many have left: also where one call is told of both, and of what
// joins behind it, once it does.
TEST(PoolDemand, TakesSlotsOfNewOwnersForUnknown) {
  RowPoolSizes sizes(64, 104, {49});
  sizes.dueStates = 1, sizes.dueRows = 200;
  auto worst = [&](int64_t slots) { // of one step
    return (slots * 200 + sizes.chunkRows - 1) / sizes.chunkRows +
           std::min(slots, int64_t(sizes.capacity.size()));
  };
  ss::PoolReport report = {};
  report.used_chunks = 40;
  runtime::cuda::PoolDemand demand(sizes);
  for (report.step = 1; report.step < 4; ++report.step)
    demand.chunks(report, {8}, 0);
  EXPECT_EQ(demand.chunks(report, {8}, 0), 40);
  EXPECT_EQ(demand.chunks(report, {8, 0, 1}, 0), 40 + 2 * worst(1));
  EXPECT_EQ(demand.stepChunks(), worst(1));
  EXPECT_EQ(demand.chunks(report, {8}, 0), 40); // it was refused
  EXPECT_EQ(demand.chunks(report, {8, 2, 1}, 0), 40 + 2 * worst(3));
  EXPECT_EQ(demand.chunks(report, {8, 1, 0}, 0), 40 + 2 * worst(3));
  // Of those that came and left no more are left than there are.
  EXPECT_EQ(demand.chunks(report, {8, 20, 0}, 0), 40 + 2 * worst(8));
  report.step += 2;
  EXPECT_EQ(demand.chunks(report, {8}, 0), 40);
}

// Beyond the blocks that are free, chunk by chunk.
TEST(DevicePool, CountsTheChunksForWhatIsForeseen) {
  TestPool test(104, {49}, 60);
  ASSERT_TRUE(test.ask(20));
  test.answers(3, false);
  const int32_t c = test.sizes.classOf[20], blocks = test.sizes.blocks[size_t(c)];
  for (const auto &[asked, chunks] :
       std::vector<std::pair<int32_t, int32_t>>{{blocks - 1, 0},
                                                {blocks, 1},
                                                {2 * blocks - 1, 1},
                                                {2 * blocks, 2}}) {
    test.pool.coming[c] = asked;
    test.pool.foreseen = 1;
    test.answers(3, true);
    EXPECT_EQ(test.report.coming, chunks);
  }
}

TEST(DevicePool, GivesEveryRowToOneStateWhateverTheThreads) {
  for (int32_t threads : {1, 3, 64})
    for (bool backwards : {false, true}) {
      TestPool test(104, {49}, 60);
      Ownership rows(test);
      std::vector<TestPool::Block> held;
      std::mt19937 random(7);
      for (int step = 0; step < 200; ++step) {
        const size_t asked = random() % 60;
        for (size_t i = 0; i < asked; ++i)
          ASSERT_TRUE(test.ask(int32_t(1 + random() % 104)));
        const auto answers = test.answers(threads, backwards);
        ASSERT_EQ(answers.size(), asked);
        for (const TestPool::Block &block : answers)
          if (block.base >= 0) {
            rows.take(block);
            held.push_back(block);
          }
        if (HasFatalFailure())
          return;
        EXPECT_EQ(test.report.used_rows, rows.rows);
        EXPECT_EQ(test.report.step, step + 1);
        while (held.size() > 200) {
          const size_t i = random() % held.size();
          ss::free_block(test.pool, held[i].base);
          rows.give(held[i]);
          held[i] = held.back();
          held.pop_back();
        }
      }
      for (const TestPool::Block &block : held)
        ss::free_block(test.pool, block.base);
      provide(test.pool, threads, backwards);
      EXPECT_EQ(test.report.used_rows, 0);
      EXPECT_EQ(test.report.used_chunks, 0);
      EXPECT_EQ(test.report.top, 0);
    }
}

TEST(DevicePool, DeniesWhatTheMappedChunksHaveNotAndCountsIt) {
  TestPool test(104, {}, 8);
  test.limit = 1;
  const int32_t blocks =
      test.sizes.blocks[size_t(test.sizes.classOf[20])];
  for (int32_t i = 0; i < blocks + 3; ++i)
    test.ask(20);
  auto answers = test.answers(5, false);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(),
                          [](auto &block) { return block.base < 0; }),
            3);
  EXPECT_EQ(test.report.denied, 3);
  EXPECT_EQ(test.report.missing, 1);
  EXPECT_EQ(test.report.used_chunks, 1);
  // More memory, and the same again.
  test.limit = 2;
  for (int32_t i = 0; i < 3; ++i)
    test.ask(20);
  answers = test.answers(5, false);
  for (const TestPool::Block &block : answers)
    EXPECT_GE(block.base, ss::kScrapRows + test.sizes.chunkRows);
  EXPECT_EQ(test.report.denied, 3);
  EXPECT_EQ(test.report.missing, 0);
}

TEST(DevicePool, FillsTheLowestChunksFirst) {
  TestPool test(24, {}, 50);
  std::vector<TestPool::Block> held;
  for (int32_t i = 0; i < 400; ++i)
    test.ask(24);
  held = test.answers(1, false);
  const int32_t top = test.report.top;
  // Holes everywhere, and new blocks: no chunk above is touched.
  for (size_t i = 0; i < held.size(); i += 3)
    ss::free_block(test.pool, held[i].base);
  for (int32_t i = 0; i < 100; ++i)
    test.ask(24);
  test.answers(1, false);
  EXPECT_EQ(test.report.top, top);
}

TEST(DevicePool, LeavesChunksThatAreNotNeeded) {
  TestPool test(24, {}, 200);
  for (int32_t i = 0; i < 800; ++i)
    test.ask(20);
  std::vector<TestPool::Block> held = test.answers(3, false);
  const int32_t full = test.report.used_chunks;
  std::mt19937 random(1);
  std::shuffle(held.begin(), held.end(), random);
  while (held.size() > 80) {
    ss::free_block(test.pool, held.back().base);
    held.pop_back();
  }
  // One block after the other moves where the pool says so.
  for (int step = 0; step < 400; ++step) {
    TestPool::Block &block = held[size_t(step) % held.size()];
    const bool moves = test.leaving[size_t(ss::chunk_at(test.pool, block.base))];
    if (moves)
      test.ask(20);
    const auto answer = test.answers(3, false);
    if (moves) {
      ss::free_block(test.pool, block.base);
      block = answer[0];
    }
  }
  EXPECT_LE(test.report.used_chunks, full / 10 + 2);
  EXPECT_EQ(test.report.used_rows,
            80 * test.sizes.capacityFor(20));
}

TEST(DevicePool, RefusesRequestsBeyondItsTable) {
  TestPool test(24, {}, 4, 2);
  EXPECT_TRUE(test.ask(3));
  EXPECT_TRUE(test.ask(3));
  EXPECT_FALSE(test.ask(3));
  EXPECT_EQ(test.answers(2, false).size(), 2u);
  EXPECT_TRUE(test.ask(3));
}

// Bits of f16: what keeps no digits is said, what is no number too; zero is not.
TEST(DevicePool, SaysWhereAFoldHasLeftTheRange) {
  const std::pair<int32_t, int32_t> cases[] = {
      {0, 0},       {0x0001, 16}, {0x1fff, 16}, {0x2000, 0},  {0x3c00, 0},
      {0x77ff, 0},  {0x7800, 16}, {0x7bff, 16}, {0x7c00, 17}, {0x7e00, 17}};
  for (const auto &[largest, bits] : cases) {
    int32_t status[] = {0, 8};
    int64_t counters[ss::kRowCounters] = {};
    ss::RowLayer layer = {};
    layer.status = status;
    ss::RowTables tables = {};
    tables.counters = counters;
    ss::note_range(tables, layer, 1, largest);
    EXPECT_EQ(status[1], 8 | bits) << largest;
    EXPECT_EQ(status[0], 0);
    EXPECT_EQ(counters[ss::kOutOfRangeCount], bits != 0);
  }
  static_assert(ss::kOutOfRange == SS_STATUS_OUT_OF_RANGE &&
                ss::kNotFinite == SS_STATUS_NOT_FINITE);
}

std::string deviceText(const char *name) {
  std::ifstream file(std::string(SS_SOURCE_DIR "/runtime/src/cuda/device/") +
                     name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(DevicePool, CompilesForGpus) {
  auto library = nvrtc::Library::open("");
  if (!library)
    GTEST_SKIP() << library.error();
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*library)->compile(
        {"rows.cu", deviceText("rows.cuh"),
         {{"pool.cuh", deviceText("pool.cuh")},
          {"row_tables.cuh", deviceText("row_tables.cuh")},
          {"elements.cuh", deviceText("elements.cuh")},
          {"staging.cuh", deviceText("staging.cuh")},
          {"foresee.cuh", deviceText("foresee.cuh")}},
         architecture,
         nvrtc::kernelFlags()});
    EXPECT_TRUE(cubin) << cubin.error();
  }
}

/// Rows of 8 bits begin at any address and have any size; every team size copies
/// all of them and nothing else.
TEST(DevicePool, MovesRowsOfAnySize) {
  std::vector<char> from(300), to;
  std::iota(from.begin(), from.end(), char(1));
  for (const size_t first : {0, 1, 2, 16, 57})
    for (const size_t bytes : {0, 1, 2, 57, 114, 128, 171})
      for (const int32_t lanes : {1, 7, 32}) {
        to.assign(320, 0);
        for (int32_t lane = 0; lane < lanes; ++lane)
          ss::copy_bytes(&to[first + 3], &from[first], int64_t(bytes), lane,
                         lanes);
        std::vector<char> expected(320, 0);
        std::copy_n(from.begin() + std::ptrdiff_t(first), bytes,
                    expected.begin() + std::ptrdiff_t(first + 3));
        ASSERT_EQ(to, expected) << first << " " << bytes << " " << lanes;
      }
}

} // namespace
