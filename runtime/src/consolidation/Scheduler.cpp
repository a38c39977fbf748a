//===- Scheduler.cpp - What is consolidated next --------------------------===//

#include "consolidation/Scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sinkstate::consolidation {
namespace {

/// A job is to be done in half of the window that its rows are valid for.
constexpr double kShareOfWindow = 0.5;
/// And its results are expected within so much of it: what is expected is a mean.
constexpr double kLatestInWindow = 0.85;
/// Windows after which a layer whose SVDs are thought to take too long is tried
/// again, with one slot: it may have been the machine.
constexpr double kWindowsToProbe = 64;
/// Dropped jobs, one after another, after which jobs are made smaller.
constexpr int32_t kDropsBeforeHalving = 2;
/// How results that were late, and in time, change what SVDs are expected to take.
constexpr double kTooLate = 1.25, kInTime = 0.98, kMostCaution = 4;
/// Weight of the newest value in a mean that forgets.
constexpr double kNewest = 0.25;

void average(double &mean, double value) {
  mean = mean > 0 ? mean + kNewest * (value - mean) : value;
}

} // namespace

Scheduler::Scheduler(const SchedulerOptions &options)
    : slots(options.slots), mostJobs(options.mostJobs),
      svdThreads(std::max(1, options.svdThreads)),
      layers(size_t(options.layers)),
      places(size_t(options.layers) * size_t(options.slots)) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].most = options.mostSlice.empty()
                         ? options.slots
                         : std::clamp(options.mostSlice[i], 1, options.slots);
    layers[i].slice = std::clamp(options.firstSlice, 1, layers[i].most);
  }
}

void Scheduler::compacted(int32_t layer, int32_t slot, uint64_t epoch, bool due,
                          double now) {
  Place &place = at(layer, slot);
  if (due && !place.listed) {
    layers[size_t(layer)].listed.push_back(slot);
    place.listed = true;
  }
  if (place.everCompacted && now > place.compactedAt)
    average(layers[size_t(layer)].window, now - place.compactedAt);
  place.everCompacted = true;
  place.compactedAt = layers[size_t(layer)].compactedAt = now;
  place.waiting = due;
  place.epoch = epoch;
}

std::vector<int32_t> Scheduler::ready(int32_t index, double now,
                                      const EpochOf &epochOf) {
  Layer &layer = layers[size_t(index)];
  std::vector<int32_t> found;
  found.reserve(layer.listed.size()); // nothing below takes memory
  std::erase_if(layer.listed, [&](int32_t slot) {
    Place &place = at(index, slot);
    if (place.waiting && place.busy)
      return false;
    // Rows that wait for long are about to change, and others have changed
    // already: the next compaction brings them back here.
    const bool expired =
        layer.window > 0 &&
        now - place.compactedAt > kShareOfWindow * layer.window;
    if (expired || epochOf(index, slot) != place.epoch)
      place.waiting = false;
    if (place.waiting)
      found.push_back(slot);
    place.listed = place.waiting;
    return !place.listed;
  });
  std::sort(found.begin(), found.end());
  return found;
}

int32_t Scheduler::chooseLayer(double now, const EpochOf &epochOf,
                               std::vector<int32_t> &slotsOfLayer) {
  int32_t chosen = -1;
  for (int32_t index = 0; index < int32_t(layers.size()); ++index) {
    const Layer &layer = layers[size_t(index)];
    if (chosen >= 0) {
      const Layer &best = layers[size_t(chosen)];
      if (best.retry > layer.retry ||
          (best.retry == layer.retry && best.turn <= layer.turn))
        continue;
    }
    if (layer.listed.empty() || isHopeless(layer, now))
      continue;
    std::vector<int32_t> found =
        fitting(index, ready(index, now, epochOf), now);
    if (found.empty())
      continue;
    chosen = index;
    slotsOfLayer = std::move(found);
  }
  return chosen;
}

size_t Scheduler::sliceNow(const Layer &layer) const {
  size_t most = size_t(layer.slice);
  const double seconds = secondsOf(layer);
  if (layer.window > 0 && seconds > 0) {
    const double fits = kShareOfWindow * layer.window / seconds;
    if (fits < double(most))
      most = size_t(fits);
  }
  return std::max<size_t>(1, most);
}

/// Not even alone would one slot be in time, and that was last tried long ago.
bool Scheduler::isProbe(const Layer &layer, double now) const {
  return secondsOf(layer) + latency > kLatestInWindow * layer.window &&
         now - layer.tried > kWindowsToProbe * layer.window;
}

/// Not even the slot that was compacted last is in time: known without a look at
/// any, since where there is much to do, this is the rule.
bool Scheduler::isHopeless(const Layer &layer, double now) const {
  const double seconds = secondsOf(layer);
  return layer.window > 0 && seconds > 0 && !isProbe(layer, now) &&
         std::max(now, queueEnd) + latency + seconds >
             layer.compactedAt + kLatestInWindow * layer.window;
}

/// Of the slots that are ready, those for the next job, the longest waiting ones
/// first: so many that the results come in time for each.
std::vector<int32_t> Scheduler::fitting(int32_t index,
                                        std::vector<int32_t> found,
                                        double now) const {
  const Layer &layer = layers[size_t(index)];
  std::sort(found.begin(), found.end(), [&](int32_t a, int32_t b) {
    return std::pair(at(index, a).turn, a) < std::pair(at(index, b).turn, b);
  });
  const size_t most = std::min(found.size(), sliceNow(layer));
  const double seconds = secondsOf(layer);
  if (layer.window <= 0 || seconds <= 0) {
    found.resize(most);
    return found;
  }
  if (isProbe(layer, now)) {
    found.resize(std::min<size_t>(found.size(), 1));
    return found;
  }
  std::vector<int32_t> chosen;
  double end = std::max(now, queueEnd) + latency;
  double latest = std::numeric_limits<double>::infinity();
  for (int32_t slot : found) {
    const double own =
        at(index, slot).compactedAt + kLatestInWindow * layer.window;
    if (chosen.size() == most)
      break;
    if (end + seconds > std::min(latest, own))
      continue;
    latest = std::min(latest, own);
    end += seconds;
    chosen.push_back(slot);
  }
  return chosen;
}

Job Scheduler::begin(int32_t layer, const std::vector<int32_t> &chosen,
                     double now) {
  Job job;
  job.id = ++lastId;
  job.layer = layer;
  job.started = now;
  job.alone = jobs == 0;
  job.probe = isProbe(layers[size_t(layer)], now);
  queueEnd = std::max(now, queueEnd) +
             double(chosen.size()) * secondsOf(layers[size_t(layer)]);
  job.expected = queueEnd - shift;
  layers[size_t(layer)].tried = now;
  job.targets.reserve(chosen.size());
  job.fresh.resize(chosen.size());
  for (int32_t slot : chosen) {
    Place &place = at(layer, slot);
    place.busy = true;
    place.waiting = false;
    job.targets.push_back({slot, place.epoch});
  }
  ++jobs;
  started += int64_t(chosen.size());
  return job;
}

std::optional<Job> Scheduler::next(double now, const EpochOf &epochOf) {
  if (jobs >= mostJobs)
    return std::nullopt;
  std::vector<int32_t> chosen;
  const int32_t layer = chooseLayer(now, epochOf, chosen);
  if (layer < 0)
    return std::nullopt;
  return begin(layer, chosen, now);
}

Job Scheduler::single(int32_t layer, int32_t slot, uint64_t epoch, double now) {
  at(layer, slot).epoch = epoch;
  return begin(layer, {slot}, now);
}

void Scheduler::noteDrop(Layer &layer, size_t targets) {
  if (++layer.drops < kDropsBeforeHalving) {
    layer.retry = true;
    return;
  }
  layer.drops = 0;
  // One slot that does not fit its window cannot be made smaller: the layer
  // waits for its turn like the others, so that they are not held up for ever.
  layer.retry = targets > 1;
  layer.slice = std::max(1, int32_t(targets) / 2);
  if (!layer.retry)
    layer.turn = ++turns;
}

/// How long SVDs take, and how far expectations were off.
void Scheduler::learn(const Job &job, bool inTime, double now) {
  Layer &layer = layers[size_t(job.layer)];
  const auto targets = double(job.targets.size());
  // Without the owner's figure: the jobs before it had the threads first.
  const double seconds = job.work > 0
                             ? job.work / svdThreads
                             : now - std::max(job.started, lastFinish);
  const bool isSample = job.work >= 0;
  if (isSample) {
    average(layer.secondsPerTarget, seconds / targets);
    average(secondsPerTarget, seconds / targets);
  }
  lastFinish = now;
  // Whatever else makes results late: threads that wait for each other, a slow
  // way back. What lands makes bold again.
  if (!inTime)
    layer.caution = std::min(kMostCaution, kTooLate * layer.caution);
  else
    layer.caution = job.probe ? 1 : 1 + kInTime * (layer.caution - 1);
  if (job.alone && isSample)
    average(latency, std::max(0.0, now - job.started - seconds));
  const double error = now - latency - job.expected - shift;
  shift += kNewest * error;
  queueEnd = jobs > 0 ? queueEnd + kNewest * error : now;
}

void Scheduler::finish(Job &job, double now, const EpochOf &epochOf) {
  Layer &layer = layers[size_t(job.layer)];
  int64_t freshTargets = 0;
  for (size_t i = 0; i < job.targets.size(); ++i) {
    const Target &target = job.targets[i];
    Place &place = at(job.layer, target.slot);
    place.busy = false;
    const bool same = epochOf(job.layer, target.slot) == target.epoch;
    job.fresh[i] = same;
    freshTargets += same;
    if (same)
      place.turn = turns + 1;
  }
  --jobs;
  landed += freshTargets;
  const int64_t stale = int64_t(job.targets.size()) - freshTargets;
  dropped += stale;
  learn(job, stale == 0, now);
  if (stale > 0) {
    noteDrop(layer, job.targets.size());
    if (!layer.retry)
      for (const Target &target : job.targets)
        at(job.layer, target.slot).turn = turns;
    return;
  }
  layer.turn = ++turns;
  layer.retry = false;
  layer.drops = 0;
  if (layer.slice < layer.most)
    ++layer.slice;
}

std::vector<int64_t> Scheduler::fingerprint(double now) const {
  std::vector<int64_t> order;
  for (const Layer &layer : layers)
    order.push_back(layer.turn);
  for (const Place &place : places)
    order.push_back(place.turn);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> print = {jobs};
  for (int64_t turn : order) // only their order matters
    print.push_back(std::lower_bound(sorted.begin(), sorted.end(), turn) -
                    sorted.begin());
  const auto time = [&](double seconds) {
    constexpr double kParts = 1 << 20; // of a second
    print.push_back(int64_t(std::llround(seconds * kParts)));
  };
  for (double seconds : {std::max(0.0, queueEnd - now), shift, latency,
                         lastFinish - now, secondsPerTarget})
    time(seconds);
  for (const Layer &layer : layers) {
    print.insert(print.end(), {layer.slice, layer.drops, layer.retry});
    for (double seconds : {layer.window, layer.secondsPerTarget, layer.caution,
                           layer.tried - now, layer.compactedAt - now})
      time(seconds);
  }
  for (const Place &place : places) {
    print.insert(print.end(), {place.waiting, place.busy, place.everCompacted});
    time(place.compactedAt - now);
  }
  return print;
}

} // namespace sinkstate::consolidation
