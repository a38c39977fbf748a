//===- ScheduleTest.cpp - The bookkeeping kernels' own functions ----------===//

#include "HostSchedule.h"

#include "cuda/device/schedule.cuh"
#include "nvrtc/Nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

using namespace sinkstate::test;

namespace {

/// Two layers of 2 and 3 heads over 4 slots.
struct Tables {
  Tables() {
    for (int layer = 0; layer < 2; ++layer) {
      const size_t states = 4 * size_t(heads[layer]);
      for (auto *list :
           {&rank[layer], &status[layer], &work[layer], &order[layer]})
        list->assign(states, 7);
      count[layer].assign(4, 0);
      layers.push_back({count[layer].data(), rank[layer].data(),
                        status[layer].data(), work[layer].data(),
                        &workCount[layer], order[layer].data(), heads[layer],
                        4, layer, 0, 20});
    }
    schedule = {layers.data(), position.data(),   &compactions, &faults,
                stepTokens.data(), tokenPosition.data(), firstRows.data(),
                stepRows.data(), left.data(), 2, 4};
  }
  template <typename... Values>
  void run(void (*kernel)(void *, void *const *, unsigned), unsigned blocks,
           Values... values) {
    void *parameters[] = {&schedule, &values...};
    kernel(nullptr, parameters, blocks);
  }
  void begin(std::vector<int32_t> slots) {
    run(hostSchedule, 2, slots.data(), int32_t(slots.size()));
  }
  void advance(std::vector<int32_t> slots) {
    run(hostAdvance, unsigned(slots.size()), slots.data(),
        int32_t(slots.size()));
  }
  std::vector<int32_t> due(int layer) {
    std::vector<int32_t> list(work[layer].begin(),
                              work[layer].begin() + workCount[layer]);
    std::sort(list.begin(), list.end());
    return list;
  }

  int32_t heads[2] = {2, 3};
  std::vector<int32_t> count[2], rank[2], status[2], work[2], order[2];
  int32_t workCount[2] = {-1, -1};
  std::vector<int64_t> position = {0, 0, 0, 0};
  std::vector<int32_t> stepTokens = {0, 0, 0, 0};
  std::vector<int64_t> tokenPosition = {0, 0, 0, 0};
  std::vector<int32_t> firstRows = std::vector<int32_t>(2 * 4, 1);
  std::vector<int32_t> stepRows = std::vector<int32_t>(16, 5);
  std::vector<int32_t> left = {0, 0, 0, 0};
  int64_t compactions = 0;
  int32_t faults = 0;
  std::vector<ss::ScheduleLayer> layers;
  ss::Schedule schedule;
};

// A deferred layer is never due; its count runs through both halves of its keys.
TEST(DeviceSchedule, CountsDeferredLayersAndListsNoneOfTheirStates) {
  Tables t;
  t.layers[1] = {t.count[1].data(), nullptr, nullptr, nullptr, nullptr,
                 nullptr, 3, 4, 0, 1, 0};
  std::vector<int32_t> counts;
  for (int step = 0; step < 10; ++step) {
    t.begin({2});
    t.advance({2});
    counts.push_back(t.count[1][2]);
  }
  EXPECT_EQ(counts, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2}));
  EXPECT_EQ(t.compactions, 2 * t.heads[0]);
  t.run(hostReset, 2, int32_t(2));
  EXPECT_EQ(t.count[1][2], 0);
  EXPECT_EQ(t.faults, 0);
}

TEST(DeviceSchedule, ListsTheStatesOfSlotsAtTheirPhase) {
  Tables t;
  t.position = {3, 4, 0, 7}; // next: 4, 5, 1, 8; phases 0 and 1 of 4
  t.begin({3, -1, 2, 0});
  EXPECT_EQ(t.due(0), (std::vector<int32_t>{0, 1, 6, 7}));
  EXPECT_EQ(t.due(1), (std::vector<int32_t>{6, 7, 8}));
  EXPECT_EQ(t.faults, 0);
}

TEST(DeviceSchedule, BeginsWithTheProgramsThatReadMost) {
  Tables t;
  //                   slot 0        1           2           3
  t.rank[1] = {4, 30, 0, 9, -1, 22, 40, 41, 1000, 5, 6, 7};
  const std::vector<int32_t> slots = {2, -1, 0, 1};
  t.run(hostOrderPrograms, 2, slots.data(), int32_t(slots.size()));
  // Rows count in twos; a dense state counts as 20; padding comes last.
  EXPECT_EQ(t.order[1], (std::vector<int32_t>{2, 0, 1, 7, 11, 10, 9, 6, 3, 4, 5,
                                              8}));
}

TEST(DeviceSchedule, ListsFullBuffersAtAnyPosition) {
  Tables t;
  t.position = {1, 1, 1, 1};
  t.count[0] = {2, 3, 2, 2};
  t.begin({0, 1, 2, 3});
  EXPECT_EQ(t.due(0), (std::vector<int32_t>{2, 3}));
  EXPECT_TRUE(t.due(1).empty());
}

TEST(DeviceSchedule, AdvancesCountsAndPositions) {
  Tables t;
  for (int step = 0; step < 9; ++step) {
    const int32_t before = t.count[0][2];
    t.begin({2, -3});
    const bool due = !t.due(0).empty();
    t.advance({2, -3});
    EXPECT_EQ(t.count[0][2], due ? 0 : before + 1);
  }
  EXPECT_EQ(t.position, (std::vector<int64_t>{0, 0, 9, 0}));
  // Layer 0 after 4 and 8 tokens, layer 1 after 1, 5 and 9.
  EXPECT_EQ(t.compactions, 2 * 2 + 3 * 3);
  EXPECT_EQ(t.count[0][2], 1);
  EXPECT_EQ(t.count[1][2], 0);
  EXPECT_EQ(t.count[0][0], 0);
}

TEST(DeviceSchedule, PositionsGoBeyond32Bits) {
  Tables t;
  t.position[1] = (int64_t(1) << 32) + 3;
  t.begin({1});
  EXPECT_EQ(t.due(0), (std::vector<int32_t>{2, 3}));
  EXPECT_TRUE(t.due(1).empty());
}

TEST(DeviceSchedule, ResetsOneSlot) {
  Tables t;
  t.position = {5, 5, 5, 5};
  t.count[0] = t.count[1] = {1, 2, 3, 1};
  t.run(hostReset, 2, int32_t(2));
  EXPECT_EQ(t.position, (std::vector<int64_t>{5, 5, 0, 5}));
  EXPECT_EQ(t.count[1], (std::vector<int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(t.rank[0], (std::vector<int32_t>{7, 7, 7, 7, 0, 0, 7, 7}));
  EXPECT_EQ(t.status[1],
            (std::vector<int32_t>{7, 7, 7, 7, 7, 7, 0, 0, 0, 7, 7, 7}));
}

TEST(DeviceSchedule, FlagsWrongSlotsAndStaysInItsTables) {
  Tables t;
  t.position = {3, 3, 3, 3};
  t.begin({0, 1, 2, 3, 0, 4, 100});
  EXPECT_EQ(t.faults, ss::kSlotOutOfRange | ss::kSlotTwice);
  EXPECT_EQ(t.workCount[0], 8);
  t.stepRows.resize(7);
  EXPECT_EQ(t.stepRows, (std::vector<int32_t>{0, 1, 2, 3, -1, -1, -1}));
  t.advance({4, 100});
  EXPECT_EQ(t.position, (std::vector<int64_t>{3, 3, 3, 3}));
}

// Of several rows that name a slot the first one has it, in every layer's list.
TEST(DeviceSchedule, ListsASlotOnceForItsFirstRow) {
  Tables t;
  t.position = {3, 3, 3, 3};
  t.begin({2, 0, 2, -1, 0, 2});
  EXPECT_EQ(t.faults, ss::kSlotTwice);
  EXPECT_EQ(t.due(0), (std::vector<int32_t>{0, 1, 4, 5}));
  t.stepRows.resize(6);
  EXPECT_EQ(t.stepRows, (std::vector<int32_t>{2, 0, -1, -1, -1, -1}));
  t.faults = 0;
  std::vector<int32_t> other = {-4, 3, 1, 3};
  std::vector<int32_t> rows(4);
  t.run(hostTakeSlots, 1, other.data(), int32_t(4), rows.data());
  EXPECT_EQ(rows, (std::vector<int32_t>{-1, 3, 1, -1}));
  EXPECT_EQ(t.faults, ss::kSlotTwice);
}

// Until they are made fresh, steps that name them say so.
TEST(DeviceSchedule, NotesTheSlotsOfAStepThatWasLeft) {
  Tables t;
  t.begin({2, -1, 0, 2});
  t.faults = 0;
  t.stepTokens[2] = 4;
  t.run(hostLeave, 1, int32_t(4));
  EXPECT_EQ(t.left, (std::vector<int32_t>{1, 0, 1, 0}));
  EXPECT_EQ(t.stepTokens[2], 0);
  t.begin({1, 3});
  EXPECT_EQ(t.faults, 0);
  t.begin({1, 2});
  EXPECT_EQ(t.faults, ss::kSlotLeft);
  EXPECT_EQ(t.stepRows[1], 2);
  t.run(hostReset, 2, int32_t(2));
  EXPECT_EQ(t.left, (std::vector<int32_t>{1, 0, 0, 0}));
}

TEST(DeviceSchedule, CompilesForGpus) {
  auto library = sinkstate::nvrtc::Library::open("");
  if (!library)
    GTEST_SKIP() << library.error();
  std::ifstream file(SS_SOURCE_DIR "/runtime/src/cuda/device/schedule.cuh");
  const std::string source(std::istreambuf_iterator<char>(file), {});
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*library)->compile({"schedule.cu", source, {}, architecture,
                                      sinkstate::nvrtc::kernelFlags()});
    EXPECT_TRUE(cubin) << cubin.error();
  }
}

} // namespace
