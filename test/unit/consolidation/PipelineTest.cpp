//===- PipelineTest.cpp - The stages and their threads --------------------===//

#include "consolidation/Pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <pthread.h>
#include <sched.h>

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

/// Half of the states are overtaken between download and SVD.
class OvertakenTransfer : public FakeTransfer {
public:
  bool isWanted(const HostJob &, const StateCopy &copy) const override {
    return copy.state % 2 == 0;
  }
  void upload(HostJob &) override {}
};

TEST(Pipeline, AnOvertakenStateIsNotDecomposedAndDoesNotShortenTheOthers) {
  OvertakenTransfer transfer;
  constexpr double kSeconds = 2e-3;
  const auto slow = [&](StateCopy &state) {
    negate(state);
    std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  };
  Pipeline pipeline(transfer, {2, 2, {}}, slow);
  pipeline.submit(jobOf(1, 8));
  const std::unique_ptr<HostJob> job = pipeline.take();
  ASSERT_TRUE(job);
  for (const StateCopy &copy : job->states)
    EXPECT_EQ(copy.done, copy.state % 2 == 0);
  // Four ran; a job of eight takes twice as long, of all threads together.
  EXPECT_GE(job->job.work, 8 * kSeconds);
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

/// Processors that this process may use.
std::vector<int32_t> ownProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int32_t> cpus;
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(size_t(cpu), &set))
      cpus.push_back(cpu);
  return cpus;
}

/// Of the calling thread; -1: several.
int32_t onlyProcessor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  if (CPU_COUNT(&set) != 1)
    return -1;
  int32_t cpu = 0;
  while (!CPU_ISSET(size_t(cpu), &set))
    ++cpu;
  return cpu;
}

/// Notes where its stages run.
class PlacedTransfer : public FakeTransfer {
public:
  void download(HostJob &job) override {
    downloadsOn = onlyProcessor();
    FakeTransfer::download(job);
  }
  void upload(HostJob &job) override {
    uploadsOn = onlyProcessor();
    FakeTransfer::upload(job);
  }
  std::atomic<int32_t> downloadsOn = -2, uploadsOn = -2;
};

TEST(Pipeline, ThreadsRunWhereTheyArePinned) {
  const std::vector<int32_t> all = ownProcessors();
  if (all.size() < 2)
    GTEST_SKIP() << "one processor: everything runs there";
  const int32_t a = all.front(), b = all.back();
  // One each in the order download, upload, SVDs, and from the beginning again.
  for (const std::vector<int32_t> &cpus :
       {std::vector<int32_t>{a, b}, {b, a}, {b}, {a, a, b, b}}) {
    PlacedTransfer transfer;
    std::mutex mutex;
    std::set<int32_t> found;
    std::vector<std::string> warnings;
    PipelineOptions options{2, 4, cpus};
    options.warn = [&](const std::string &line) { warnings.push_back(line); };
    Pipeline pipeline(transfer, options, [&](StateCopy &state) {
      negate(state);
      std::lock_guard lock(mutex);
      found.insert(onlyProcessor());
    });
    pipeline.submit(jobOf(1, 64));
    EXPECT_TRUE(pipeline.take()->states[3].done);
    const auto at = [&](size_t i) { return cpus[i % cpus.size()]; };
    EXPECT_EQ(transfer.downloadsOn, at(0));
    EXPECT_EQ(transfer.uploadsOn, at(1));
    for (int32_t cpu : found)
      EXPECT_TRUE(cpu == at(2) || cpu == at(3)) << cpu;
    EXPECT_TRUE(warnings.empty());
  }
}

TEST(Pipeline, AProcessorThatThereIsNotIsSaidAndLeavesTheThreadFree) {
  FakeTransfer transfer;
  std::vector<std::string> warnings;
  PipelineOptions options{1, 4, {ownProcessors().front(), CPU_SETSIZE - 1}};
  options.warn = [&](const std::string &line) { warnings.push_back(line); };
  Pipeline pipeline(transfer, options, negate);
  ASSERT_EQ(warnings.size(), 1u); // the upload's
  EXPECT_EQ(warnings[0].find("a thread is not bound to processor 1023 ("), 0u)
      << warnings[0];
  pipeline.submit(jobOf(1, 4));
  EXPECT_TRUE(pipeline.take()->states[3].done);
}

} // namespace
