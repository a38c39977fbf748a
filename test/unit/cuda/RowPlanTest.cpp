//===- RowPlanTest.cpp - Steps over the tables of row pools ---------------===//
//
// Random steps through the functions of device/rows.cuh, beside a model of what
// every state holds: layers move in any order, steps are planned anew or given
// up, slots join and leave. Whatever happens, a state's rows are where its table
// says until its layer moves, no row has two owners, and every block that is
// taken is a state's.
//
//===----------------------------------------------------------------------===//

#include "HostRows.h"

#include "cuda/RowPoolLayout.h"
#include "cuda/device/schedule.cuh"
#include "engine/ReturnAttempts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <random>
#include <vector>

using namespace sinkstate;
using namespace sinkstate::test;
using runtime::cuda::RowPoolSizes;

namespace {

constexpr int32_t kSlots = 5, kHeads = 2, kStates = kSlots * kHeads;
constexpr int32_t kPairs = 4, kBound = 20, kBreakEven = 12, kMostBack = 6;
constexpr int32_t kDenseRows = 10, kElements = 2;

/// One layer's tables, and what its states hold: `contents` numbers, which
/// every row and weight (of a dense state: every element) is made of.
struct Layer {
  std::vector<int64_t> base, densePlace, backMatrix, backBase;
  std::vector<int32_t> capacity, rank, status, due, work, denseWork, folds,
      backWork, backRank, backStatus, asked, last, noted, count, contents,
      foldsSeen; // contents and foldsSeen: by the model
  int32_t dueCount = 0, workCount = 0, denseCount = 0, backCount = 0,
          askedCount = 0, lastCount = 0;

  ss::RowLayer table() {
    for (auto *longs : {&base, &densePlace, &backMatrix, &backBase})
      longs->resize(kStates);
    for (auto *words : {&capacity, &rank, &status, &due, &work, &denseWork,
                        &folds, &backWork, &backRank, &backStatus, &last,
                        &noted, &contents, &foldsSeen})
      words->resize(kStates);
    asked.resize(2 * kStates);
    count.resize(kSlots);
    ss::RowLayer table = {};
    table.row_base = base.data(), table.row_capacity = capacity.data();
    table.rank = rank.data(), table.status = status.data();
    table.count = count.data();
    table.due = due.data(), table.due_count = &dueCount;
    table.work = work.data(), table.work_count = &workCount;
    table.dense_work = denseWork.data(), table.dense_count = &denseCount;
    table.dense_place = densePlace.data(), table.folds = folds.data();
    table.back_work = backWork.data(), table.back_count = &backCount;
    table.back_matrix = backMatrix.data(), table.back_base = backBase.data();
    table.back_rank = backRank.data(), table.back_status = backStatus.data();
    table.asked = asked.data(), table.asked_count = &askedCount;
    table.most_asked = 2 * kStates;
    table.last = last.data(), table.last_count = &lastCount;
    table.noted = noted.data();
    table.buffer = kPairs, table.phase = 1;
    table.heads = kHeads, table.pairs = kPairs, table.bound = kBound;
    table.break_even = kBreakEven, table.most_back = kMostBack;
    table.dense_rows = kDenseRows, table.row_elements = kElements;
    table.out_is_rows = 1, table.matrix_elements = kDenseRows * kElements;
    table.live_row = 1, table.live_matrix = kDenseRows;
    table.room = 1, table.spare = 4;
    return table;
  }
};

class RowPlan : public testing::TestWithParam<int> {
protected:
  RowPlan()
      : sizes(kElements * sizeof(float), kBound, {kDenseRows}),
        chunkClass(kChunks, ss::kNoBlock),
        freeBlocks(size_t(kChunks) * ss::kMaskWords), leaving(kChunks),
        requests(4 * kStates), granted(4 * kStates), limit(kChunks),
        rows(size_t(rowCount() * kElements)), weights(size_t(rowCount())),
        random(unsigned(GetParam())) {
    pool.rows = reinterpret_cast<char *>(rows.data());
    pool.weights = weights.data();
    pool.row_bytes = sizes.rowBytes;
    pool.chunk_rows = sizes.chunkRows, pool.chunk_count = kChunks;
    pool.class_count = int32_t(sizes.capacity.size());
    pool.most_requests = int32_t(requests.size());
    std::copy(sizes.capacity.begin(), sizes.capacity.end(), pool.capacity);
    std::copy(sizes.blocks.begin(), sizes.blocks.end(), pool.blocks);
    pool.class_of = sizes.classOf.data();
    pool.chunk_class = chunkClass.data();
    pool.free_blocks = freeBlocks.data();
    pool.leaving = leaving.data();
    pool.requests = requests.data(), pool.granted = granted.data();
    pool.report = &report, pool.limit = &limit;
    pool.bound = INT32_MAX;
    for (Layer &layer : layers)
      layerTables.push_back(layer.table());
    layerTables.back().before = 1;
    tables = {layerTables.data(), &pool, counters, &faults, position.data(),
              int32_t(layerTables.size()), 1, kSlots};
  }

  int64_t rowCount() const {
    return ss::kScrapRows + int64_t(kChunks) * sizes.chunkRows;
  }
  bool oneIn(unsigned n) { return random() % n == 0; }

  // The kernels.
  template <typename... Values>
  void launch(void (*kernel)(void *, void *const *, unsigned), unsigned blocks,
              Values... values) {
    void *parameters[] = {&values...};
    kernel(nullptr, parameters, blocks);
  }
  void plan(int32_t first, int32_t count) {
    launch(hostPlanRows, unsigned(count), tables, first, int32_t(1));
    ss::RowPool *pools = &pool;
    launch(hostProvideRows, 1, pools);
    expectExactAccounts();
  }

  /// What a state's rows are made of, at a place.
  float number(int32_t contents, int64_t element) const {
    return float(contents * 100 + element);
  }
  void write(int32_t contents, int32_t rank, int64_t row) {
    const int64_t elements = (rank < 0 ? kDenseRows : rank) * kElements;
    for (int64_t i = 0; i < elements; ++i)
      rows[size_t(row * kElements + i)] = number(contents, i);
    for (int64_t i = 0; i < rank; ++i)
      weights[size_t(row + i)] = number(contents, -1 - i);
  }
  void expectContents(size_t l) {
    const Layer &layer = layers[l];
    for (size_t s = 0; s < kStates; ++s) {
      const int32_t rank = layer.rank[s];
      const int64_t row = layer.base[s];
      ASSERT_LE(rank < 0 ? kDenseRows : rank, layer.capacity[s]);
      const int64_t elements = (rank < 0 ? kDenseRows : rank) * kElements;
      for (int64_t i = 0; i < elements; ++i)
        ASSERT_EQ(rows[size_t(row * kElements + i)],
                  number(layer.contents[s], i))
            << "state " << s << " of layer " << l;
      for (int64_t i = 0; i < rank; ++i)
        ASSERT_EQ(weights[size_t(row + i)], number(layer.contents[s], -1 - i));
    }
  }
  /// Blocks are apart, and those that are taken are the states' and those that
  /// this step has given away.
  void expectExactAccounts() {
    std::vector<bool> taken(static_cast<size_t>(rowCount()));
    int64_t held = 0;
    auto take = [&](int64_t base, int64_t capacity) {
      for (int64_t row = base; row < base + capacity; ++row) {
        ASSERT_FALSE(taken[size_t(row)]) << "row " << row << " has two owners";
        taken[size_t(row)] = true;
      }
      held += capacity;
    };
    for (Layer &layer : layers)
      for (size_t s = 0; s < kStates; ++s)
        if (layer.base[s] >= ss::kScrapRows)
          take(layer.base[s], layer.capacity[s]);
    for (int32_t i = 0; i < pool.grant_count; ++i) {
      const int32_t block = ss::granted_block(pool, requests[size_t(i)]);
      const int32_t sizeClass = requests[size_t(i)].size_class;
      if (block != ss::kNoBlock)
        take(ss::block_base(pool, block, sizeClass), pool.capacity[sizeClass]);
    }
    ASSERT_EQ(report.used_rows, held);
  }

  void listDue() {
    for (Layer &layer : layers) {
      layer.dueCount = 0;
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        layer.count[size_t(slot)] = int32_t(random() % kPairs);
        if (oneIn(2))
          for (int32_t head = 0; head < kHeads; ++head)
            layer.due[size_t(layer.dueCount++)] = slot * kHeads + head;
      }
    }
  }
  void move(int32_t l) {
    expectContents(size_t(l)); // as its decode has read them
    launch(hostMoveRows, 64, tables, l);
    expectContents(size_t(l));
  }
  /// Every state that is due is folded or compacted, within its rows.
  void compact(int32_t l) {
    Layer &layer = layers[size_t(l)];
    std::vector<int32_t> listed(layer.denseWork.begin(),
                                layer.denseWork.begin() + layer.denseCount);
    for (int32_t i = 0; i < layer.denseCount; ++i) {
      const auto s = size_t(layer.denseWork[size_t(i)]);
      folds += layer.rank[s] < 0;
      layer.foldsSeen[s] = layer.rank[s] < 0 ? layer.foldsSeen[s] + 1 : 0;
      if (layer.rank[s] < 0) // in place
        layer.contents[s] = ++lastContents;
      else // becomes what the state is when the step ends
        pending.push_back({l, int32_t(s), -1, ++lastContents});
      write(lastContents, -1, layer.densePlace[size_t(i)] / kElements);
    }
    for (int32_t i = 0; i < layer.backCount; ++i) {
      const auto s = size_t(layer.backWork[size_t(i)]);
      if (oneIn(6)) // nobody came to it: it stays dense
        continue;
      layer.backRank[s] = int32_t(random() % (kMostBack + 2));
      layer.backStatus[s] = oneIn(4) ? ss::kNotConverged : 0;
      write(++lastContents, layer.backRank[s], layer.backBase[s]);
      if (layer.backRank[s] <= kMostBack && layer.backStatus[s] == 0)
        pending.push_back({l, int32_t(s), layer.backRank[s], lastContents});
    }
    for (int32_t i = 0; i < layer.workCount; ++i) {
      const auto s = size_t(layer.work[size_t(i)]);
      listed.push_back(int32_t(s));
      const int32_t most = std::min(
          {layer.capacity[s],
           layer.rank[s] + layer.count[s / kHeads] + !layerTables[l].before, kBound});
      layer.rank[s] = std::max(0, most - int32_t(random() % (oneIn(4) ? 12 : 3)));
      layer.contents[s] = ++lastContents;
      write(lastContents, layer.rank[s], layer.base[s]);
    }
    std::vector<int32_t> due(layer.due.begin(), layer.due.begin() + layer.dueCount);
    std::sort(listed.begin(), listed.end());
    EXPECT_EQ(listed, due) << "layer " << l;
  }
  void settle(int32_t l) {
    launch(hostSettleRows, 8, tables, l);
    std::erase_if(pending, [&](const Pending &state) {
      if (l >= 0 && state.layer != l)
        return false;
      Layer &layer = layers[size_t(state.layer)];
      const auto s = size_t(state.state);
      EXPECT_EQ(layer.rank[s], state.rank);
      layer.contents[s] = state.contents;
      return true;
    });
  }
  /// Between steps.
  void release(int32_t slot, bool owned = true) {
    launch(hostReleaseRows, unsigned(layers.size()), tables, slot,
           int32_t(owned));
    for (Layer &layer : layers)
      for (int32_t head = 0; head < kHeads; ++head)
        layer.rank[size_t(slot * kHeads + head)] = 0;
  }
  void place(int32_t l, int32_t state, int32_t rank) {
    const int32_t *states = &state, *ranks = &rank;
    launch(hostPlaceRows, 1, tables, l, states, ranks, int32_t(1));
    ss::RowPool *pools = &pool;
    launch(hostProvideRows, 1, pools);
    launch(hostMoveAll, 1, tables, int32_t(-1));
    Layer &layer = layers[size_t(l)];
    if (layer.capacity[size_t(state)] < rank)
      return; // no memory
    layer.rank[size_t(state)] = rank;
    layer.contents[size_t(state)] = ++lastContents;
    write(lastContents, rank, layer.base[size_t(state)]);
  }
  std::vector<int32_t> someOrder() {
    std::vector<int32_t> order(layers.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  /// A planned step ends when some layers have moved.
  void giveUp(const std::vector<std::vector<int32_t>> &foldsBefore) {
    if (oneIn(2))
      move(int32_t(random() % 2));
    else if (oneIn(2))
      launch(hostMoveAll, 1, tables, int32_t(-1));
    for (int32_t l = 0; l < int32_t(layers.size()); ++l) {
      Layer &layer = layers[size_t(l)];
      const bool begun = oneIn(2);
      launch(hostCancelRows, 8, tables, l, int32_t(!begun));
      if (!begun) // nothing was folded
        EXPECT_EQ(layer.folds, foldsBefore[size_t(l)]);
      layer.foldsSeen = layer.folds;
    }
    EXPECT_EQ(counters[ss::kFolds], folds);
  }
  /// Each layer for itself, as in several tokens.
  void planAnew() {
    if (oneIn(2))
      launch(hostMoveAll, 1, tables, int32_t(-1));
    launch(hostCancelRows, 8, tables, int32_t(-1), int32_t(1));
    EXPECT_EQ(counters[ss::kFolds], folds);
    for (int32_t l : someOrder()) {
      plan(l, 1);
      move(l);
      compact(l);
      settle(l);
    }
  }
  /// All layers move together, or all but one, or each for itself.
  void moveAndCompact() {
    const int32_t apart = int32_t(random() % 4) - 1;
    if (apart < 2)
      launch(hostMoveAll, 1, tables, apart);
    for (int32_t l : someOrder()) {
      if (apart >= 2 || apart == l)
        move(l);
      if (oneIn(2))
        compact(l);
      else
        pendingCompactions.push_back(l);
    }
    for (int32_t l : pendingCompactions)
      compact(l);
    pendingCompactions.clear();
    settle(-1);
  }

  struct Pending {
    int32_t layer, state, rank, contents;
  };
  static constexpr int32_t kChunks = 40;
  RowPoolSizes sizes;
  std::vector<int32_t> chunkClass;
  std::vector<uint32_t> freeBlocks;
  std::vector<int32_t> leaving;
  std::vector<ss::RowRequest> requests;
  std::vector<int32_t> granted;
  int64_t limit;
  std::vector<float> rows, weights;
  std::mt19937 random;
  ss::PoolReport report = {};
  ss::RowPool pool = {};
  std::vector<int64_t> position = std::vector<int64_t>(kSlots);
  std::vector<Layer> layers = std::vector<Layer>(2);
  std::vector<ss::RowLayer> layerTables;
  ss::RowTables tables = {};
  int64_t counters[ss::kRowCounters] = {};
  int32_t faults = 0, lastContents = 0;
  int64_t folds = 0;
  std::vector<Pending> pending;
  std::vector<int32_t> pendingCompactions;
};

TEST_P(RowPlan, KeepsEveryStateWhateverAStepDoes) {
  for (int step = 0; step < 2000 && !HasFatalFailure(); ++step) {
    if (step % 50 == 49) // more memory, less, too little
      limit = (oneIn(3) ? 3 : kChunks) | (oneIn(2) ? ss::kSqueezed : 0);
    if (oneIn(60))
      release(int32_t(random() % kSlots));
    if (oneIn(20))
      place(int32_t(random() % 2), int32_t(random() % kStates),
            int32_t(random() % 12));
    listDue();
    std::vector<std::vector<int32_t>> foldsBefore;
    for (const Layer &layer : layers)
      foldsBefore.push_back(layer.folds);
    plan(0, 2);
    const unsigned what = random() % 8;
    if (what == 0)
      giveUp(foldsBefore);
    else if (what == 1)
      planAnew();
    else
      moveAndCompact();
    for (size_t l = 0; l < layers.size(); ++l) {
      expectContents(l);
      for (size_t s = 0; s < kStates; ++s)
        if (layers[l].rank[s] < 0)
          ASSERT_EQ(layers[l].folds[s], layers[l].foldsSeen[s]);
    }
    EXPECT_EQ(counters[ss::kFolds], folds);
  }
  EXPECT_GT(counters[ss::kWentDense], 0);
  EXPECT_GT(counters[ss::kWentFactored], 0);
  EXPECT_GT(folds, 100);
  EXPECT_GT(report.denied, 0);
}

// Whatever its buffer holds since: the token behind the compaction, where that came
// before it. One that is due again keeps its room for that.
TEST_P(RowPlan, SqueezesWhatTheStepBeforeHasCompacted) {
  limit = kChunks | ss::kSqueezed;
  for (int32_t l = 0; l < 2; ++l)
    for (bool due : {false, true}) {
      Layer &layer = layers[size_t(l)];
      place(l, 0, 12);
      layer.rank[0] = 4;
      layer.last[0] = 0, layer.lastCount = 1;
      const int32_t own = layerTables[size_t(l)].before;
      layer.count[0] = due ? kPairs - 1 + own : own;
      layer.dueCount = due ? kHeads : 0;
      for (int32_t head = 0; head < kHeads; ++head)
        layer.due[size_t(head)] = head;
      const int32_t before = layer.capacity[0];
      plan(0, 2);
      EXPECT_LE(*layerTables[size_t(l)].asked_count, due ? kHeads : 1);
      move(l);
      EXPECT_EQ(layer.capacity[0],
                due ? before : pool.capacity[pool.class_of[4]]);
      settle(l);
      layer.dueCount = layer.lastCount = 0;
    }
}

// Requests by their class of all states that have not to leave their chunk, which
// nobody can know before.
std::vector<int32_t> ownRequests(const ss::RowTables &tables,
                                 const ss::RowPool &pool) {
  std::vector<int32_t> asked(size_t(pool.class_count));
  for (int32_t i = 0; i < pool.request_count; ++i) {
    const ss::RowRequest &request = pool.requests[i];
    const ss::RowLayer &layer = tables.layers[request.layer];
    if (!ss::is_to_leave(pool, layer.row_base[request.state]))
      ++asked[size_t(request.size_class)];
  }
  return asked;
}

// What is due is so by the schedule's own rule. Two steps later everything that was
// asked had been foreseen, and little else; of slots without an owner nothing is.
TEST_P(RowPlan, ForeseesWhatTheNextStepsAsk) {
  for (int32_t slot = 0; slot < kSlots; ++slot)
    release(slot, slot > 0);
  std::vector<std::vector<int32_t>> coming;
  int64_t foreseen = 0, all = 0;
  for (int step = 0; step < 3000 && !HasFatalFailure(); ++step) {
    std::vector<int32_t> asked;
    for (size_t l = 0; l < layers.size(); ++l) {
      ss::ScheduleLayer schedule = {};
      schedule.heads = kHeads, schedule.buffer = kPairs, schedule.phase = 1;
      schedule.before = layerTables[l].before;
      Layer &layer = layers[l];
      layer.dueCount = 0;
      for (int32_t slot = 1; slot < kSlots; ++slot) {
        const auto s = size_t(slot);
        const bool due = ss::is_listed(schedule, position[s], layer.count[s]);
        ASSERT_EQ(due, ss::compacts_at(layerTables[l], position[s], layer.count[s]));
        for (int32_t head = 0; due && head < kHeads; ++head)
          layer.due[size_t(layer.dueCount++)] = slot * kHeads + head;
      }
    }
    launch(hostPlanRows, unsigned(layers.size()), tables, 0, int32_t(1));
    asked = ownRequests(tables, pool);
    launch(hostForeseeRows, 1, tables);
    const std::vector<int32_t> now(pool.coming, pool.coming + pool.class_count);
    ss::RowPool *pools = &pool;
    launch(hostProvideRows, 1, pools);
    ASSERT_GE(report.coming, 0);
    // Once a period of four: what is due within two steps of one is asked once.
    for (size_t c = 0; c < asked.size(); ++c)
      if (coming.size() >= 2) {
        ASSERT_LE(asked[c], coming[coming.size() - 1][c]) << "step " << step;
        ASSERT_LE(asked[c], coming[coming.size() - 2][c]) << "step " << step;
      }
    all += 2 * std::accumulate(asked.begin(), asked.end(), 0);
    foreseen += std::accumulate(now.begin(), now.end(), 0);
    coming.push_back(now);
    for (int32_t l : someOrder()) {
      move(l);
      compact(l);
    }
    settle(-1);
    for (size_t l = 0; l < layers.size(); ++l)
      for (size_t s = 1; s < kSlots; ++s)
        layers[l].count[s] = ss::compacts_at(layerTables[l], position[s],
                                             layers[l].count[s])
                                 ? layerTables[l].before
                                 : layers[l].count[s] + 1;
    for (size_t s = 1; s < kSlots; ++s)
      position[s] += 1;
    if (oneIn(50)) { // from a place of its own in the period
      const auto s = size_t(1 + random() % (kSlots - 1));
      release(int32_t(s));
      position[s] = int64_t(random() % 1000);
      for (Layer &layer : layers)
        layer.count[s] = 0;
      coming.clear();
    }
  }
  EXPECT_GT(all, 1000);
  EXPECT_LT(foreseen, all * 3 / 2);
}

// A report without foresight says so.
TEST_P(RowPlan, SaysWhetherAnybodyHasLookedAhead) {
  ss::RowPool *pools = &pool;
  launch(hostForeseeRows, 1, tables);
  launch(hostProvideRows, 1, pools);
  EXPECT_EQ(report.coming, 0); // no slot has an owner
  launch(hostProvideRows, 1, pools);
  EXPECT_EQ(report.coming, -1);
}

TEST(ReturnAttempts, AreEverRarerAndTheSameOnBothDevices) {
  std::vector<int32_t> attempts;
  for (int32_t fold = -2; fold <= 4096; ++fold) {
    ASSERT_EQ(ss::tries_factors(fold), runtime::triesFactors(uint32_t(std::max(fold, 0))));
    if (ss::tries_factors(fold))
      attempts.push_back(fold);
  }
  EXPECT_EQ(attempts, (std::vector<int32_t>{16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096}));
  EXPECT_FALSE(runtime::triesFactors(UINT32_MAX));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RowPlan, testing::Range(0, 8));

} // namespace
