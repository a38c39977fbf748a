//===- DeviceSchedule.h - The bookkeeping of a step on a GPU ----*- C++ -*-===//
#ifndef SINKSTATE_CUDA_DEVICESCHEDULE_H
#define SINKSTATE_CUDA_DEVICESCHEDULE_H

#include "cuda/KernelCompiler.h"
#include "cuda/Module.h"
#include "cuda/device/schedule.cuh"

#include <span>

namespace sinkstate::runtime::cuda {

/// The kernels of device/schedule.cuh. Each call is one launch for all layers.
class DeviceSchedule {
public:
  DeviceSchedule(std::shared_ptr<const Context> context,
                 const KernelCompiler &compiler);

  /// Makes the rows of a step, and the work lists of all layers.
  void list(ss::Schedule tables, std::span<const int32_t> slots,
            CUstream stream) const;
  /// The rows of another list within a step.
  void takeSlots(ss::Schedule tables, std::span<const int32_t> slots,
                 int32_t *rows, CUstream stream) const;
  /// The orders in which the programs of all layers' decodes begin: of at most as
  /// many rows as slots, and of one layer at least.
  void order(ss::Schedule tables, std::span<const int32_t> slots,
             CUstream stream) const;
  /// Brings counts and positions forward.
  void advance(ss::Schedule tables, std::span<const int32_t> slots,
               CUstream stream) const;
  /// Notes that the slots of the step that was listed last have states of no token.
  void leave(ss::Schedule tables, int32_t batch, CUstream stream) const;
  /// Makes every factored state of a slot zero.
  void reset(ss::Schedule tables, int32_t slot, CUstream stream) const;

private:
  void launch(CUfunction function, unsigned blocks, unsigned threads,
              CUstream stream, void **parameters) const;

  std::shared_ptr<const Context> context;
  Module module;
  CUfunction scheduleFunction, takeSlotsFunction, orderFunction,
      advanceFunction, leaveFunction, resetFunction;
};

} // namespace sinkstate::runtime::cuda

#endif
