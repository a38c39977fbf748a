//===- CudaConsolidator.h - Consolidation beside a GPU's steps --*- C++ -*-===//
//
// What a CUDA engine needs of consolidation: launches in the order of its
// steps, which are legal in a capture, and figures. Two modes:
//
// Asynchronous (AsynchronousConsolidator.h): a thread watches what the device
// notes, starts jobs and publishes results; steps, replayed or not, take over
// what has been published. Nothing waits.
// Deterministic (DeterministicConsolidator.h): ss_begin_step waits for the
// steps before it, knows every position, and lands what is due of its requests, so
// that it cannot be captured.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_CUDACONSOLIDATOR_H
#define SINKSTATE_CUDA_CONSOLIDATION_CUDACONSOLIDATOR_H

#include "consolidation/Scheduler.h"
#include "cuda/consolidation/FrozenRows.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace sinkstate::runtime::cuda {

class CudaConsolidator {
public:
  /// Null where the options ask for none, or no layer has a frozen part.
  /// Options are resolved.
  static std::unique_ptr<CudaConsolidator>
  create(const ConsolidatedStates &states, const ss_engine_options &options,
         const KernelCompiler &compiler);
  /// Bytes on the device that an engine takes for it.
  static int64_t plannedBytes(const Manifest &manifest,
                              const CudaLayout &layout,
                              const ss_engine_options &options);
  virtual ~CudaConsolidator() = default;
  CudaConsolidator(const CudaConsolidator &) = delete;
  CudaConsolidator &operator=(const CudaConsolidator &) = delete;

  /// Before anything of a step of these slots (device memory) is launched.
  virtual void beginStep(std::span<const int32_t> slots, CUstream stream) = 0;
  /// Behind the compactions of a step.
  void endStep(CUstream stream) const { rows.noteCompactions(stream); }
  /// Behind one compaction of a layer (as in the manifest), where the list of
  /// what was due does not stay until the step ends.
  void compacted(int32_t layer, CUstream stream) const {
    rows.noteCompactions(layer, stream);
  }
  /// Behind whatever else made the rows of a slot others.
  void slotChanged(int32_t slot, CUstream stream) const {
    rows.noteSlot(slot, stream);
  }
  /// Where a slot's cadence in a layer (as in the manifest) is, an
  /// ss::FrozenLayer::since, which goes with its rows to another slot; 0: the layer
  /// has none. Written behind slotChanged.
  CUdeviceptr cadenceOf(size_t layer, int32_t slot) const {
    return rows.cadenceOf(layer, slot);
  }
  /// Lands everything that may land now. Everything on the stream is done.
  virtual void drain(CUstream stream) = 0;

  /// While it is held nothing of the states' memory is read, so that some of it
  /// may be unmapped. Waits for a copy of one job's rows at most.
  std::unique_lock<std::mutex> holdReads() { return rows.holdReads(); }
  /// Without waiting; a lock that owns nothing where something is being read.
  std::unique_lock<std::mutex> tryHoldReads() { return rows.tryHoldReads(); }

  int64_t bytes() const { return rows.bytes(); }
  void addStatistics(ss_statistics &out) const;

protected:
  using HostJob = consolidation::HostJob;
  using StateCopy = consolidation::StateCopy;

  CudaConsolidator(const ConsolidatedStates &states,
                   const ss_engine_options &options,
                   const KernelCompiler &compiler, int32_t mostJobs);

  double now() const;
  /// FrozenRows::download, counted; a device that fails leaves the states as
  /// they are. On the thread of the downloads.
  void download(HostJob &job) noexcept;
  /// Looks at what the device has noted since the last call.
  template <typename Body> void forEachChange(const Body &body);
  /// Counts the answer to one result of a job.
  void noteAnswer(const HostJob &job, const StateCopy &copy, bool landed,
                  int64_t position);
  /// The job is at its end. `landed`: per state of the job, whether its result
  /// was taken over.
  void finish(HostJob &job, const std::vector<uint8_t> &landed);

  FrozenRows rows;
  mutable std::mutex mutex; ///< of everything below
  consolidation::Scheduler scheduler;
  ss_statistics counters = {};

private:
  std::atomic<int64_t> started{0}; ///< counted on the thread of the downloads
  std::chrono::steady_clock::time_point start;
  std::vector<uint64_t> seenChanges; ///< per layer
  std::vector<uint64_t> seenNotes;   ///< per layer and slot
};

template <typename Body>
void CudaConsolidator::forEachChange(const Body &body) {
  for (int32_t layer = 0; layer < rows.layers(); ++layer) {
    // Read before the notes: one that changes meanwhile is found next time.
    const uint64_t changes = rows.changes(layer);
    if (changes == seenChanges[size_t(layer)])
      continue;
    seenChanges[size_t(layer)] = changes;
    for (int32_t slot = 0; slot < rows.slots(); ++slot) {
      uint64_t &seen = seenNotes[size_t(layer) * size_t(rows.slots()) +
                                 size_t(slot)];
      const uint64_t note = rows.note(layer, slot);
      if (note == seen)
        continue;
      seen = note;
      body(layer, slot, note);
    }
  }
}

/// How the stages of a pipeline are staffed.
consolidation::PipelineOptions
stagesOf(const ss_engine_options &options, int32_t mostJobs);

} // namespace sinkstate::runtime::cuda

#endif
