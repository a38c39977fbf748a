//===- DeterministicConsolidator.h - Results at a fixed token ---*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_DETERMINISTICCONSOLIDATOR_H
#define SINKSTATE_CUDA_CONSOLIDATION_DETERMINISTICCONSOLIDATOR_H

#include "cuda/consolidation/CudaConsolidator.h"

namespace sinkstate::runtime::cuda {

/// A result lands `lag` tokens of the request after the compaction that made it
/// due, at the latest before the next one. Every ss_begin_step waits for the
/// steps before it, because only then the host knows where requests are: this
/// mode is for runs that have to be repeatable, not for those that have to be
/// fast. Used by the engine's caller alone.
class DeterministicConsolidator final : public CudaConsolidator,
                                        private consolidation::StateTransfer {
public:
  DeterministicConsolidator(const ConsolidatedStates &states,
                            const ss_engine_options &options,
                            const KernelCompiler &compiler);
  ~DeterministicConsolidator() override;

  void beginStep(CUstream stream) override;
  /// Lands what is due before the next token of each request.
  void drain(CUstream stream) override { settle(stream); }

private:
  struct Landing {
    bool underWay = false;
    int64_t position = 0; ///< where it lands
    std::unique_ptr<HostJob> done;
  };

  void download(HostJob &job) override;
  void upload(HostJob &) override {} // results land from where they are

  Landing &landing(int32_t layer, int32_t slot) {
    return landings[size_t(layer) * size_t(rows.slots()) + size_t(slot)];
  }
  int64_t landsAt(int32_t layer, int64_t position) const;
  void waitFor(int32_t layer, int32_t slot);
  void begin(int32_t layer, int32_t slot, uint64_t epoch, int64_t position);
  void settle(CUstream stream);
  void land(std::vector<std::unique_ptr<HostJob>> jobs, CUstream stream);
  size_t landSome(std::span<HostJob *const> jobs, CUstream stream);

  std::shared_ptr<const Context> context;
  int32_t lag; ///< negative: half a buffer
  std::vector<Landing> landings; ///< per layer and slot
  std::unique_ptr<consolidation::Pipeline> pipeline;
};

} // namespace sinkstate::runtime::cuda

#endif
