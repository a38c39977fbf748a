//===- DeterministicConsolidator.h - Results at a fixed token ---*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_DETERMINISTICCONSOLIDATOR_H
#define SINKSTATE_CUDA_CONSOLIDATION_DETERMINISTICCONSOLIDATOR_H

#include "cuda/consolidation/CudaConsolidator.h"

namespace sinkstate::runtime::cuda {

/// A result lands in a step of its own request alone: in that which compacts its
/// rows again, before it does, or, where `lag` is 0 and the layer compacts after its
/// tokens, in the first one behind the compaction that made it due. Nowhere between: a rollback could then forget tokens
/// behind which it landed. Every ss_begin_step waits for the steps before it, because
/// only then the host knows where requests are: this mode is for runs that have to be
/// repeatable, not for those that have to be fast. Used by the engine's caller alone.
class DeterministicConsolidator final : public CudaConsolidator,
                                        private consolidation::StateTransfer {
public:
  DeterministicConsolidator(const ConsolidatedStates &states,
                            const ss_engine_options &options,
                            const KernelCompiler &compiler);
  ~DeterministicConsolidator() override;

  void beginStep(std::span<const int32_t> slots, CUstream stream) override;
  /// Starts what is due. Nothing lands but in the steps of its request.
  void drain(CUstream stream) override { startJobs(stream); }

private:
  struct Landing {
    bool underWay = false;
    std::unique_ptr<HostJob> done;
  };

  void download(HostJob &job) override;
  void upload(HostJob &) override {} // results land from where they are

  Landing &landing(int32_t layer, int32_t slot) {
    return landings[size_t(layer) * size_t(rows.slots()) + size_t(slot)];
  }
  bool landsBefore(int32_t layer, int64_t position, int32_t pairs) const;
  void waitFor(int32_t layer, int32_t slot);
  void begin(int32_t layer, int32_t slot, uint64_t epoch, int64_t position);
  std::unique_ptr<HostJob> takeDone(int32_t layer, int32_t slot);
  void startJobs(CUstream stream);
  void landDue(std::span<const int32_t> slots, CUstream stream);
  void land(std::vector<std::unique_ptr<HostJob>> jobs, CUstream stream);
  size_t landSome(std::span<HostJob *const> jobs, CUstream stream);

  std::shared_ptr<const Context> context;
  int32_t lag; ///< negative: half a buffer
  std::vector<Landing> landings; ///< per layer and slot
  std::unique_ptr<consolidation::Pipeline> pipeline;
};

} // namespace sinkstate::runtime::cuda

#endif
