//===- DecodeBench.cpp - Time of decode steps -----------------------------===//

#include "DecodeBench.h"

#include "Floors.h"

#include "capi/Failure.h"

#include <algorithm>
#include <numeric>

using namespace sinkstate::runtime;
using namespace ss_bench;

namespace {

/// Requests whose inputs differ from each other; further ones repeat them.
constexpr int32_t kDistinctRequests = 16;
/// Decode alone varies less than whole steps do.
constexpr size_t kMostDecodePeriods = 50;
constexpr size_t kLeastPeriods = 3;
/// Periods that are served before states come back: a state is consolidated
/// several times in them, and has lost little of what it began with.
constexpr int32_t kServedPeriods = 16;

double meanOf(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         double(values.size());
}

} // namespace

double ss_bench::percentile(std::vector<double> values, double share) {
  const size_t at = std::min(values.size() - 1,
                             size_t(share * double(values.size())));
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(at),
                   values.end());
  return values[at];
}

DecodeBench::DecodeBench(BenchMachine &machine, const BenchOptions &options,
                         std::shared_ptr<const Package> loaded,
                         const RankProfile &profile, int32_t batch)
    : batch(batch), period(periodOf(loaded->manifest())),
      package(std::move(loaded)), shapes(package->manifest()),
      states(machine.makeEngine(package, options, profile, batch, period,
                                shapes)) {}

const std::vector<LayerManifest> &DecodeBench::layers() const {
  return package->manifest().layers;
}

void DecodeBench::prepare(DataKind kind, bool spread) {
  staggered = spread;
  found = {};
  found.batch = batch;
  found.data = nameOf(kind);
  found.staggered = staggered;
  whole.clear(), single.clear(), decodes.clear();
  shapes.makeInputs(kind, period, std::min(batch, kDistinctRequests));
  states->useInputs();
  states->setStaggered(staggered, false);
  states->restore();
  states->warmUp(period);
  states->restore();
  ss_statistics statistics = {};
  states->engine().statistics(statistics);
  (void)states->runSteps(0, period);
  countRows(statistics.compactions + statistics.folds);
}

void DecodeBench::timeRound() {
  states->restore();
  const std::vector<double> times = states->runSteps(0, period);
  whole.push_back(meanOf(times));
  single.insert(single.end(), times.begin(), times.end());
  if (decodes.size() == kMostDecodePeriods)
    return;
  // Decode alone has no rhythm: buffers of every length, as over a period.
  states->setStaggered(true, true);
  states->restore();
  if (decodes.empty())
    (void)states->runDecodes();
  decodes.push_back(meanOf(states->runDecodes()));
  states->setStaggered(staggered, false);
}

Measured DecodeBench::result() {
  const double layerCount = double(layers().size());
  found.timedSteps = timedSteps();
  found.step = percentile(whole, 0.5) * 1000 / layerCount;
  found.decodeOnly = percentile(decodes, 0.5) * 1000 / layerCount;
  found.stepMedian = percentile(single, 0.5) * 1000;
  found.stepP99 = percentile(single, 0.99) * 1000;
  addSizes();
  check();
  return found;
}

Served DecodeBench::serve(DataKind kind, bool spread, int32_t steps) {
  prepare(kind, spread);
  ss_statistics before = {}, after = {};
  states->engine().statistics(before);
  std::vector<double> times;
  double rank = 0;
  while (int32_t(times.size()) < steps) {
    states->restore();
    const std::vector<double> run = states->serve(
        std::min(kServedPeriods * period, steps - int32_t(times.size())),
        period);
    times.insert(times.end(), run.begin(), run.end());
    if (rank == 0)
      rank = meanRankNow();
  }
  states->finish();
  states->engine().statistics(after);
  Served served;
  served.batch = batch;
  served.data = nameOf(kind);
  served.staggered = spread;
  served.steps = int64_t(times.size());
  served.stepMedian = percentile(times, 0.5) * 1000;
  served.stepP99 = percentile(times, 0.99) * 1000;
  served.stepLongest = percentile(times, 1) * 1000;
  served.meanRank = found.meanRank, served.meanRankAfter = rank;
  served.landed =
      after.consolidations_landed - before.consolidations_landed;
  served.dropped =
      after.consolidations_dropped - before.consolidations_dropped;
  served.tightened = after.tightened - before.tightened;
  served.denseBytes = double(after.dense_bytes);
  served.allocatedBytes = double(after.allocated_bytes);
  served.peakBytes = double(after.allocated_peak);
  served.usedBytes = double(after.used_bytes);
  served.liveBytes = double(after.live_bytes);
  return served;
}

double DecodeBench::meanRankNow() {
  double sum = 0, count = 0;
  for (size_t l = 0; l < layers().size(); ++l)
    if (!states->ranksOf(l).empty())
      for (int32_t rank : states->ranksNow(l))
        if (rank >= 0)
          sum += rank, ++count;
  return count > 0 ? sum / count : 0;
}

void DecodeBench::countRows(int64_t compactionsBefore) {
  double count = 0, factored = 0, before = 0, after = 0, block = 0, kept = 0;
  for (size_t l = 0; l < layers().size(); ++l) {
    const std::vector<int32_t> &ranks = states->ranksOf(l);
    const std::vector<int32_t> now =
        ranks.empty() ? ranks : states->ranksNow(l);
    count += double(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] < 0 || now[i] < 0)
        continue;
      const int32_t active = std::min(ranks[i], layers()[l].active);
      ++factored;
      before += ranks[i], after += now[i];
      block += active + layers()[l].buffer;
      kept += active + now[i] - ranks[i];
    }
  }
  if (count == 0)
    return;
  ss_statistics statistics = {};
  states->engine().statistics(statistics);
  found.compactionsPerState =
      double(statistics.compactions + statistics.folds - compactionsBefore) /
      count;
  found.heldDense = 1 - factored / count;
  if (factored == 0)
    return;
  found.meanRank = before / factored;
  found.meanRankAfter = after / factored;
  found.blockRows = block / factored;
  found.keptRows = kept / factored;
}

void DecodeBench::addSizes() {
  for (size_t l = 0; l < layers().size(); ++l) {
    const LayerManifest &layer = layers()[l];
    const std::vector<int32_t> &ranks = states->ranksOf(l);
    const Floor floor = floorOf(layer, batch, ranks);
    const double share = 1 / double(layers().size());
    found.decodeBytes += floor.decodeBytes * share;
    found.compactBytes += floor.compactBytes * share;
    found.decodeFlops += floor.flops * share;
    found.stateBytes += stateBytes(layer, batch, ranks);
    found.denseBytes += 4.0 * batch * layer.heads * layer.dv * layer.dk;
  }
  ss_statistics statistics = {};
  states->engine().statistics(statistics);
  found.allocatedBytes = double(statistics.allocated_bytes);
  found.peakBytes = double(statistics.allocated_peak);
  found.usedBytes = double(statistics.used_bytes);
  const MemoryParts parts = states->engine().memoryParts();
  if (parts.sum() != statistics.allocated_bytes)
    fail(SS_INTERNAL, "the purposes of memory add up to ", parts.sum(),
         " bytes, expected the ", statistics.allocated_bytes,
         " that are allocated: report it");
  found.memory = parts.list();
  found.tightened = statistics.tightened;
}

std::vector<Measured>
ss_bench::measureTogether(BenchMachine &machine,
                          std::vector<DecodeBench *> benches, DataKind kind,
                          bool staggered, int32_t steps) {
  std::vector<Measured> results;
  if (!machine.measuresTogether() && benches.size() > 1) {
    for (DecodeBench *bench : benches)
      results.push_back(
          measureTogether(machine, {bench}, kind, staggered, steps)[0]);
    return results;
  }
  for (DecodeBench *bench : benches)
    bench->prepare(kind, staggered);
  auto isDone = [&](const DecodeBench *bench) {
    return bench->timedSteps() >= steps;
  };
  for (size_t round = 0;
       round < kLeastPeriods ||
       !std::all_of(benches.begin(), benches.end(), isDone);
       ++round)
    for (DecodeBench *bench : benches)
      bench->timeRound();
  for (DecodeBench *bench : benches)
    results.push_back(bench->result());
  return results;
}
