//===- Consolidator.cpp - Consolidation beside decoding -------------------===//

#include "engine/Consolidator.h"

#include "capi/Failure.h"
#include "consolidation/RowOrder.h"
#include "engine/StatusBits.h"
#include "engine/Stopwatch.h"
#include "observe/Log.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::runtime {
namespace {

using consolidation::Job;
using consolidation::ReadStage;
using consolidation::SvdStatus;

/// Jobs under way in asynchronous mode: one in every stage, one before each.
constexpr int32_t kMostJobs = 6;
/// Slots of a job before it is known how long one takes.
constexpr int32_t kFirstSlice = 8;

bool isDeterministic(const ss_engine_options &options) {
  return options.consolidation == SS_CONSOLIDATION_DETERMINISTIC;
}

/// Whether an SVD of a state of the slot is due and has not landed.
bool isDue(const LayerState &layer, int32_t slot) {
  if (layer.manifest().denseForm)
    return false;
  const auto first = layer.svdDue.begin() + layer.firstState(slot);
  return std::find(first, first + layer.heads(), 1) != first + layer.heads();
}

int32_t mostJobs(size_t layers, const ss_engine_options &options) {
  // In deterministic mode every slot of every layer may have one.
  return isDeterministic(options)
             ? int32_t(std::min<int64_t>(
                   int64_t(layers) * options.slots, INT32_MAX))
             : kMostJobs;
}

consolidation::PipelineOptions
pipelineOptions(size_t layers, const ss_engine_options &options) {
  consolidation::PipelineOptions result;
  result.svdThreads = options.consolidation_threads;
  result.places = size_t(mostJobs(layers, options));
  result.warn = [](const std::string &line) {
    writeLog(SS_LOG_WARNING, "consolidation", line);
  };
  if (options.consolidation_cpu_count > 0)
    result.cpus.assign(options.consolidation_cpus,
                       options.consolidation_cpus +
                           options.consolidation_cpu_count);
  return result;
}

} // namespace

Consolidator::Consolidator(std::vector<LayerState> &layers,
                           const ss_engine_options &options,
                           ss_statistics &counters)
    : layers(layers), counters(counters),
      slotCount(size_t(options.slots)),
      deterministic(isDeterministic(options)), lag(options.consolidation_lag),
      start(std::chrono::steady_clock::now()),
      scheduler({int32_t(layers.size()), options.slots,
                 mostJobs(layers.size(), options), kFirstSlice, {},
                 options.consolidation_threads}),
      epochs([this](int32_t layer, int32_t slot) {
        return epochOf(layer, slot);
      }),
      landings(deterministic ? layers.size() * slotCount : 0),
      startedAt(layers.size() * slotCount),
      pipeline(*this, pipelineOptions(layers.size(), options)) {}

Consolidator::~Consolidator() = default;

double Consolidator::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

//===----------------------------------------------------------------------===//
// The device's part of the stages
//===----------------------------------------------------------------------===//

void Consolidator::download(HostJob &job) {
  for (StateCopy &copy : job.states) {
    try {
      const size_t width = size_t(copy.dk + copy.dv);
      copy.matrix.resize(copy.dense ? size_t(copy.dk) * size_t(copy.dv) : 0);
      copy.rows.resize(size_t(copy.count) * width);
      copy.weights.resize(size_t(copy.count));
    } catch (const std::bad_alloc &) {
      continue; // it stays pending, and is not decomposed
    }
    ReadStage pending = ReadStage::pending;
    if (!copy.stage->compare_exchange_strong(pending, ReadStage::copying))
      continue;
    const Storage storage =
        layers[size_t(job.job.layer)].layout().storage;
    loadElements(storage, copy.matrix.data(), copy.deviceRows,
                 int64_t(copy.matrix.size()));
    if (!copy.dense) {
      loadElements(storage, copy.rows.data(), copy.deviceRows,
                   int64_t(copy.rows.size()));
      std::copy_n(copy.deviceWeights, copy.weights.size(),
                  copy.weights.data());
    }
    *copy.stage = ReadStage::copied;
    if (copy.dense || !std::all_of(copy.weights.begin(), copy.weights.end(),
                                   [](float w) { return std::isfinite(w); }))
      continue;
    try {
      consolidation::largestFirst(copy.rows.data(), copy.weights.data(),
                                  copy.count, copy.dk + copy.dv, copy.active);
    } catch (const std::bad_alloc &) {
      *copy.stage = ReadStage::cancelled;
    }
  }
}

void Consolidator::upload(HostJob &job) {
  // The device's memory is the host's: what an SVD left is where the swap
  // takes it from. Only what it no longer needs goes.
  for (StateCopy &copy : job.states)
    std::vector<float>().swap(copy.matrix);
}

//===----------------------------------------------------------------------===//
// Starting jobs
//===----------------------------------------------------------------------===//

void Consolidator::addStates(HostJob &job, int32_t target) {
  LayerState &layer = layers[size_t(job.job.layer)];
  const LayerManifest &manifest = layer.manifest();
  const int64_t first =
      layer.firstState(job.job.targets[size_t(target)].slot);
  for (int64_t state = first; state < first + layer.heads(); ++state) {
    if (!layer.svdDue[size_t(state)])
      continue;
    StateCopy copy;
    copy.target = target;
    copy.state = state;
    copy.dk = manifest.dk;
    copy.dv = manifest.dv;
    copy.dense = layer.isDense(state);
    copy.count = std::max(0, layer.rank[state]);
    copy.active = std::min(manifest.active, copy.count);
    copy.truncation.eps = layer.layout().dropBelow;
    copy.deviceRows = layer.rowsOf(state);
    copy.deviceWeights = layer.weightsOf(state);
    job.states.push_back(std::move(copy));
  }
}

std::unique_ptr<consolidation::HostJob> Consolidator::prepare(const Job &job) {
  auto host = std::make_unique<HostJob>();
  host->job = job;
  for (size_t i = 0; i < job.targets.size(); ++i)
    addStates(*host, int32_t(i));
  LayerState &layer = layers[size_t(job.layer)];
  size_t begun = 0;
  try {
    for (; begun < host->states.size(); ++begun)
      layer.beginRead(host->states[begun].state, host->states[begun].stage);
  } catch (...) {
    while (begun-- > 0)
      layer.endRead(host->states[begun].state, host->states[begun].stage);
    throw;
  }
  return host;
}

bool Consolidator::submit(Job given) {
  std::unique_ptr<HostJob> job;
  try {
    job = prepare(given);
  } catch (const std::bad_alloc &) {
    // No memory to consolidate with: the states stay due.
  }
  if (!job || job->states.empty()) {
    scheduler.finish(given, now(), epochs);
    return false;
  }
  for (const consolidation::Target &target : job->job.targets) {
    const LayerState &layer = layers[size_t(job->job.layer)];
    startedAt[size_t(job->job.layer) * slotCount + size_t(target.slot)] =
        positionOf(job->job.layer, target.slot) -
        (deterministic ? layer.count[target.slot] : 0); // at the compaction
  }
  counters.consolidations_started += int64_t(job->states.size());
  pipeline.submit(std::move(job));
  return true;
}

void Consolidator::startAll() {
  while (std::optional<Job> job = scheduler.next(now(), epochs))
    submit(std::move(*job));
}

void Consolidator::compacted(int32_t index, std::span<const int32_t> slots) {
  Stopwatch time(counters.consolidate_seconds);
  LayerState &layer = layers[size_t(index)];
  for (int32_t slot : slots) {
    const bool due = isDue(layer, slot);
    if (!deterministic)
      scheduler.compacted(index, slot, layer.epoch(slot), due, now());
    else if (due)
      startDeterministic(index, slot);
  }
  if (!deterministic) {
    landFinished();
    startAll();
  }
}

void Consolidator::resume(int32_t index, int32_t slot) {
  if (!deterministic || !isDue(layers[size_t(index)], slot))
    return; // asynchronous mode comes to it at the next compaction
  Stopwatch time(counters.consolidate_seconds);
  startDeterministic(index, slot);
}

void Consolidator::startDeterministic(int32_t layer, int32_t slot) {
  // A former tenant's job may still be under way.
  waitFor(layer, slot);
  Job job = scheduler.single(layer, slot, epochOf(layer, slot), now());
  const uint64_t id = job.id;
  if (submit(std::move(job)))
    landing(layer, slot).job = id;
}

//===----------------------------------------------------------------------===//
// Swapping in
//===----------------------------------------------------------------------===//

/// Rows of the block that a result wants; 0: it does not land.
int64_t Consolidator::rowsFor(const LayerState &layer,
                              const StateCopy &copy) const {
  const LayerManifest &manifest = layer.manifest();
  if (!copy.done || copy.result.status != SvdStatus::ok)
    return 0;
  if (!copy.dense)
    return std::min<int64_t>(copy.rankAfter() + 2 * manifest.buffer,
                             manifest.rank);
  // Well below the break-even rank, so that it does not go back at once.
  const int32_t rank = copy.result.rank;
  return 4 * rank > 3 * layer.layout().breakEvenRank ? 0
                                                     : rank + manifest.buffer;
}

/// Blocks for the states of a job that share theirs. In deterministic mode throws
/// SS_OUT_OF_MEMORY with nothing changed, so that memory decides no bits;
/// otherwise such a result is not taken over: what is there is as exact.
std::vector<RowBlock> Consolidator::ownBlocks(LayerState &layer,
                                              const HostJob &job) {
  std::vector<RowBlock> own;
  try {
    own.resize(job.states.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const StateCopy &copy = job.states[i];
      const auto &target = job.job.targets[size_t(copy.target)];
      const int64_t rows = rowsFor(layer, copy);
      if (rows > 0 && layer.owners(copy.state) > 1 &&
          epochOf(job.job.layer, target.slot) == target.epoch)
        own[i] = layer.pool().allocate(rows);
    }
  } catch (const std::exception &) {
    if (deterministic) {
      for (RowBlock block : own)
        layer.pool().free(block);
      for (LayerState &any : layers)
        if (!any.manifest().denseForm)
          any.pool().releaseKept(); // for the next try
      throw;
    }
  }
  return own;
}

void Consolidator::landFactors(LayerState &layer, StateCopy &copy) {
  const int64_t state = copy.state;
  const int32_t before = layer.rank[state];
  const int32_t after = copy.rankAfter();
  layer.writeRows(state, copy.rows.data(), after * layer.layout().rowFloats);
  std::copy_n(copy.weights.data(), size_t(after), layer.weightsOf(state));
  layer.rank[state] = after;
  layer.shrinkRows(state, rowsFor(layer, copy));
  counters.components_removed += before - after;
}

void Consolidator::landDense(LayerState &layer, StateCopy &copy) {
  const int64_t state = copy.state;
  const int32_t rank = copy.result.rank;
  layer.renewBlock(state, rowsFor(layer, copy));
  if (layer.capacityOf(state) < rowsFor(layer, copy) && !deterministic)
    return; // it stays dense, which is as exact
  layer.rank[state] = rank;
  layer.writeRows(state, copy.rows.data(), rank * layer.layout().rowFloats);
  std::copy_n(copy.weights.data(), rank, layer.weightsOf(state));
  ++counters.went_factored;
}

void Consolidator::landState(LayerState &layer, StateCopy &copy,
                             RowBlock own) {
  layer.svdDue[size_t(copy.state)] = 0;
  layer.compactions[size_t(copy.state)] = 0;
  layer.status[copy.state] |= statusBits(copy.result.status);
  ++counters.consolidations_landed;
  if (rowsFor(layer, copy) == 0)
    return;
  if (own.valid())
    layer.replaceBlock(copy.state, own);
  if (layer.owners(copy.state) > 1)
    return;
  if (copy.dense) {
    landDense(layer, copy);
    return;
  }
  ++counters.consolidations;
  landFactors(layer, copy);
}

void Consolidator::land(HostJob &job) {
  LayerState &layer = layers[size_t(job.job.layer)];
  const std::vector<RowBlock> own = ownBlocks(layer, job);
  for (const StateCopy &copy : job.states)
    layer.endRead(copy.state, copy.stage);
  scheduler.finish(job.job, now(), epochs);
  for (size_t i = 0; i < job.states.size(); ++i) {
    StateCopy &copy = job.states[i];
    const int32_t slot = job.job.targets[size_t(copy.target)].slot;
    if (!job.job.fresh[size_t(copy.target)] || !copy.done) {
      ++counters.consolidations_dropped;
      writeLog(SS_LOG_DEBUG, "consolidation", "slot ", slot,
               ": a result of layer '", layer.manifest().name,
               "' was dropped");
      continue;
    }
    landState(layer, copy, i < own.size() ? own[i] : RowBlock());
    const int64_t late =
        positionOf(job.job.layer, slot) -
        startedAt[size_t(job.job.layer) * slotCount + size_t(slot)];
    counters.consolidation_lag_sum += late;
    counters.consolidation_lag_max =
        std::max(counters.consolidation_lag_max, late);
  }
  for (size_t i = 0; i < job.job.targets.size(); ++i) {
    if (!job.job.fresh[i])
      continue;
    layer.noteChange(job.job.targets[i].slot);
    layer.noteLive(job.job.targets[i].slot, true);
  }
}

void Consolidator::landFinished() {
  while (std::unique_ptr<HostJob> job = pipeline.tryTake())
    land(*job);
}

void Consolidator::waitFor(int32_t layer, int32_t slot) {
  Landing &place = landing(layer, slot);
  if (place.job == 0)
    return;
  bool waited = false;
  while (!place.done) {
    std::unique_ptr<HostJob> job = pipeline.tryTake();
    if (!job) {
      waited = true;
      job = pipeline.take();
    }
    if (!job)
      fail(SS_INTERNAL, "a consolidation was lost: report it");
    landing(job->job.layer, job->job.targets[0].slot).done = std::move(job);
  }
  counters.consolidation_waits += waited;
  land(*place.done);
  place.done = nullptr;
  place.job = 0;
}

void Consolidator::beforeDecode(int32_t layer, std::span<const int32_t> batch,
                                std::span<const int32_t> compacting) {
  Stopwatch time(counters.consolidate_seconds);
  if (!deterministic) {
    landFinished();
    startAll();
    return;
  }
  for (int32_t slot : batch)
    if (slot >= 0 && lag == 0 && landing(layer, slot).job != 0 &&
        layers[size_t(layer)].count[slot] == 0)
      waitFor(layer, slot);
  for (int32_t slot : compacting)
    waitFor(layer, slot);
}

void Consolidator::drain() {
  if (deterministic)
    return;
  while (std::unique_ptr<HostJob> job = pipeline.take())
    land(*job);
}

} // namespace sinkstate::runtime
