//===- ConsolidationKernels.h - The kernels of consolidation ----*- C++ -*-===//
#ifndef SINKSTATE_CUDA_CONSOLIDATION_CONSOLIDATIONKERNELS_H
#define SINKSTATE_CUDA_CONSOLIDATION_CONSOLIDATIONKERNELS_H

#include "cuda/KernelCompiler.h"
#include "cuda/Module.h"
#include "cuda/device/consolidation.cuh"

namespace sinkstate::runtime::cuda {

/// The kernels of device/consolidation.cuh. Each call is one launch.
class ConsolidationKernels {
public:
  ConsolidationKernels(std::shared_ptr<const Context> context,
                       const KernelCompiler &compiler);

  void noteCompactions(ss::Frozen tables, CUstream stream) const;
  void noteSlot(ss::Frozen tables, int32_t slot, CUstream stream) const;
  void gather(ss::Gather work, int32_t states, CUstream stream) const;
  void swapIn(ss::Frozen tables, ss::Mailboxes boxes, CUstream stream) const;

private:
  void launch(CUfunction function, unsigned blocks, CUstream stream,
              void **parameters) const;

  std::shared_ptr<const Context> context;
  Module module;
  CUfunction noteCompactionsFunction, noteSlotFunction, gatherFunction,
      swapInFunction;
};

} // namespace sinkstate::runtime::cuda

#endif
