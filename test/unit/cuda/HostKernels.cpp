//===- HostKernels.cpp - The runtime's own kernels on the fake driver -----===//

#include "HostSchedule.h"

#include "FakeCuda.h"
#include "HostConsolidation.h"
#include "HostConversion.h"
#include "HostHandOver.h"
#include "HostRows.h"

#include "cuda/device/schedule.cuh"

#include <initializer_list>
#include <vector>

namespace sinkstate::test {
namespace {

void add(const char *name, std::initializer_list<size_t> sizes,
         fake_kernel run) {
  const std::vector<size_t> list(sizes);
  fake_add_kernel(name, list.data(), list.size(), run, nullptr);
}

} // namespace

void addHostKernels() {
  add("ss_schedule", {sizeof(ss::Schedule), 8, 4}, hostSchedule);
  add("ss_take_slots", {sizeof(ss::Schedule), 8, 4, 8}, hostTakeSlots);
  add("ss_order_programs", {sizeof(ss::Schedule), 8, 4}, hostOrderPrograms);
  add("ss_advance", {sizeof(ss::Schedule), 8, 4}, hostAdvance);
  add("ss_leave_step", {sizeof(ss::Schedule), 4}, hostLeave);
  add("ss_reset_slot", {sizeof(ss::Schedule), 4}, hostReset);
  addConversionKernels();
  addHandOverKernels();
  addRowKernels();
  add("ss_note_compactions", {sizeof(ss::Frozen)}, hostNoteCompactions);
  add("ss_note_slot", {sizeof(ss::Frozen), 4}, hostNoteSlot);
  add("ss_gather", {sizeof(ss::Gather)}, hostGather);
  add("ss_swap_in", {sizeof(ss::Frozen), sizeof(ss::Mailboxes)}, hostSwapIn);
}

} // namespace sinkstate::test
