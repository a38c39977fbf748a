//===- Scheduler.cpp - What is consolidated next --------------------------===//

#include "consolidation/Scheduler.h"

#include <algorithm>

namespace sinkstate::consolidation {
namespace {

/// A job is to be done in half of the window that its rows are valid for.
constexpr double kShareOfWindow = 0.5;
/// Dropped jobs, one after another, after which jobs are made smaller.
constexpr int32_t kDropsBeforeHalving = 2;
/// Weight of the newest value in a mean that forgets.
constexpr double kNewest = 0.25;

void average(double &mean, double value) {
  mean = mean > 0 ? mean + kNewest * (value - mean) : value;
}

} // namespace

Scheduler::Scheduler(const SchedulerOptions &options)
    : slots(options.slots), mostJobs(options.mostJobs),
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
  place.compactedAt = now;
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
    std::vector<int32_t> found = ready(index, now, epochOf);
    if (found.empty())
      continue;
    chosen = index;
    slotsOfLayer = std::move(found);
  }
  return chosen;
}

size_t Scheduler::sliceNow(const Layer &layer) const {
  size_t most = size_t(layer.slice);
  if (layer.window > 0 && layer.secondsPerTarget > 0) {
    const double fits = kShareOfWindow * layer.window / layer.secondsPerTarget;
    if (fits < double(most))
      most = size_t(fits);
  }
  return std::max<size_t>(1, most);
}

Job Scheduler::begin(int32_t layer, const std::vector<int32_t> &chosen,
                     double now) {
  Job job{++lastId, layer, now, {}, {}};
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
  std::stable_sort(chosen.begin(), chosen.end(), [&](int32_t a, int32_t b) {
    return at(layer, a).turn < at(layer, b).turn;
  });
  chosen.resize(std::min(chosen.size(), sliceNow(layers[size_t(layer)])));
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
  average(layer.secondsPerTarget,
          (now - job.started) / double(job.targets.size()));
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

std::vector<int64_t> Scheduler::fingerprint() const {
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
  for (const Layer &layer : layers)
    print.insert(print.end(), {layer.slice, layer.drops, layer.retry});
  for (const Place &place : places)
    print.insert(print.end(), {place.waiting, place.busy});
  return print;
}

} // namespace sinkstate::consolidation
