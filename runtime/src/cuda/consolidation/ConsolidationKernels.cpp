//===- ConsolidationKernels.cpp - The kernels of consolidation ------------===//

#include "cuda/consolidation/ConsolidationKernels.h"

namespace sinkstate::runtime::cuda {
namespace {

// The text of device/consolidation.cuh.
constexpr char kSource[] = {
#include "ConsolidationSource.inc"
};

constexpr unsigned kThreads = 256;

} // namespace

ConsolidationKernels::ConsolidationKernels(
    std::shared_ptr<const Context> owner, const KernelCompiler &compiler)
    : context(std::move(owner)),
      module(context, "ss_consolidation",
             compiler.compile({{"ss_consolidation",
                                std::string(kSource, sizeof kSource)}},
                              {})[0]),
      noteCompactionsFunction(module.function("ss_note_compactions")),
      noteSlotFunction(module.function("ss_note_slot")),
      gatherFunction(module.function("ss_gather")),
      swapInFunction(module.function("ss_swap_in")) {}

void ConsolidationKernels::launch(CUfunction function, unsigned blocks,
                                  CUstream stream, void **parameters) const {
  SS_CUDA(context->driver(),
          cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                         parameters, nullptr));
}

void ConsolidationKernels::noteCompactions(ss::Frozen tables,
                                           CUstream stream) const {
  void *parameters[] = {&tables};
  launch(noteCompactionsFunction, unsigned(tables.layer_count), stream,
         parameters);
}

void ConsolidationKernels::noteSlot(ss::Frozen tables, int32_t slot,
                                    CUstream stream) const {
  void *parameters[] = {&tables, &slot};
  launch(noteSlotFunction, unsigned(tables.layer_count), stream, parameters);
}

void ConsolidationKernels::gather(ss::Gather work, int32_t states,
                                  CUstream stream) const {
  void *parameters[] = {&work};
  launch(gatherFunction, unsigned(states), stream, parameters);
}

void ConsolidationKernels::swapIn(ss::Frozen tables, ss::Mailboxes boxes,
                                  CUstream stream) const {
  void *parameters[] = {&tables, &boxes};
  // One block a multiprocessor: nearly always it finds nothing to do.
  launch(swapInFunction, unsigned(context->multiprocessors()), stream,
         parameters);
}

} // namespace sinkstate::runtime::cuda
