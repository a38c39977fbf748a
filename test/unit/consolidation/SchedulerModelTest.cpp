//===- SchedulerModelTest.cpp - Every interleaving up to a bound ----------===//
//
// The scheduler against a model of its owner: two layers, two slots, and every
// order of compactions, frees, allocations, starts and ends of jobs (an SVD of
// arbitrary delay) and ticks of a clock up to a bound. The model knows what bytes
// the rows hold, and when they were compacted; it never looks at epochs to judge.
//
//===----------------------------------------------------------------------===//

#include "consolidation/Scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

using namespace sinkstate::consolidation;

namespace {

constexpr int32_t kLayers = 2, kSlots = 2, kMostJobs = 2;
// As the scheduler has them.
constexpr double kHalf = 0.5, kLatest = 0.85, kProbe = 64;

struct RunningJob {
  Job job;
  std::vector<int64_t> contents; ///< what the rows were when they were read
};

struct Model {
  Scheduler scheduler{SchedulerOptions{kLayers, kSlots, kMostJobs, 2}};
  std::array<bool, kSlots> alive = {false, false};
  // Per layer and slot.
  std::array<uint64_t, kLayers * kSlots> epoch = {};
  std::array<int64_t, kLayers * kSlots> content = {};
  std::array<int64_t, kLayers * kSlots> due = {}; ///< content at a compaction
  std::array<int64_t, kLayers * kSlots> landings = {};
  std::array<double, kLayers * kSlots> compactedAt = {};
  std::array<double, kLayers> tried = {};
  double now = 0;
  int ticks = 0;
  std::vector<RunningJob> jobs;
  int64_t lastContent = 0;
  int64_t started = 0, landed = 0, dropped = 0;
  int64_t refusals = 0; ///< of work that would come too late

  static size_t place(int32_t layer, int32_t slot) {
    return size_t(layer * kSlots + slot);
  }
  Scheduler::EpochOf epochs() const {
    return [this](int32_t layer, int32_t slot) {
      return epoch[place(layer, slot)];
    };
  }
  void change(int32_t layer, int32_t slot) {
    ++epoch[place(layer, slot)];
    content[place(layer, slot)] = ++lastContent;
  }

  void compact(int32_t layer, int32_t slot) {
    change(layer, slot);
    due[place(layer, slot)] = lastContent;
    compactedAt[place(layer, slot)] = now;
    scheduler.compacted(layer, slot, epoch[place(layer, slot)], true, now);
  }
  void turnOver(int32_t slot) { // a tenant leaves, or comes
    alive[size_t(slot)] = !alive[size_t(slot)];
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      change(layer, slot);
      due[place(layer, slot)] = 0;
    }
  }

  bool busy(int32_t layer, int32_t slot) const {
    for (const RunningJob &running : jobs)
      for (const Target &target : running.job.targets)
        if (running.job.layer == layer && target.slot == slot)
          return true;
    return false;
  }
  /// Rows that are as a compaction left them, and in no job.
  bool ready(int32_t layer, int32_t slot) const {
    const size_t p = place(layer, slot);
    return due[p] != 0 && due[p] == content[p] && !busy(layer, slot);
  }

  bool isExpired(int32_t layer, int32_t slot) const {
    const double window = scheduler.window(layer);
    return window > 0 &&
           now - compactedAt[place(layer, slot)] > kHalf * window;
  }
  /// By what is known, and with nothing else under way.
  bool isTooLate(int32_t layer, int32_t slot, int64_t targets) const {
    const double window = scheduler.window(layer);
    const double one = scheduler.secondsToLand(layer);
    return window > 0 && one > 0 &&
           now + one > compactedAt[place(layer, slot)] + kLatest * window &&
           targets > 0;
  }
  bool isProbe(int32_t layer) const {
    return now - tried[size_t(layer)] > kProbe * scheduler.window(layer);
  }

  /// Nothing is begun where work is ready.
  void checkRefusal() {
    if (jobs.size() == kMostJobs)
      return;
    for (int32_t layer = 0; layer < kLayers; ++layer)
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        if (!ready(layer, slot) || isExpired(layer, slot))
          continue;
        // Behind others it depends on them; alone, on itself.
        const bool isKnown = scheduler.window(layer) > 0 &&
                             scheduler.secondsToLand(layer) > 0;
        EXPECT_TRUE(jobs.empty() ? isTooLate(layer, slot, 1) : isKnown)
            << "layer " << layer << ", slot " << slot;
        ++refusals;
      }
  }

  void startNext() {
    const Model before = *this;
    std::optional<Job> job = scheduler.next(now, epochs());
    if (!job)
      return checkRefusal();
    for (const Target &target : job->targets) {
      EXPECT_FALSE(isExpired(job->layer, target.slot));
      EXPECT_TRUE(!before.isTooLate(job->layer, target.slot, 1) ||
                  before.isProbe(job->layer));
    }
    tried[size_t(job->layer)] = now;
    EXPECT_LT(jobs.size(), size_t(kMostJobs));
    RunningJob running{*job, {}};
    EXPECT_FALSE(job->targets.empty());
    std::set<int32_t> different;
    for (const Target &target : job->targets) {
      // Never rows that changed since, and never rows twice.
      EXPECT_TRUE(ready(job->layer, target.slot));
      different.insert(target.slot);
      running.contents.push_back(content[place(job->layer, target.slot)]);
    }
    EXPECT_EQ(different.size(), job->targets.size());
    started += int64_t(job->targets.size());
    jobs.push_back(std::move(running));
  }

  void finish(size_t index) {
    RunningJob running = std::move(jobs[index]);
    jobs.erase(jobs.begin() + int64_t(index));
    scheduler.finish(running.job, now, epochs());
    for (size_t i = 0; i < running.contents.size(); ++i) {
      const size_t p = place(running.job.layer, running.job.targets[i].slot);
      // Nothing stale is swapped in, and nothing fresh is thrown away.
      EXPECT_EQ(running.job.fresh[i] != 0, content[p] == running.contents[i]);
      if (running.job.fresh[i]) {
        change(running.job.layer, running.job.targets[i].slot);
        due[p] = 0;
        ++landings[p];
        ++landed;
      } else {
        ++dropped;
      }
    }
  }

  void check() const {
    EXPECT_EQ(scheduler.underWay(), int32_t(jobs.size()));
    int64_t inJobs = 0;
    for (const RunningJob &running : jobs)
      inJobs += int64_t(running.job.targets.size());
    EXPECT_EQ(started, landed + dropped + inJobs);
    EXPECT_EQ(scheduler.startedTargets(), started);
    EXPECT_EQ(scheduler.landedTargets(), landed);
    EXPECT_EQ(scheduler.droppedTargets(), dropped);
    for (int32_t layer = 0; layer < kLayers; ++layer)
      for (int32_t slot = 0; slot < kSlots; ++slot)
        EXPECT_EQ(scheduler.isUnderWay(layer, slot), busy(layer, slot));
  }

  /// What decides the future.
  std::vector<int64_t> key() const {
    std::vector<int64_t> key = scheduler.fingerprint(now);
    key.push_back(ticks);
    key.insert(key.end(), alive.begin(), alive.end());
    for (size_t p = 0; p < content.size(); ++p)
      key.push_back(due[p] != 0 && due[p] == content[p]);
    for (const RunningJob &running : jobs) {
      key.push_back(100 + running.job.layer);
      key.push_back(int64_t(1024 * (running.job.started - now)));
      key.push_back(int64_t(1024 * (running.job.expected - now)));
      key.push_back(running.job.alone);
      key.push_back(running.job.probe);
      for (size_t i = 0; i < running.contents.size(); ++i) {
        const int32_t slot = running.job.targets[i].slot;
        key.push_back(slot);
        key.push_back(content[place(running.job.layer, slot)] ==
                      running.contents[i]);
      }
    }
    return key;
  }
};

/// Of one second each; more would only make the same shares of a window again.
constexpr int kMostTicks = 4;

/// Event `number` of those that are possible, or false.
bool apply(Model &model, int number) {
  if (number == 0) {
    if (model.ticks == kMostTicks)
      return false;
    ++model.ticks;
    model.now += 1;
    return true;
  }
  --number;
  if (number < kLayers * kSlots) {
    const int32_t slot = number % kSlots;
    if (!model.alive[size_t(slot)])
      return false;
    model.compact(number / kSlots, slot);
    return true;
  }
  number -= kLayers * kSlots;
  if (number < kSlots) {
    model.turnOver(number);
    return true;
  }
  number -= kSlots;
  if (number == 0) {
    model.startNext();
    return true;
  }
  if (size_t(number - 1) >= model.jobs.size())
    return false;
  model.finish(size_t(number - 1));
  return true;
}
constexpr int kEvents = 1 + kLayers * kSlots + kSlots + 1 + kMostJobs;

/// From any state, tenants that stay and SVDs that end get everything done,
/// even beside a layer (`hostile`, or -1) none of whose results is ever in time.
void expectProgress(Model model, int32_t hostile) {
  for (bool &alive : model.alive)
    alive = true;
  const std::array<int64_t, kLayers *kSlots> before = model.landings;
  const auto isDone = [&] {
    for (int32_t layer = 0; layer < kLayers; ++layer)
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        const size_t p = Model::place(layer, slot);
        if (layer != hostile && model.landings[p] == before[p])
          return false;
      }
    return true;
  };
  // Where SVDs are thought to take too long, every 64 windows is a chance.
  constexpr int kLeast = 24, kMost = 1500;
  for (int round = 0; round < kLeast || (round < kMost && !isDone()); ++round) {
    model.now += 1;
    for (int32_t layer = 0; layer < kLayers; ++layer)
      for (int32_t slot = 0; slot < kSlots; ++slot)
        if (!model.busy(layer, slot))
          model.compact(layer, slot);
    model.startNext();
    if (hostile >= 0)
      for (int32_t slot = 0; slot < kSlots; ++slot)
        model.compact(hostile, slot);
    while (!model.jobs.empty())
      model.finish(0);
  }
  model.check();
  EXPECT_EQ(model.scheduler.underWay(), 0);
  for (int32_t layer = 0; layer < kLayers; ++layer)
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      const size_t p = Model::place(layer, slot);
      if (layer == hostile)
        EXPECT_EQ(model.landings[p] - before[p] > 1, false);
      else
        EXPECT_GT(model.landings[p], before[p]) << layer << " " << slot;
    }
}

/// What exploring found.
struct Explored {
  size_t states = 0, events = 0, progress = 0, refusals = 0;
};

/// Every order of so many events from a beginning on.
Explored explore(const Model &beginning, int depth) {
  Explored found;
  std::set<std::vector<int64_t>> seen;
  std::vector<Model> frontier = {beginning};
  seen.insert(beginning.key());
  for (; depth > 0; --depth) {
    std::vector<Model> next;
    for (const Model &model : frontier)
      for (int event = 0; event < kEvents; ++event) {
        Model after = model;
        if (!apply(after, event))
          continue;
        ++found.events;
        after.check();
        if (testing::Test::HasFailure())
          return found;
        found.refusals += size_t(after.refusals - model.refusals);
        if (!seen.insert(after.key()).second)
          continue;
        if (seen.size() % 64 == 0) {
          ++found.progress;
          expectProgress(after, -1);
          expectProgress(after, 0);
        }
        next.push_back(std::move(after));
      }
    frontier = std::move(next);
  }
  found.states = seen.size();
  return found;
}

TEST(SchedulerModel, EveryInterleavingUpToABound) {
  const Explored found = explore(Model(), 10);
  // The bound is not so low that little is tried.
  EXPECT_GT(found.states, 100000u);
  EXPECT_GT(found.progress, 500u);
  RecordProperty("states", int(found.states));
  RecordProperty("events", int(found.events));
}

/// Requests that compact every `window` seconds, and SVDs of a job that take so long.
Model experienced(double window, double svds) {
  Model model;
  for (int32_t slot = 0; slot < kSlots; ++slot)
    model.turnOver(slot);
  for (int round = 0; round < 12; ++round) {
    for (int32_t layer = 0; layer < kLayers; ++layer)
      for (int32_t slot = 0; slot < kSlots; ++slot)
        model.compact(layer, slot);
    const double begun = model.now;
    model.startNext();
    model.now = begun + svds;
    while (!model.jobs.empty())
      model.finish(0);
    model.now = begun + window;
  }
  return model;
}

// Where it is known how long everything takes: jobs are cut, not begun behind
// others, and not begun at all.
TEST(SchedulerModel, EveryInterleavingWithWhatIsKnown) {
  size_t refusals = 0;
  for (double svds : {1.0, 2.5, 7.0}) {
    const Explored found = explore(experienced(4, svds), 8);
    EXPECT_GT(found.states, 10000u) << svds;
    EXPECT_GT(found.progress, 100u) << svds;
    refusals += found.refusals;
  }
  EXPECT_GT(refusals, 1000u);
  RecordProperty("refusals", int(refusals));
}

// What the model is for: an owner that forgets to advance an epoch is caught.
TEST(SchedulerModel, AForgottenEpochIsSeen) {
  Model model;
  model.turnOver(0);
  model.compact(0, 0);
  model.startNext();
  ASSERT_EQ(model.jobs.size(), 1u);
  model.content[0] = ++model.lastContent; // changed, and nobody says so
  model.scheduler.finish(model.jobs[0].job, model.now, model.epochs());
  EXPECT_TRUE(model.jobs[0].job.fresh[0]);
  EXPECT_NE(model.content[0], model.jobs[0].contents[0]);
}

} // namespace
