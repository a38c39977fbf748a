//===- SchedulerTest.cpp - Order and size of jobs, by a fake clock --------===//

#include "consolidation/Scheduler.h"

#include <gtest/gtest.h>

using namespace sinkstate::consolidation;

namespace {

std::vector<int32_t> slotsOf(const std::optional<Job> &job) {
  std::vector<int32_t> slots;
  if (job)
    for (const Target &target : job->targets)
      slots.push_back(target.slot);
  return slots;
}

/// All epochs are 0 unless set.
struct Owner {
  explicit Owner(SchedulerOptions options)
      : scheduler(options), epochs(size_t(options.layers * options.slots)),
        slots(options.slots) {}
  uint64_t &epoch(int32_t layer, int32_t slot) {
    return epochs[size_t(layer * slots + slot)];
  }
  void compact(int32_t layer, int32_t slot, double now, bool due = true) {
    scheduler.compacted(layer, slot, ++epoch(layer, slot), due, now);
  }
  std::optional<Job> next(double now) {
    return scheduler.next(now, [this](int32_t layer, int32_t slot) {
      return epoch(layer, slot);
    });
  }
  void finish(Job &job, double now) {
    scheduler.finish(job, now, [this](int32_t layer, int32_t slot) {
      return epoch(layer, slot);
    });
  }
  Scheduler scheduler;
  std::vector<uint64_t> epochs;
  int32_t slots;
};

TEST(Scheduler, StartsNothingThatIsNotDue) {
  Owner owner({1, 2, 4, 8});
  EXPECT_FALSE(owner.next(0));
  owner.compact(0, 0, 1, false);
  EXPECT_FALSE(owner.next(1));
  owner.compact(0, 1, 1);
  EXPECT_EQ(slotsOf(owner.next(1)), (std::vector<int32_t>{1}));
}

TEST(Scheduler, TheLayerWhoseTurnIsLongestAgoComesFirst) {
  Owner owner({3, 1, 1, 8});
  std::vector<int32_t> order;
  double now = 0;
  for (int round = 0; round < 6; ++round) {
    for (int32_t layer = 0; layer < 3; ++layer)
      owner.compact(layer, 0, now);
    std::optional<Job> job = owner.next(now);
    ASSERT_TRUE(job);
    order.push_back(job->layer);
    owner.finish(*job, now);
    now += 1;
  }
  EXPECT_EQ(order, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(Scheduler, JobsStayWithinTheBoundOfTheirLayer) {
  SchedulerOptions options{2, 8, 1, 8, {3, 100}};
  Owner owner(options);
  for (int round = 0; round < 20; ++round) {
    for (int32_t layer = 0; layer < 2; ++layer)
      for (int32_t slot = 0; slot < 8; ++slot)
        owner.compact(layer, slot, round);
    std::optional<Job> job = owner.next(round);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->targets.size(), job->layer == 0 ? 3u : 8u);
    owner.finish(*job, round); // in time, after which slices grow
  }
}

TEST(Scheduler, ADroppedLayerIsRetriedFirstAndItsJobsGetSmaller) {
  Owner owner({2, 8, 1, 8});
  auto compactAll = [&](double now) {
    for (int32_t layer = 0; layer < 2; ++layer)
      for (int32_t slot = 0; slot < 8; ++slot)
        owner.compact(layer, slot, now);
  };
  std::vector<std::pair<int32_t, size_t>> jobs;
  double now = 0;
  for (int round = 0; round < 11; ++round) {
    compactAll(now);
    std::optional<Job> job = owner.next(now);
    ASSERT_TRUE(job);
    jobs.push_back({job->layer, job->targets.size()});
    if (job->layer == 0)
      compactAll(now); // too late
    owner.finish(*job, now);
  }
  const std::vector<std::pair<int32_t, size_t>> expected = {
      {0, 8}, {0, 8}, {0, 4}, {0, 4}, {0, 2}, {0, 2}, {0, 1}, {0, 1},
      {1, 8}, // one slot that never fits its window holds nobody up
      {0, 1}, {0, 1}};
  EXPECT_EQ(jobs, expected);
}

TEST(Scheduler, AJobIsSizedToHalfTheWindow) {
  Owner owner({1, 16, 1, 16});
  auto round = [&](double now) {
    for (int32_t slot = 0; slot < 16; ++slot)
      owner.compact(0, slot, now);
    return owner.next(now);
  };
  std::optional<Job> job = round(0);
  EXPECT_EQ(job->targets.size(), 16u); // nothing is known yet
  owner.finish(*job, 1.6);             // 0.1 s each
  // A window of 1 s: five of them fit half of it.
  job = round(10);
  owner.finish(*job, 10 + 0.1 * double(job->targets.size()));
  for (double now = 11; now < 60; now += 1) {
    job = round(now);
    ASSERT_TRUE(job);
    owner.finish(*job, now + 0.1 * double(job->targets.size()));
  }
  EXPECT_GE(job->targets.size(), 4u);
  EXPECT_LE(job->targets.size(), 5u);
}

TEST(Scheduler, RowsLateInTheirWindowAreLeftForTheNext) {
  Owner owner({1, 1, 1, 8});
  owner.compact(0, 0, 0, false);
  owner.compact(0, 0, 1);
  EXPECT_FALSE(owner.next(1.6));
  owner.compact(0, 0, 2);
  EXPECT_TRUE(owner.next(2.4));
}

TEST(Scheduler, EverySlotOfALayerHasItsTurnBesideOneThatIsNeverInTime) {
  Owner owner({1, 4, 1, 1});
  std::vector<int> landed(4);
  for (int round = 0; round < 64; ++round) {
    for (int32_t slot = 0; slot < 4; ++slot)
      owner.compact(0, slot, 0);
    std::optional<Job> job = owner.next(0);
    ASSERT_TRUE(job);
    for (const Target &target : job->targets)
      if (target.slot == 0)
        owner.compact(0, 0, 0);
    owner.finish(*job, 0);
    for (size_t i = 0; i < job->targets.size(); ++i)
      landed[size_t(job->targets[i].slot)] += job->fresh[i];
  }
  EXPECT_EQ(landed[0], 0);
  for (int32_t slot = 1; slot < 4; ++slot)
    EXPECT_GT(landed[size_t(slot)], 4);
}

TEST(Scheduler, ASlotThatChangedHandsIsNotStarted) {
  Owner owner({1, 1, 1, 8});
  owner.compact(0, 0, 0);
  ++owner.epoch(0, 0);
  EXPECT_FALSE(owner.next(0));
}

} // namespace
