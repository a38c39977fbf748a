//===- SchedulerLoadTest.cpp - Far more work than threads, by a fake clock ===//
//
// An engine on a large GPU, of which only times are modelled: every request
// compacts every layer each eight steps, and one slot of a layer takes threads as
// long as a step or two. There is always more to do than can be done; what is
// begun should land, and threads should not stand still.
//
//===----------------------------------------------------------------------===//

#include "consolidation/Scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>

using namespace sinkstate::consolidation;

namespace {

struct Load {
  int32_t layers = 24, slots = 128, heads = 32, threads = 1;
  int32_t every = 4, buffer = 8; ///< compactions to a result, steps to one
  int32_t mostSlice = 3;         ///< what fits the staging memory
  double step = 1.8e-3, svd = 75e-6, copy = 0.4e-3; ///< seconds
  double poll = 50e-6;
  double spread = 0.3; ///< of the SVDs' times, each way
  double told = 1;     ///< share of those times that the scheduler is told
};

/// The device and the stages, in ticks of the watcher's.
class Machine {
public:
  explicit Machine(const Load &load)
      : load(load), scheduler({load.layers, load.slots, 6, 8,
                               std::vector<int32_t>(size_t(load.layers),
                                                    load.mostSlice),
                               load.threads}),
        epochs(size_t(load.layers * load.slots)), since(epochs.size()),
        freeAt(size_t(load.threads)) {}

  void run(double seconds) {
    for (const double end = now + seconds; now < end; now += load.poll) {
      work();
      if (now < nextStep) // time alone makes nothing ready
        continue;
      step();
      while (std::optional<Job> job = scheduler.next(now, epochOf()))
        submit(std::move(*job));
    }
  }

  /// No steps; what is under way goes on.
  void pause(double seconds) {
    nextStep = now + seconds;
    run(seconds);
  }

  // In states.
  int64_t landed = 0, dropped = 0;
  double busySeconds = 0; ///< of all threads together

  double landedShare() const {
    return double(landed) / double(std::max<int64_t>(1, landed + dropped));
  }

  Load load;
  Scheduler scheduler;

private:
  struct Running {
    Job job;
    double downloaded = 0, uploaded = 0;
    int64_t left = 0, begun = 0; ///< SVDs
  };

  size_t at(int32_t layer, int32_t slot) const {
    return size_t(layer) * size_t(load.slots) + size_t(slot);
  }
  Scheduler::EpochOf epochOf() {
    return [this](int32_t layer, int32_t slot) {
      return epochs[at(layer, slot)];
    };
  }

  /// The compactions of a step, then what the next one takes over.
  void step() {
    nextStep += load.step;
    ++steps;
    for (int32_t layer = 0; layer < load.layers; ++layer)
      for (int32_t slot = 0; slot < load.slots; ++slot)
        if ((steps + slot + layer) % load.buffer == 0) {
          const size_t p = at(layer, slot);
          scheduler.compacted(layer, slot, ++epochs[p],
                              ++since[p] >= load.every, now);
        }
    for (auto i = running.begin(); i != running.end();) {
      if (i->uploaded == 0 || i->uploaded > now) {
        ++i;
        continue;
      }
      scheduler.finish(i->job, now, epochOf());
      for (size_t t = 0; t < i->job.targets.size(); ++t) {
        (i->job.fresh[t] ? landed : dropped) += load.heads;
        if (i->job.fresh[t])
          since[at(i->job.layer, i->job.targets[t].slot)] = 0;
      }
      i = running.erase(i);
    }
  }

  void submit(Job job) {
    Running next;
    next.left = int64_t(job.targets.size()) * load.heads;
    next.job = std::move(job);
    downloadFree = std::max(downloadFree, now) + load.copy;
    next.downloaded = downloadFree;
    running.push_back(std::move(next));
  }

  /// Threads take SVDs in the order of the downloads.
  void work() {
    for (double &free : freeAt)
      while (free <= now) {
        const auto job = std::find_if(
            running.begin(), running.end(), [&](const Running &some) {
              return some.begun < some.left && some.downloaded <= now;
            });
        if (job == running.end())
          break;
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double share = double(random >> 40) / double(1 << 24);
        const double seconds =
            load.svd * (1 + load.spread * (2 * share - 1));
        free = std::max(free, now - load.poll) + seconds;
        job->job.work += load.told * seconds;
        busySeconds += seconds;
        if (++job->begun == job->left)
          job->uploaded = free + load.copy;
      }
  }

  double now = 0, nextStep = 0, downloadFree = 0;
  int64_t steps = 0;
  uint64_t random = 1;
  std::vector<uint64_t> epochs;
  std::vector<int32_t> since;
  std::vector<double> freeAt;
  std::list<Running> running; ///< as submitted
};

// What is begun lands, and it is as much as the threads can do. Six jobs that wait
// for one thread take as long as a window: without a look at the queue, one result
// in a hundred landed here.
TEST(SchedulerLoad, WhatIsStartedLands) {
  constexpr double kSeconds = 2;
  for (int32_t heads : {32, 96})
    for (int32_t threads : {1, 2, 4, 8})
      for (double svd : {50e-6, 100e-6}) {
        Load load;
        load.heads = heads;
        load.mostSlice = heads == 96 ? 1 : 3;
        load.threads = threads;
        load.svd = svd;
        SCOPED_TRACE(testing::Message() << heads << " heads, " << threads
                                        << " threads, " << svd << " s");
        Machine machine(load);
        machine.run(kSeconds);
        // One slot's SVDs are two thirds of the window, of which there is less.
        const double alone = heads * svd / threads / (8 * load.step);
        EXPECT_GT(machine.landedShare(), alone > 0.6 ? 0.8 : 0.95);
        EXPECT_GT(machine.busySeconds, (alone > 0.4 ? 0.5 : 0.9) * kSeconds *
                                           threads);
      }
}

// Longer than a window each: they are tried now and then, and nothing else.
TEST(SchedulerLoad, NothingIsStartedThatCannotLand) {
  Load load;
  load.svd = 0.6e-3; // 19 ms a slot, of a window of 14 ms
  Machine machine(load);
  machine.run(2);
  EXPECT_EQ(machine.landed, 0);
  machine.dropped = 0;
  machine.busySeconds = 0;
  constexpr double kSeconds = 6;
  machine.run(kSeconds);
  // One slot of every layer in 64 windows.
  const double probes = kSeconds / (64 * 8 * load.step);
  EXPECT_LE(machine.dropped, int64_t(1.2 * (probes + 1) * load.layers) * load.heads);
  EXPECT_GT(machine.dropped, 0);
  // The machine was busy with something else, and is not any more.
  machine.load.svd = 50e-6;
  machine.run(6);
  machine.landed = machine.dropped = 0;
  machine.busySeconds = 0;
  machine.run(1);
  EXPECT_GT(machine.landedShare(), 0.95);
  EXPECT_GT(machine.busySeconds, 0.8);
}

// Decoding stops for a second: what was under way lands late, and that is not what
// to expect of the next.
TEST(SchedulerLoad, APauseTeachesNothing) {
  Load load;
  Machine machine(load);
  machine.run(1);
  machine.pause(1);
  machine.landed = machine.dropped = 0;
  machine.busySeconds = 0;
  machine.run(1);
  EXPECT_GT(machine.landedShare(), 0.9);
  EXPECT_GT(machine.busySeconds, 0.8);
}

// The same where there is one request, whose jobs are alone.
TEST(SchedulerLoad, APauseOfOneRequestTeachesNothing) {
  Load load;
  load.layers = load.slots = 1;
  Machine machine(load);
  machine.run(1);
  machine.landed = machine.dropped = 0;
  machine.run(1);
  const int64_t usual = machine.landed;
  EXPECT_GT(usual, 0);
  machine.pause(10);
  machine.landed = machine.dropped = 0;
  machine.run(1);
  EXPECT_GE(machine.landed, usual * 8 / 10);
}

// Threads that wait for each other take longer than their own times say: then the
// queue is longer than thought, which shows when jobs end.
TEST(SchedulerLoad, AQueueThatIsLongerThanThoughtIsFollowed) {
  Load load;
  load.told = 0.6;
  Machine machine(load);
  machine.run(2); // each layer learns by what it drops
  machine.landed = machine.dropped = 0;
  machine.busySeconds = 0;
  machine.run(2);
  EXPECT_GT(machine.landedShare(), 0.9);
  EXPECT_GT(machine.busySeconds, 0.9 * 2);
}

} // namespace
