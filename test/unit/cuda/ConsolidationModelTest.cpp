//===- ConsolidationModelTest.cpp - Every interleaving with the decode ----===//
//
// The device's functions themselves: the decode stream and the host's stages
// each have their order, and every interleaving of the two up to a bound is
// run. Rows carry the number of their version, so that a result that lands on
// other rows than it was made from is seen.
//
//===----------------------------------------------------------------------===//

#include "HostConsolidation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace sinkstate::test;

namespace {

constexpr int32_t kRows = 2;
#ifdef SS_SANITIZE_thread
constexpr int kMostSteps = 2; // a hundred times slower
#else
constexpr int kMostSteps = 3;
#endif

/// One state of two rows. Version n of a row is 2n as compaction leaves it, and
/// 2n + 1 consolidated.
struct World {
  World() {
    layer.rows = reinterpret_cast<uint8_t *>(rows);
    layer.weights = weights;
    layer.row_base = &base;
    layer.rank = &rank;
    layer.status = &status;
    layer.work = &work;
    layer.work_count = &workCount;
    layer.epoch = &epoch;
    layer.since = &since;
    layer.notes = &note;
    layer.changes = &changes;
    layer.changed = &changed;
    layer.total_rows = kRows;
    layer.heads = 1;
    layer.row_bytes = sizeof(float);
    layer.every = 1;
    layer.crowded = kRows;
    layer.most = kRows;
    frozen = {&layer, &position, 1, 1};
    work_ = {layer, &position, &slot, &read, data, &used, sizeof data};
    for (ss::Mailbox &box : boxes.box)
      box = {&none, &none, nullptr, nullptr, nullptr, nullptr, nullptr};
    boxes.box[0] = {&ready,    &count,  &result,    results,
                    &answered, &answer, &answeredAt};
  }
  World(const World &) = delete;

  void writeRow(int32_t row) {
    rows[row] = weights[row] = float(2 * version);
    rank = kRows;
  }
  bool isVersion(bool consolidated) const {
    for (int32_t row = 0; row < kRows; ++row)
      if (rows[row] != float(2 * version + consolidated) ||
          weights[row] != rows[row])
        return false;
    return true;
  }

  int64_t version = 0; ///< of the rows, as the decode stream makes them
  float rows[kRows] = {}, weights[kRows] = {};
  int64_t base = 0, position = 7;
  int32_t rank = kRows, status = 0, work = 0, workCount = 1, since = 0;
  uint64_t epoch = 0, note = 0, changes = 0, changed = 0;
  ss::FrozenLayer layer = {};
  ss::Frozen frozen = {};
  // The host's side.
  int32_t slot = 0;
  ss::GatheredState read = {};
  alignas(16) uint8_t data[64] = {};
  uint64_t used = 0, none = 0;
  ss::Gather work_ = {};
  int64_t gatheredBase = 0;
  uint64_t target = 0;
  ss::Mailboxes boxes = {};
  uint64_t ready = 0, count = 0, answered = 0, answer = 0, sequence = 0;
  int64_t answeredAt = -1;
  ss::Result result = {};
  alignas(16) uint8_t results[64] = {};
  int landed = 0, dropped = 0, published = 0;
};

using Operation = void (*)(World &);

//===----------------------------------------------------------------------===//
// The decode stream
//===----------------------------------------------------------------------===//

void swapResults(World &w) {
  const bool wasOpen = w.ready != 0 && w.answered != w.sequence;
  const bool wasRaw = w.isVersion(false);
  swapIn(w.frozen, w.boxes);
  if (!wasOpen)
    return;
  ASSERT_EQ(w.answer / 2, w.sequence);
  if (w.answer & ss::kLanded) {
    ++w.landed;
    // As a whole, and of exactly these rows.
    ASSERT_TRUE(w.isVersion(true)) << "version " << w.version;
  } else {
    ++w.dropped;
    ASSERT_EQ(w.isVersion(false), wasRaw);
  }
}
void beginCompaction(World &w) {
  ++w.version;
  w.writeRow(0);
}
void endCompaction(World &w) { w.writeRow(1); }
void note(World &w) { noteCompactions(w.frozen); }
void changeTenant(World &w) {
  ++w.version;
  w.writeRow(0);
  w.writeRow(1);
}
void noteTenant(World &w) { noteSlot(w.frozen, 0); }

const std::vector<std::vector<Operation>> kSteps = {
    {swapResults},                                         // no compaction
    {swapResults, beginCompaction, endCompaction, note},
    {changeTenant, noteTenant}}; // between two steps

//===----------------------------------------------------------------------===//
// The host's stages
//===----------------------------------------------------------------------===//

void chooseTarget(World &w) { w.target = w.note >> ss::kNoteBits; }
void beginRead(World &w) {
  w.used = 0;
  w.read = ss::gather_begin(w.work_, 0, w.gatheredBase);
  ss::gather_copy(w.work_, w.read, w.gatheredBase, 0, 1);
}
/// The second row is read only now.
void endRead(World &w) {
  std::memcpy(w.data + sizeof(float), &w.weights[1], sizeof(float));
  std::memcpy(w.data + 16 + sizeof(float), &w.rows[1], sizeof(float));
  ss::gather_end(w.work_, 0, w.read);
}
/// Even what is torn: the check of the swap alone has to keep it out.
void publishResult(World &w) {
  std::memcpy(w.results, w.data, sizeof w.results);
  for (int32_t row = 0; row < kRows; ++row)
    for (size_t at : {size_t(0), size_t(16)}) {
      float value;
      std::memcpy(&value, w.data + at + size_t(row) * 4, 4);
      value = 2 * std::floor(value / 2) + 1;
      std::memcpy(w.results + at + size_t(row) * 4, &value, 4);
    }
  w.result = {};
  w.result.sequence = ++w.sequence;
  w.result.epoch = w.read.before;
  w.result.rank = kRows;
  w.count = 1;
  w.ready = w.sequence;
  ++w.published;
}
void publishFresh(World &w) {
  if (w.read.before == w.target && w.read.after == w.target)
    publishResult(w);
}
void clearMailbox(World &w) {
  if (w.answer / 2 == w.sequence)
    w.ready = 0;
}
/// The next publication needs an empty mailbox: it waits in vain here.
void publishIfClear(World &w) {
  if (w.ready == 0)
    publishResult(w);
}
void publishFreshIfClear(World &w) {
  if (w.ready == 0)
    publishFresh(w);
}

/// Runs every merge of the two orders.
class Merges {
public:
  Merges(std::vector<Operation> a, std::vector<Operation> b)
      : a(std::move(a)), b(std::move(b)) {}
  /// `check` sees every world at its end.
  template <typename Check> int run(const Check &check) {
    order.clear();
    return extend(a.size(), b.size(), check);
  }

private:
  template <typename Check>
  int extend(size_t leftA, size_t leftB, const Check &check) {
    if (leftA + leftB == 0) {
      World world;
      size_t nextA = 0, nextB = 0;
      for (bool first : order)
        (first ? a[nextA++] : b[nextB++])(world);
      check(world);
      return 1;
    }
    int count = 0;
    for (bool first : {true, false}) {
      if ((first ? leftA : leftB) == 0)
        continue;
      order.push_back(first);
      count += extend(leftA - first, leftB - !first, check);
      order.pop_back();
      if (testing::Test::HasFatalFailure())
        return count;
    }
    return count;
  }
  std::vector<Operation> a, b;
  std::vector<bool> order;
};

/// All orders of so many steps.
std::vector<std::vector<Operation>> scripts(int steps) {
  std::vector<std::vector<Operation>> all = {{}};
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<Operation>> longer;
    for (const auto &script : all)
      for (const auto &kind : kSteps) {
        longer.push_back(script);
        longer.back().insert(longer.back().end(), kind.begin(), kind.end());
      }
    all = std::move(longer);
  }
  return all;
}

void expectNothingStale(Operation publish) {
  const std::vector<Operation> host = {
      chooseTarget, beginRead, endRead, publish,
      clearMailbox, beginRead, endRead, publish};
  int worlds = 0, landed = 0, dropped = 0;
  for (const std::vector<Operation> &script : scripts(kMostSteps)) {
    worlds += Merges(script, host).run([&](World &world) {
      swapResults(world);
      clearMailbox(world);
      EXPECT_EQ(world.ready, 0u); // everything published has its answer
      EXPECT_EQ(world.landed + world.dropped, world.published);
      EXPECT_EQ(world.answered, world.sequence);
      landed += world.landed;
      dropped += world.dropped;
    });
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(worlds, kMostSteps == 3 ? 400000 : 10000);
  EXPECT_GT(landed, worlds / 50);
  EXPECT_GT(dropped, worlds / 50);
}

TEST(ConsolidationModel, NothingStaleOrTornIsSwappedIn) {
  expectNothingStale(publishIfClear);
}

TEST(ConsolidationModel, NeitherIsWhatTheDownloadHasChecked) {
  expectNothingStale(publishFreshIfClear);
}

//===----------------------------------------------------------------------===//
// Single functions
//===----------------------------------------------------------------------===//

TEST(ConsolidationKernels, NoteWhatIsDue) {
  World w;
  w.layer.every = 3;
  w.layer.active = 1;
  auto compacted = [&](int32_t rank) {
    w.rank = rank;
    note(w);
    EXPECT_EQ(w.note >> ss::kNoteBits, w.epoch);
    EXPECT_TRUE(w.note & ss::kNoteCompacted);
    return (w.note & ss::kNoteDue) != 0;
  };
  EXPECT_FALSE(compacted(2));
  EXPECT_FALSE(compacted(2));
  EXPECT_FALSE(compacted(1)); // its turn, but nothing is frozen
  EXPECT_FALSE(compacted(2));
  EXPECT_FALSE(compacted(2));
  EXPECT_TRUE(compacted(2)); // its turn
  EXPECT_TRUE(compacted(2)); // nothing has landed
  EXPECT_FALSE(compacted(1));
  EXPECT_TRUE(compacted(2));
  noteTenant(w);
  EXPECT_EQ(w.since, 0);
  EXPECT_EQ(w.note, w.epoch << ss::kNoteBits);
  w.layer.crowded = 1;
  EXPECT_TRUE(compacted(2)); // the next compaction may drop some
  noteTenant(w);
  w.layer.every = 0;
  EXPECT_TRUE(compacted(2));
  noteTenant(w);
  w.layer.crowded = 2;
  EXPECT_FALSE(compacted(2));
  EXPECT_EQ(w.changes, 15u);
  EXPECT_EQ(w.epoch, 15u);
}

TEST(ConsolidationKernels, NoteASlotOnceWhateverItsHeads) {
  World w;
  int32_t ranks[6] = {2, 2, 2, 2, 2, 2}, work[6] = {4, 5, 0, 1, 2, 3};
  uint64_t epochs[3] = {}, notes[3] = {};
  int32_t since[3] = {}, count = 4;
  w.layer.rank = ranks;
  w.layer.work = work;
  w.layer.work_count = &count;
  w.layer.epoch = epochs;
  w.layer.notes = notes;
  w.layer.since = since;
  w.layer.heads = 2;
  note(w);
  EXPECT_EQ(epochs[0], 1u);
  EXPECT_EQ(epochs[1], 0u);
  EXPECT_EQ(epochs[2], 1u);
  EXPECT_EQ(w.changes, 1u);
  count = 0;
  note(w);
  EXPECT_EQ(w.changes, 1u);
}

TEST(ConsolidationKernels, ReadWithinTheRowsWhateverTheyAreToldMeanwhile) {
  for (const auto &[base, rank] : std::vector<std::pair<int64_t, int32_t>>{
           {1, 2}, {-1, 2}, {0, 3}, {int64_t(1) << 62, 1}, {0, -1}, {0, 0}}) {
    World w;
    w.base = base;
    w.rank = rank;
    beginRead(w);
    EXPECT_EQ(w.read.rank, 0) << base << " " << rank;
    EXPECT_EQ(w.used, 0u);
  }
}

TEST(ConsolidationKernels, AResultWithoutRowsSetsItsStatusAlone) {
  World w;
  beginRead(w);
  endRead(w);
  publishResult(w);
  w.result.rank = -1;
  w.result.status = 4;
  w.since = 5;
  swapIn(w.frozen, w.boxes);
  EXPECT_EQ(w.status, 4);
  EXPECT_EQ(w.rank, kRows);
  EXPECT_EQ(w.since, 0);
  EXPECT_EQ(w.answer, 2 * w.sequence + ss::kLanded);
  EXPECT_EQ(w.answeredAt, 7);
  EXPECT_TRUE(w.isVersion(false));
}

} // namespace
