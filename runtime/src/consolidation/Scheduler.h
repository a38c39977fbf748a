//===- Scheduler.h - What is consolidated next ------------------*- C++ -*-===//
//
// Decides which slots of which layer go to the host next, and which results may
// still be swapped in. It has no threads and no clock: its owner tells it the
// time and what happened, in decode order, and asks. It is therefore a value
// that a test can copy, and every interleaving of its events can be tried.
//
// The rows of a slot in one layer are immutable between two changes of its
// *epoch*, a number that its owner advances whenever they change: at a
// compaction, when the slot changes its tenant, when a state is loaded. A job
// carries the epochs at which its rows were read; a result is swapped in only
// if the epoch is still the same, and dropped otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONSOLIDATION_SCHEDULER_H
#define SINKSTATE_CONSOLIDATION_SCHEDULER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sinkstate::consolidation {

/// The rows of one slot in one layer, as they were at an epoch.
struct Target {
  int32_t slot = 0;
  uint64_t epoch = 0;
};

/// Slots of one layer that travel through the stages together.
struct Job {
  uint64_t id = 0;
  int32_t layer = 0;
  double started = 0; ///< seconds
  /// Set by the owner before Scheduler::finish(): seconds of all SVD threads
  /// together; 0: not known; less: none was done.
  double work = 0;
  double expected = 0; ///< the scheduler's: when its SVDs are done
  bool alone = false;  ///< and whether nothing was under way before it
  bool probe = false;  ///< and whether it was thought to be too late
  std::vector<Target> targets;
  /// Set by Scheduler::finish(), per target: its rows are still those that were
  /// read.
  std::vector<uint8_t> fresh;
};

struct SchedulerOptions {
  int32_t layers = 1;
  int32_t slots = 1;
  /// Jobs under way at the same time: the places in the stages and queues.
  int32_t mostJobs = 4;
  /// Targets of a job before anything is known of how long one takes.
  int32_t firstSlice = 8;
  /// Per layer, targets of a job at most; empty: all slots.
  std::vector<int32_t> mostSlice = {};
  /// Threads that share the SVDs of a job.
  int32_t svdThreads = 1;
};

class Scheduler {
public:
  using EpochOf = std::function<uint64_t(int32_t layer, int32_t slot)>;

  explicit Scheduler(const SchedulerOptions &options);

  /// A compaction of this slot is done and its rows have this epoch now. `due`:
  /// its frozen part should be consolidated.
  void compacted(int32_t layer, int32_t slot, uint64_t epoch, bool due,
                 double now);

  /// The next job, if there is work that can be done in time and a place is free.
  /// Once it is known how long SVDs take, no job is begun, or made so large, that
  /// its results are expected too late: behind the jobs under way, and before most
  /// of the window of each of its slots is over. A layer whose results were dropped
  /// comes first, as long as making its jobs smaller can help; then the layer whose
  /// turn is longest ago.
  std::optional<Job> next(double now, const EpochOf &epochOf);

  /// A job of exactly one slot, whatever else is under way: for owners that
  /// decide themselves when results land.
  Job single(int32_t layer, int32_t slot, uint64_t epoch, double now);

  /// The job is at its end. Targets that `job.fresh` then names are to be
  /// swapped in now, before anything else happens. Takes no memory.
  void finish(Job &job, double now, const EpochOf &epochOf);

  /// Jobs under way.
  int32_t underWay() const { return jobs; }
  bool isUnderWay(int32_t layer, int32_t slot) const {
    return at(layer, slot).busy;
  }
  /// Targets of the next job of this layer at most.
  int32_t slice(int32_t layer) const { return layers[size_t(layer)].slice; }

  int64_t startedTargets() const { return started; }
  int64_t landedTargets() const { return landed; }
  int64_t droppedTargets() const { return dropped; }

  // What is known of a layer, in seconds; 0: nothing.
  double window(int32_t layer) const { return layers[size_t(layer)].window; }
  /// Until the results of a job of one target can land, beginning now.
  double secondsToLand(int32_t layer) const {
    const double seconds = secondsOf(layers[size_t(layer)]);
    return seconds > 0 ? seconds + latency : 0;
  }

  /// For tests: everything that decides the future, but the jobs; times as they
  /// are seen from now.
  std::vector<int64_t> fingerprint(double now) const;

private:
  struct Place {
    bool waiting = false; ///< compacted at `epoch`, and due; then listed
    bool listed = false;
    bool busy = false;    ///< in a job
    uint64_t epoch = 0;
    double compactedAt = 0;
    bool everCompacted = false;
    int64_t turn = 0; ///< of its last landing
  };
  struct Layer {
    int32_t slice = 1;
    int32_t most = 1;  ///< its bound
    int32_t drops = 0; ///< one after another at this slice
    bool retry = false;
    int64_t turn = 0;  ///< of its last landing, or of giving up
    double window = 0; ///< seconds between two compactions; 0: not known
    double secondsPerTarget = 0; ///< of the SVD threads together; 0: not known
    double caution = 1; ///< times what SVDs take: results were too late
    double tried = 0; ///< when a job of it was begun
    double compactedAt = 0; ///< any slot, last
    /// Slots that may be waiting, so that nobody looks at all of them.
    std::vector<int32_t> listed;
  };

  Place &at(int32_t layer, int32_t slot) {
    return places[size_t(layer) * size_t(slots) + size_t(slot)];
  }
  const Place &at(int32_t layer, int32_t slot) const {
    return places[size_t(layer) * size_t(slots) + size_t(slot)];
  }
  std::vector<int32_t> ready(int32_t layer, double now,
                             const EpochOf &epochOf);
  int32_t chooseLayer(double now, const EpochOf &epochOf,
                      std::vector<int32_t> &slotsOfLayer);
  size_t sliceNow(const Layer &layer) const;
  std::vector<int32_t> fitting(int32_t layer, std::vector<int32_t> slots,
                               double now) const;
  bool isProbe(const Layer &layer, double now) const;
  bool isHopeless(const Layer &layer, double now) const;
  /// Of one target's SVDs, with caution; of any layer where this one's is not
  /// known; 0: none's is.
  double secondsOf(const Layer &layer) const {
    return layer.caution * (layer.secondsPerTarget > 0
                                ? layer.secondsPerTarget
                                : secondsPerTarget);
  }
  void learn(const Job &job, bool inTime, double now);
  void noteDrop(Layer &layer, size_t targets);
  Job begin(int32_t layer, const std::vector<int32_t> &chosen, double now);

  int32_t slots, mostJobs, svdThreads;
  std::vector<Layer> layers;
  std::vector<Place> places;
  int32_t jobs = 0;
  uint64_t lastId = 0;
  int64_t turns = 0;
  int64_t started = 0, landed = 0, dropped = 0;
  // What is expected of the jobs under way.
  double queueEnd = 0;   ///< when their SVDs are done
  double shift = 0;      ///< by which all Job::expected are to be moved
  double latency = 0;    ///< of a job beside its SVDs: copies, and the landing
  double lastFinish = 0;
  double secondsPerTarget = 0; ///< of any layer
};

} // namespace sinkstate::consolidation

#endif
