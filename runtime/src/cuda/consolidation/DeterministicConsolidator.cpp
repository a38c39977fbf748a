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
  const IgnoredCaptures ignored(*context);
  CudaConsolidator::download(job);
}

/// Whether the result for a slot lands before its token at `position`, with so many
/// pairs in the buffer. Where a compaction comes before a token, no result is there
/// before that one: without a lag too it waits for the next compaction, as a buffer
/// that is empty then has had its tokens taken back.
bool DeterministicConsolidator::landsBefore(int32_t layer, int64_t position,
                                            int32_t pairs) const {
  const LayerManifest &manifest = rows.manifestOf(layer);
  ss::ScheduleLayer schedule = {};
  schedule.buffer = manifest.buffer;
  schedule.phase = manifest.phase;
  schedule.before = manifest.compactsBefore;
  return (lag == 0 && pairs == 0 && !schedule.before) ||
         ss::is_listed(schedule, position, pairs);
}

void DeterministicConsolidator::begin(int32_t layer, int32_t slot,
                                      uint64_t epoch, int64_t position) {
  std::unique_ptr<HostJob> job =
      rows.prepare(scheduler.single(layer, slot, epoch, now()));
  job->positions[0] = position;
  landing(layer, slot).underWay = true;
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

void DeterministicConsolidator::beginStep(std::span<const int32_t> slots,
                                          CUstream stream) {
  int capturing = kCaptureStatusNone;
  SS_CUDA(context->driver(), cuStreamIsCapturing(stream, &capturing));
  if (capturing != kCaptureStatusNone)
    fail(SS_NOT_SUPPORTED,
         "ss_begin_step is captured and options.consolidation is "
         "SS_CONSOLIDATION_DETERMINISTIC, whose results land in a call that "
         "waits for them: use SS_CONSOLIDATION_ASYNCHRONOUS with graphs, or "
         "do not capture");
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  startJobs(stream);
  landDue(rows.slotsOf(slots), stream);
}

std::unique_ptr<consolidation::HostJob>
DeterministicConsolidator::takeDone(int32_t layer, int32_t slot) {
  waitFor(layer, slot);
  landing(layer, slot).underWay = false;
  return std::move(landing(layer, slot).done);
}

/// Everything on the stream is done, so that counts and positions are known.
void DeterministicConsolidator::startJobs(CUstream stream) {
  std::lock_guard lock(mutex);
  struct New {
    int32_t layer, slot;
    uint64_t epoch;
  };
  std::vector<New> found;
  std::vector<std::unique_ptr<HostJob>> stale;
  forEachChange([&](int32_t layer, int32_t slot, uint64_t note) {
    // A former tenant's job ends first; the device drops its result.
    if (landing(layer, slot).underWay)
      stale.push_back(takeDone(layer, slot));
    // New contents of a slot may be those of one that had a result under way.
    const bool due = note & ss::kNoteCompacted ? (note & ss::kNoteDue) != 0
                                               : rows.isMissing(layer, slot);
    if (due)
      found.push_back({layer, slot, note >> ss::kNoteBits});
  });
  land(std::move(stale), stream);
  if (found.empty())
    return;
  const std::span<const int64_t> positions = rows.positions();
  for (const New &job : found) // as many tokens ago was the compaction
    begin(job.layer, job.slot, job.epoch,
          positions[size_t(job.slot)] -
              rows.pairs(job.layer)[size_t(job.slot)]);
}

void DeterministicConsolidator::landDue(std::span<const int32_t> slots,
                                        CUstream stream) {
  std::lock_guard lock(mutex);
  const std::span<const int64_t> positions = rows.positions();
  std::vector<std::unique_ptr<HostJob>> due;
  for (int32_t layer = 0; layer < rows.layers(); ++layer) {
    std::vector<int32_t> pairs; // read where something is under way
    for (int32_t slot : slots) {
      if (slot < 0 || slot >= rows.slots() || !landing(layer, slot).underWay)
        continue;
      if (pairs.empty())
        pairs = rows.pairs(layer);
      if (landsBefore(layer, positions[size_t(slot)], pairs[size_t(slot)]))
        due.push_back(takeDone(layer, slot));
    }
  }
  land(std::move(due), stream);
}

} // namespace sinkstate::runtime::cuda
