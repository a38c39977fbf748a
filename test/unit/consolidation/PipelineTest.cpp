//===- PipelineTest.cpp - The stages and their threads --------------------===//

#include "consolidation/Pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

using namespace sinkstate::consolidation;

namespace {

/// Rows of one element; the SVD replaces it by its negative.
class FakeTransfer : public StateTransfer {
public:
  void download(HostJob &job) override {
    std::lock_guard lock(mutex);
    downloads.push_back(job.job.id);
    for (StateCopy &copy : job.states) {
      ReadStage pending = ReadStage::pending;
      if (!copy.stage->compare_exchange_strong(pending, ReadStage::copying))
        continue;
      copy.rows = {float(copy.state)};
      *copy.stage = ReadStage::copied;
    }
  }
  void upload(HostJob &job) override {
    std::lock_guard lock(mutex);
    uploads.push_back(job.job.id);
    for (const StateCopy &copy : job.states)
      everyStateWasDone &= copy.done == (*copy.stage == ReadStage::copied);
  }
  std::mutex mutex;
  std::vector<uint64_t> downloads, uploads;
  bool everyStateWasDone = true;
};

std::unique_ptr<HostJob> jobOf(uint64_t id, int states) {
  auto job = std::make_unique<HostJob>();
  job->job.id = id;
  for (int i = 0; i < states; ++i) {
    job->states.emplace_back();
    job->states.back().state = int64_t(id) * 100 + i;
  }
  return job;
}

void negate(StateCopy &state) { state.rows[0] = -state.rows[0]; }

TEST(Pipeline, EveryJobGoesThroughEveryStage) {
  FakeTransfer transfer;
  Pipeline pipeline(transfer, {3, 8, {}}, negate);
  std::set<uint64_t> ids;
  uint64_t submitted = 0;
  while (ids.size() < 100) {
    while (submitted < 100 && submitted - ids.size() < 8) {
      ++submitted;
      pipeline.submit(jobOf(submitted, 1 + int(submitted % 5)));
    }
    std::unique_ptr<HostJob> job = pipeline.take();
    ASSERT_TRUE(job);
    for (const StateCopy &copy : job->states) {
      EXPECT_TRUE(copy.done);
      EXPECT_EQ(copy.rows[0], -float(copy.state));
    }
    EXPECT_TRUE(ids.insert(job->job.id).second);
  }
  EXPECT_EQ(pipeline.take(), nullptr);
  EXPECT_EQ(pipeline.tryTake(), nullptr);
  EXPECT_EQ(transfer.downloads.size(), 100u);
  EXPECT_TRUE(std::is_sorted(transfer.downloads.begin(),
                             transfer.downloads.end()));
  EXPECT_EQ(transfer.uploads.size(), 100u);
  EXPECT_TRUE(transfer.everyStateWasDone);
}

TEST(Pipeline, ACancelledStateIsNotDecomposed) {
  FakeTransfer transfer;
  Pipeline pipeline(transfer, {1, 2, {}}, negate);
  auto job = jobOf(1, 2);
  *job->states[0].stage = ReadStage::cancelled;
  pipeline.submit(std::move(job));
  job = pipeline.take();
  EXPECT_FALSE(job->states[0].done);
  EXPECT_TRUE(job->states[1].done);
}

TEST(Pipeline, AnSvdThatFindsNoMemoryLeavesItsStateAlone) {
  FakeTransfer transfer;
  Pipeline pipeline(transfer, {1, 2, {}},
                    [](StateCopy &) { throw std::bad_alloc(); });
  pipeline.submit(jobOf(1, 3));
  std::unique_ptr<HostJob> job = pipeline.take();
  ASSERT_TRUE(job);
  for (const StateCopy &copy : job->states)
    EXPECT_FALSE(copy.done);
}

TEST(Pipeline, EndsWithJobsInEveryStage) {
  for (int round = 0; round < 20; ++round) {
    FakeTransfer transfer;
    Pipeline pipeline(transfer, {2, 4, {}}, negate);
    for (uint64_t id = 1; id <= 4; ++id)
      pipeline.submit(jobOf(id, 20));
  }
}

TEST(Pipeline, PinnedThreadsDoTheSame) {
  FakeTransfer transfer;
  Pipeline pipeline(transfer, {2, 4, {0}}, negate);
  pipeline.submit(jobOf(1, 4));
  EXPECT_TRUE(pipeline.take()->states[3].done);
}

} // namespace
