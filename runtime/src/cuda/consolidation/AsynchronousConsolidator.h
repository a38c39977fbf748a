//===- AsynchronousConsolidator.h - Results when they are there -*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_ASYNCHRONOUSCONSOLIDATOR_H
#define SINKSTATE_CUDA_CONSOLIDATION_ASYNCHRONOUSCONSOLIDATOR_H

#include "cuda/consolidation/CudaConsolidator.h"

#include <condition_variable>
#include <thread>

namespace sinkstate::runtime::cuda {

/// A thread of its own watches the device's notes, because a replayed step
/// calls nobody. It reads memory of the host alone, several thousand times a
/// second while jobs are under way or steps are made, and rarely otherwise.
class AsynchronousConsolidator final : public CudaConsolidator,
                                       private consolidation::StateTransfer {
public:
  AsynchronousConsolidator(const ConsolidatedStates &states,
                           const ss_engine_options &options,
                           const KernelCompiler &compiler);
  ~AsynchronousConsolidator() override;

  void beginStep(std::span<const int32_t>, CUstream stream) override {
    rows.swapIn(stream);
  }
  void drain(CUstream stream) override;

private:
  void download(HostJob &job) override;
  void upload(HostJob &job) override;
  bool isWanted(const HostJob &job, const StateCopy &copy) const override;
  int32_t takeBox();
  void freeBox(int32_t box);
  bool hasBoxes(); ///< false: an upload has failed

  void watch();
  /// Everything that can be done now; false: nothing was, or never will be
  /// again (`failed`). With the lock.
  bool poll();
  bool landAndStart();
  bool noteChanges();
  bool land(HostJob &job);

  std::shared_ptr<const Context> context;
  std::condition_variable stopped;
  bool stopping = false, failed = false;
  std::vector<std::unique_ptr<HostJob>> ended; ///< out of the stages
  // Mailboxes; apart from the rest, because the uploads wait for them.
  std::mutex boxMutex;
  std::condition_variable boxFreed;
  bool boxesClosed = false;
  bool boxBusy[ss::kMailboxes] = {};
  std::unique_ptr<consolidation::Pipeline> pipeline;
  std::thread watcher;
};

} // namespace sinkstate::runtime::cuda

#endif
