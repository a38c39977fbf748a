//===- DeterministicConsolidator.cpp - Results at a fixed token -----------===//

#include "cuda/consolidation/DeterministicConsolidator.h"

#include "capi/Failure.h"
#include "cuda/device/schedule.cuh"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

/// Every slot of every layer may have one.
int32_t mostJobs(const ConsolidatedStates &states,
                 const ss_engine_options &options) {
  return int32_t(std::min<int64_t>(
      int64_t(states.manifest.layers.size()) * options.slots, INT32_MAX));
}

} // namespace

DeterministicConsolidator::DeterministicConsolidator(
    const ConsolidatedStates &states, const ss_engine_options &options,
    const KernelCompiler &compiler)
    : CudaConsolidator(states, options, compiler, mostJobs(states, options)),
      context(states.context), lag(options.consolidation_lag),
      landings(size_t(rows.layers()) * size_t(options.slots)),
      pipeline(std::make_unique<consolidation::Pipeline>(
          static_cast<consolidation::StateTransfer &>(*this),
          stagesOf(options, mostJobs(states, options)))) {}

DeterministicConsolidator::~DeterministicConsolidator() { pipeline.reset(); }

void DeterministicConsolidator::download(HostJob &job) {
  ignoreCaptures(*context);
  CudaConsolidator::download(job);
}

/// The position before whose token the result of a compaction lands that was
/// part of the step that left the request at `position`: so many tokens after the
/// compaction, but after that step, and at the latest before the next one.
int64_t DeterministicConsolidator::landsAt(int32_t layer,
                                           int64_t position) const {
  const LayerManifest &manifest = rows.manifestOf(layer);
  ss::ScheduleLayer schedule = {};
  schedule.buffer = manifest.buffer;
  schedule.phase = manifest.phase;
  schedule.before = manifest.compactsBefore;
  // Since the compaction; where that came before the step's token, it is one.
  const int32_t least = schedule.before;
  const int64_t from = position - least;
  int32_t next = least; // until the step that compacts again
  while (!ss::is_listed(schedule, from + next, next))
    ++next;
  const int32_t tokens = lag >= 0 ? lag : manifest.buffer / 2;
  return from + std::clamp(tokens, least, next);
}

void DeterministicConsolidator::begin(int32_t layer, int32_t slot,
                                      uint64_t epoch, int64_t position) {
  std::unique_ptr<HostJob> job =
      rows.prepare(scheduler.single(layer, slot, epoch, now()));
  job->positions[0] = position;
  Landing &place = landing(layer, slot);
  place.underWay = true;
  place.position = landsAt(layer, position);
  pipeline->submit(std::move(job));
}

/// Until the job of a slot has come out of the stages.
void DeterministicConsolidator::waitFor(int32_t layer, int32_t slot) {
  Landing &place = landing(layer, slot);
  bool waited = false;
  while (!place.done) {
    std::unique_ptr<HostJob> job = pipeline->tryTake();
    if (!job) {
      waited = true;
      job = pipeline->take();
    }
    if (!job)
      fail(SS_INTERNAL, "a consolidation was lost: report it");
    landing(job->job.layer, job->job.targets[0].slot).done = std::move(job);
  }
  counters.consolidation_waits += waited;
}

size_t DeterministicConsolidator::landSome(std::span<HostJob *const> jobs,
                                           CUstream stream) {
  const size_t taken = rows.publish(0, jobs);
  rows.swapIn(stream);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  if (!rows.isAnswered(0))
    fail(SS_INTERNAL, "results of consolidation were not taken over: report it");
  for (HostJob *job : jobs.first(taken)) {
    std::vector<uint8_t> landed(job->states.size());
    rows.forEachAnswer(0, [&](HostJob &of, size_t state, bool fresh,
                              int64_t position) {
      if (&of != job)
        return;
      landed[state] = fresh;
      noteAnswer(*job, job->states[state], fresh, position);
    });
    finish(*job, landed);
  }
  rows.clear(0);
  return taken;
}

void DeterministicConsolidator::land(
    std::vector<std::unique_ptr<HostJob>> jobs, CUstream stream) {
  std::vector<HostJob *> list;
  for (const auto &job : jobs)
    list.push_back(job.get());
  std::span<HostJob *const> left = list;
  while (!left.empty())
    left = left.subspan(landSome(left, stream));
}

void DeterministicConsolidator::beginStep(CUstream stream) {
  int capturing = kCaptureStatusNone;
  SS_CUDA(context->driver(), cuStreamIsCapturing(stream, &capturing));
  if (capturing != kCaptureStatusNone)
    fail(SS_NOT_SUPPORTED,
         "ss_begin_step is captured and options.consolidation is "
         "SS_CONSOLIDATION_DETERMINISTIC, whose results land in a call that "
         "waits for them: use SS_CONSOLIDATION_ASYNCHRONOUS with graphs, or "
         "do not capture");
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  settle(stream);
}

/// Everything on the stream is done, so that positions are known.
void DeterministicConsolidator::settle(CUstream stream) {
  std::lock_guard lock(mutex);
  const std::span<const int64_t> positions = rows.positions();
  std::vector<std::unique_ptr<HostJob>> due;
  auto takeDone = [&](int32_t layer, int32_t slot) {
    waitFor(layer, slot);
    landing(layer, slot).underWay = false;
    due.push_back(std::move(landing(layer, slot).done));
  };
  struct New {
    int32_t layer, slot;
    uint64_t epoch;
  };
  std::vector<New> found;
  forEachChange([&](int32_t layer, int32_t slot, uint64_t note) {
    // A former tenant's job ends first; the device drops its result.
    if (landing(layer, slot).underWay)
      takeDone(layer, slot);
    if (note & ss::kNoteDue)
      found.push_back({layer, slot, note >> ss::kNoteBits});
  });
  land(std::move(due), stream);
  due.clear();
  for (const New &job : found)
    begin(job.layer, job.slot, job.epoch, positions[size_t(job.slot)]);
  for (int32_t layer = 0; layer < rows.layers(); ++layer)
    for (int32_t slot = 0; slot < rows.slots(); ++slot)
      if (landing(layer, slot).underWay &&
          positions[size_t(slot)] >= landing(layer, slot).position)
        takeDone(layer, slot);
  land(std::move(due), stream);
}

} // namespace sinkstate::runtime::cuda
