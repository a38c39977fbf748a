//===- FrozenRows.h - Rows to the host and results back ---------*- C++ -*-===//
//
// The device's part of consolidation: notes of what has changed, the download
// of a job's rows, and mailboxes of results that the decode stream empties. How
// the three keep together without waiting is in device/consolidation.cuh.
//
// Threads: the launches of the decode stream belong to the engine's caller, the
// download to one thread, each mailbox to one thread at a time; notes and
// answers may be read by any.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_FROZENROWS_H
#define SINKSTATE_CUDA_CONSOLIDATION_FROZENROWS_H

#include "consolidation/Pipeline.h"
#include "cuda/Memory.h"
#include "cuda/consolidation/ConsolidationKernels.h"
#include "cuda/consolidation/FrozenPlan.h"

#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace sinkstate::runtime::cuda {

/// Where an engine's states are, for its consolidation.
struct ConsolidatedStates {
  std::shared_ptr<const Context> context;
  const Manifest &manifest;
  const CudaLayout &layout;
  CUdeviceptr begin; ///< of the memory that the layout describes
  /// Rows of a layer (as in the manifest) that are mapped now, for the thread of
  /// the downloads; none: always all.
  std::function<int64_t(size_t layer)> readableRows;
};

class FrozenRows {
public:
  using HostJob = consolidation::HostJob;
  using StateCopy = consolidation::StateCopy;

  FrozenRows(const ConsolidatedStates &states,
             const ss_engine_options &options, const KernelCompiler &compiler);

  /// Layers with a frozen part; all indices below count these.
  int32_t layers() const { return int32_t(plan.layers.size()); }
  int32_t slots() const { return plan.slots; }
  /// Slots of the layer that one job may have.
  int32_t slotsPerJob(int32_t layer) const {
    return plan.layers[size_t(layer)].slotsPerJob;
  }
  const LayerManifest &manifestOf(int32_t layer) const {
    return manifest.layers[size_t(plan.layers[size_t(layer)].layer)];
  }
  int64_t bytes() const { return plan.deviceBytes; }

  // In the order of the decode stream, and legal in its capture.
  void noteCompactions(CUstream stream) const;
  /// Of one layer, as in the manifest.
  void noteCompactions(int32_t layer, CUstream stream) const;
  void noteSlot(int32_t slot, CUstream stream) const;
  void swapIn(CUstream stream) const;

  // What the device has noted: see ss::note_change.
  uint64_t note(int32_t layer, int32_t slot) const;
  uint64_t epoch(int32_t layer, int32_t slot) const {
    return note(layer, slot) >> ss::kNoteBits;
  }
  /// Grows when a note of the layer has changed.
  uint64_t changes(int32_t layer) const;

  /// A job of all states of the targets, with nothing read yet. Positions that
  /// are negative are set by the download.
  std::unique_ptr<HostJob> prepare(consolidation::Job job) const;
  /// Reads the states that have a frozen part. A state with `count` rows that
  /// changed meanwhile is left `cancelled`; one that has nothing to consolidate
  /// keeps count 0.
  void download(HostJob &job);
  /// Keeps downloads from reading rows on the device.
  std::unique_lock<std::mutex> holdReads() {
    return std::unique_lock<std::mutex>(reading);
  }
  /// The same where no download is reading; else a lock that owns nothing.
  std::unique_lock<std::mutex> tryHoldReads() {
    return std::unique_lock<std::mutex>(reading, std::try_to_lock);
  }
  /// The positions of all slots; waits for the copy alone, as do the others.
  std::span<const int64_t> positions();
  /// The buffered pairs of all slots in a layer.
  std::vector<int32_t> pairs(int32_t layer) const;
  /// The slots of a batch.
  std::vector<int32_t> slotsOf(std::span<const int32_t> batch) const;
  /// Whether a result is due of the rows that a slot has now and has not landed.
  bool isMissing(int32_t layer, int32_t slot) const;
  /// See CudaConsolidator.
  CUdeviceptr cadenceOf(size_t layerOfManifest, int32_t slot) const;

  /// Copies results to a mailbox and publishes them; returns how many of the
  /// jobs fitted, at least one. The mailbox is empty.
  size_t publish(int32_t box, std::span<HostJob *const> jobs);
  /// Whether every result of a mailbox has its answer.
  bool isAnswered(int32_t box) const;
  /// Calls body(job, state of the job, landed, position of its slot then).
  template <typename Body> void forEachAnswer(int32_t box, const Body &body);
  /// Empties a mailbox whose results are answered.
  void clear(int32_t box);

private:
  struct Published {
    HostJob *job;
    size_t state;
  };
  struct Box {
    uint64_t sequence = 0; ///< of its last publication
    std::vector<Published> results;
  };

  template <typename T> T *onDevice(int64_t offset) const {
    return memory.at<T>(offset);
  }
  CUdeviceptr addressOf(int64_t offset) const {
    return memory.address() + CUdeviceptr(offset);
  }
  ss::FrozenLayer tableOf(size_t layer, const ConsolidatedStates &states,
                          const ss_engine_options &options) const;
  ss::Mailbox mailbox(const MailboxPlan &box) const;
  ss::FrozenLayer readableTable(int32_t layer) const;
  void readStates(const HostJob &job);
  void takeState(const HostJob &job, size_t index, StateCopy &copy) const;
  bool add(Box &box, const MailboxPlan &places, HostJob &job, int64_t &used);
  ss::Result resultOf(const HostJob &job, const StateCopy &copy) const;
  Storage storageOf(int32_t layer) const { return manifestOf(layer).storage; }

  std::shared_ptr<const Context> context;
  const Manifest &manifest;
  FrozenPlan plan;
  std::function<int64_t(size_t)> readableRows;
  std::vector<float> dropBelow; ///< per layer, eps of its SVDs
  std::vector<CUdeviceptr> counts; ///< per layer, of its buffered pairs
  ConsolidationKernels kernels;
  DeviceMemory memory;
  PinnedMemory host;
  OwnStream downloads, uploads;
  std::vector<ss::FrozenLayer> tables;
  ss::Frozen frozen = {};
  ss::Mailboxes mailboxes = {};
  Box boxes[ss::kMailboxes];
  std::mutex reading;
};

template <typename Body>
void FrozenRows::forEachAnswer(int32_t index, const Body &body) {
  const Box &box = boxes[size_t(index)];
  const MailboxPlan &places = plan.boxes[index];
  for (size_t i = 0; i < box.results.size(); ++i) {
    const uint64_t answer =
        ss::observe(host.at<uint64_t>(places.hostAnswers) + i);
    body(*box.results[i].job, box.results[i].state,
         (answer & ss::kLanded) != 0,
         host.at<int64_t>(places.hostAnsweredAt)[i]);
  }
}

} // namespace sinkstate::runtime::cuda

#endif
