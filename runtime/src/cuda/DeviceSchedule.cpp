//===- DeviceSchedule.cpp - The bookkeeping of a step on a GPU ------------===//

#include "cuda/DeviceSchedule.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

// The text of device/schedule.cuh.
constexpr char kSource[] = {
#include "ScheduleSource.inc"
};

/// Rows of a batch, layers or heads that a block takes at a time.
constexpr unsigned kThreads = 128;
/// Programs that are ordered at a time.
constexpr unsigned kOrderThreads = 1024;

} // namespace

DeviceSchedule::DeviceSchedule(std::shared_ptr<const Context> owner,
                               const KernelCompiler &compiler)
    : context(std::move(owner)),
      module(context, "ss_schedule",
             compiler.compile({{"ss_schedule", std::string(kSource,
                                                           sizeof kSource)}},
                              {})[0]),
      scheduleFunction(module.function("ss_schedule")),
      takeSlotsFunction(module.function("ss_take_slots")),
      orderFunction(module.function("ss_order_programs")),
      advanceFunction(module.function("ss_advance")),
      leaveFunction(module.function("ss_leave_step")),
      resetFunction(module.function("ss_reset_slot")) {}

void DeviceSchedule::launch(CUfunction function, unsigned blocks,
                            unsigned threads, CUstream stream,
                            void **parameters) const {
  SS_CUDA(context->driver(),
          cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream,
                         parameters, nullptr));
}

void DeviceSchedule::list(ss::Schedule tables, std::span<const int32_t> slots,
                          CUstream stream) const {
  const int32_t *list = slots.data();
  int32_t batch = int32_t(slots.size());
  void *parameters[] = {&tables, &list, &batch};
  launch(scheduleFunction, unsigned(std::max(1, tables.layer_count)), kThreads,
         stream, parameters);
}

void DeviceSchedule::takeSlots(ss::Schedule tables,
                               std::span<const int32_t> slots, int32_t *rows,
                               CUstream stream) const {
  const int32_t *list = slots.data();
  int32_t batch = int32_t(slots.size());
  void *parameters[] = {&tables, &list, &batch, &rows};
  launch(takeSlotsFunction, 1, kThreads, stream, parameters);
}

void DeviceSchedule::order(ss::Schedule tables, std::span<const int32_t> slots,
                           CUstream stream) const {
  const int32_t *list = slots.data();
  int32_t batch = int32_t(slots.size());
  void *parameters[] = {&tables, &list, &batch};
  launch(orderFunction, unsigned(tables.layer_count), kOrderThreads, stream,
         parameters);
}

void DeviceSchedule::advance(ss::Schedule tables,
                             std::span<const int32_t> slots,
                             CUstream stream) const {
  const int32_t *list = slots.data();
  int32_t batch = int32_t(slots.size());
  void *parameters[] = {&tables, &list, &batch};
  launch(advanceFunction, unsigned(batch), kThreads, stream, parameters);
}

void DeviceSchedule::leave(ss::Schedule tables, int32_t batch,
                           CUstream stream) const {
  void *parameters[] = {&tables, &batch};
  launch(leaveFunction, 1, kThreads, stream, parameters);
}

void DeviceSchedule::reset(ss::Schedule tables, int32_t slot,
                           CUstream stream) const {
  void *parameters[] = {&tables, &slot};
  launch(resetFunction, unsigned(std::max(1, tables.layer_count)), kThreads,
         stream, parameters);
}

} // namespace sinkstate::runtime::cuda
