//===- HostSchedule.h - The bookkeeping kernels on the host -----*- C++ -*-===//
//
// The same functions that the kernels of device/schedule.cuh call, run in
// order on the host. For the fake driver: each takes the parameters of a
// launch.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HOSTSCHEDULE_H
#define SINKSTATE_UNIT_HOSTSCHEDULE_H

namespace sinkstate::test {

/// ss_schedule(ss::Schedule, const int32_t *slots, int32_t batch)
void hostSchedule(void *, void *const *parameters, unsigned blocks);
/// ss_take_slots(ss::Schedule, const int32_t *slots, int32_t batch, int32_t *rows)
void hostTakeSlots(void *, void *const *parameters, unsigned blocks);
/// ss_order_programs(ss::Schedule, const int32_t *slots, int32_t batch)
void hostOrderPrograms(void *, void *const *parameters, unsigned blocks);
/// ss_advance(ss::Schedule, const int32_t *slots, int32_t batch)
void hostAdvance(void *, void *const *parameters, unsigned blocks);
/// ss_leave_step(ss::Schedule, int32_t batch)
void hostLeave(void *, void *const *parameters, unsigned blocks);
/// ss_reset_slot(ss::Schedule, int32_t slot)
void hostReset(void *, void *const *parameters, unsigned blocks);

/// Makes all kernels of the runtime's own those of the fake driver.
void addHostKernels();

} // namespace sinkstate::test

#endif
