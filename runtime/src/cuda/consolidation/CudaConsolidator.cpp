//===- CudaConsolidator.cpp - Consolidation beside a GPU's steps ----------===//

#include "cuda/consolidation/CudaConsolidator.h"

#include "capi/Failure.h"
#include "cuda/consolidation/AsynchronousConsolidator.h"
#include "cuda/consolidation/DeterministicConsolidator.h"
#include "observe/Log.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

/// Slots of a job before it is known how long one takes.
constexpr int32_t kFirstSlice = 8;

std::vector<int32_t> mostSlices(const FrozenRows &rows) {
  std::vector<int32_t> most;
  for (int32_t layer = 0; layer < rows.layers(); ++layer)
    most.push_back(rows.slotsPerJob(layer));
  return most;
}

} // namespace

std::unique_ptr<CudaConsolidator>
CudaConsolidator::create(const ConsolidatedStates &states,
                         const ss_engine_options &options,
                         const KernelCompiler &compiler) {
  if (FrozenPlan(states.manifest, states.layout, options.slots).layers.empty())
    return nullptr;
  if (options.consolidation == SS_CONSOLIDATION_ASYNCHRONOUS)
    return std::make_unique<AsynchronousConsolidator>(states, options,
                                                      compiler);
  if (options.consolidation == SS_CONSOLIDATION_DETERMINISTIC)
    return std::make_unique<DeterministicConsolidator>(states, options,
                                                       compiler);
  return nullptr;
}

int64_t CudaConsolidator::plannedBytes(const Manifest &manifest,
                                       const CudaLayout &layout,
                                       const ss_engine_options &options) {
  if (options.consolidation == SS_CONSOLIDATION_OFF)
    return 0;
  const FrozenPlan plan(manifest, layout, options.slots);
  return plan.layers.empty() ? 0 : plan.deviceBytes;
}

CudaConsolidator::CudaConsolidator(const ConsolidatedStates &states,
                                   const ss_engine_options &options,
                                   const KernelCompiler &compiler,
                                   int32_t mostJobs)
    : rows(states, options, compiler),
      scheduler({rows.layers(), options.slots, mostJobs, kFirstSlice,
                 mostSlices(rows), options.consolidation_threads}),
      start(std::chrono::steady_clock::now()),
      seenChanges(size_t(rows.layers())),
      seenNotes(size_t(rows.layers()) * size_t(options.slots)) {}

double CudaConsolidator::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

void CudaConsolidator::download(HostJob &job) noexcept {
  try {
    rows.download(job);
  } catch (const std::exception &failure) {
    // A failing device is the matter of the calls that decode.
    writeLog(SS_LOG_WARNING, "consolidation",
             "rows were not downloaded: ", failure.what());
  }
  started += std::count_if(job.states.begin(), job.states.end(),
                           [](const StateCopy &copy) { return copy.count > 0; });
}

void CudaConsolidator::noteAnswer(const HostJob &job, const StateCopy &copy,
                                  bool landed, int64_t position) {
  if (!landed)
    return;
  ++counters.consolidations_landed;
  const int64_t late = position - job.positions[size_t(copy.target)];
  counters.consolidation_lag_sum += late;
  counters.consolidation_lag_max =
      std::max(counters.consolidation_lag_max, late);
  if (copy.result.status != consolidation::SvdStatus::ok)
    return;
  ++counters.consolidations;
  counters.components_removed += copy.count - copy.rankAfter();
}

void CudaConsolidator::finish(HostJob &job,
                              const std::vector<uint8_t> &landed) {
  std::vector<uint8_t> fresh(job.job.targets.size(), 1);
  for (size_t i = 0; i < job.states.size(); ++i) {
    const StateCopy &copy = job.states[i];
    if (copy.count == 0 || landed[i])
      continue;
    ++counters.consolidations_dropped;
    fresh[size_t(copy.target)] = 0;
    writeLog(SS_LOG_DEBUG, "consolidation", "slot ",
             job.job.targets[size_t(copy.target)].slot, ": a result of layer '",
             rows.manifestOf(job.job.layer).name, "' was dropped");
  }
  // What the device has answered decides, not what its epochs are by now.
  scheduler.finish(job.job, now(), [&](int32_t, int32_t slot) {
    for (size_t i = 0; i < fresh.size(); ++i)
      if (job.job.targets[i].slot == slot)
        return job.job.targets[i].epoch + (fresh[i] ? 0 : 1);
    return uint64_t(0);
  });
}

void CudaConsolidator::addStatistics(ss_statistics &out) const {
  std::lock_guard lock(mutex);
  out.consolidations = counters.consolidations;
  out.consolidations_started = started;
  out.consolidations_landed = counters.consolidations_landed;
  out.consolidations_dropped = counters.consolidations_dropped;
  out.consolidation_waits = counters.consolidation_waits;
  out.components_removed = counters.components_removed;
  out.consolidation_lag_sum = counters.consolidation_lag_sum;
  out.consolidation_lag_max = counters.consolidation_lag_max;
}

consolidation::PipelineOptions stagesOf(const ss_engine_options &options,
                                        int32_t mostJobs) {
  consolidation::PipelineOptions stages;
  stages.svdThreads = options.consolidation_threads;
  stages.places = size_t(mostJobs);
  stages.warn = [](const std::string &line) {
    writeLog(SS_LOG_WARNING, "consolidation", line);
  };
  if (options.consolidation_cpu_count > 0)
    stages.cpus.assign(options.consolidation_cpus,
                       options.consolidation_cpus +
                           options.consolidation_cpu_count);
  return stages;
}

} // namespace sinkstate::runtime::cuda
