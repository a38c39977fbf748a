//===- HostSchedule.cpp - The bookkeeping kernels on the host -------------===//

#include "HostSchedule.h"

#include "cuda/device/schedule.cuh"

#include <algorithm>
#include <utility>
#include <vector>

namespace sinkstate::test {
namespace {

template <typename T> T value(void *const *parameters, int index) {
  return *static_cast<const T *>(parameters[index]);
}

void orderPrograms(const ss::Schedule &schedule, const ss::ScheduleLayer &layer,
                   const int32_t *slots, int32_t batch) {
  if (layer.deferred)
    return;
  std::vector<std::pair<int32_t, int32_t>> programs;
  for (int32_t program = 0; program < batch * layer.heads; ++program)
    programs.push_back(
        {ss::size_class(schedule, layer, slots, program), program});
  std::sort(programs.begin(), programs.end());
  for (size_t i = 0; i < programs.size(); ++i)
    layer.order[i] = programs[i].second;
}

void findFirstRows(const ss::Schedule &schedule, int32_t *firstRows,
                   const int32_t *slots, int32_t batch) {
  for (int32_t row = batch; row-- > 0;)
    if (ss::is_slot(schedule, slots[row]))
      firstRows[slots[row]] = row;
}

void writeRows(const ss::Schedule &schedule, const int32_t *firstRows,
               const int32_t *slots, int32_t batch, int32_t *rows) {
  for (int32_t row = 0; row < batch; ++row) {
    const int32_t fault = ss::fault_of(schedule, firstRows, slots[row], row);
    *schedule.faults |= fault;
    rows[row] =
        ss::takes_part(schedule, firstRows, slots[row], row) ? slots[row] : -1;
  }
}

} // namespace

void hostSchedule(void *, void *const *parameters, unsigned blocks) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto *slots = value<const int32_t *>(parameters, 1);
  const auto batch = value<int32_t>(parameters, 2);
  for (unsigned block = 0; block < blocks; ++block) {
    int32_t *firstRows = schedule.first_rows + int64_t(block) * schedule.slots;
    findFirstRows(schedule, firstRows, slots, batch);
    if (block == 0) {
      writeRows(schedule, firstRows, slots, batch, schedule.step_rows);
      for (int32_t row = 0; row < batch; ++row)
        if (ss::is_slot(schedule, slots[row]))
          schedule.step_tokens[slots[row]] = 0;
    }
    if (schedule.layer_count == 0)
      return;
    const ss::ScheduleLayer layer = schedule.layers[block];
    int32_t next = 0;
    for (int32_t row = 0; row < batch; ++row) {
      const int32_t slot = slots[row];
      if (!ss::takes_part(schedule, firstRows, slot, row) ||
          !ss::is_listed(layer, schedule.position[slot], layer.count[slot]))
        continue;
      ss::list_states(layer, slot, next);
      next += layer.heads;
    }
    if (!layer.deferred)
      *layer.work_count = next;
  }
}

void hostTakeSlots(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto *slots = value<const int32_t *>(parameters, 1);
  const auto batch = value<int32_t>(parameters, 2);
  findFirstRows(schedule, schedule.first_rows, slots, batch);
  writeRows(schedule, schedule.first_rows, slots, batch,
            value<int32_t *>(parameters, 3));
}

void hostOrderPrograms(void *, void *const *parameters, unsigned blocks) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  for (unsigned block = 0; block < blocks; ++block)
    orderPrograms(schedule, schedule.layers[block],
                  value<const int32_t *>(parameters, 1),
                  value<int32_t>(parameters, 2));
}

void hostAdvance(void *, void *const *parameters, unsigned blocks) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto *slots = value<const int32_t *>(parameters, 1);
  for (unsigned block = 0; block < blocks; ++block) {
    const int32_t slot = slots[block];
    if (!ss::is_slot(schedule, slot))
      continue;
    const int32_t taken = schedule.step_tokens[slot];
    for (int32_t layer = 0; taken == 0 && layer < schedule.layer_count; ++layer)
      *schedule.compactions += ss::advance_count(
          schedule.layers[layer], schedule.position[slot], slot);
    schedule.position[slot] += taken == 0 ? 1 : taken - 1;
    schedule.step_tokens[slot] = 0;
  }
}

void hostLeave(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto batch = value<int32_t>(parameters, 1);
  for (int32_t row = 0; row < batch; ++row)
    ss::leave_slot(schedule, schedule.step_rows[row]);
}

void hostReset(void *, void *const *parameters, unsigned blocks) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto slot = value<int32_t>(parameters, 1);
  schedule.position[slot] = 0;
  schedule.step_tokens[slot] = 0;
  schedule.left[slot] = 0;
  for (unsigned block = 0; block < blocks; ++block) {
    if (int32_t(block) >= schedule.layer_count)
      return;
    const ss::ScheduleLayer &layer = schedule.layers[block];
    layer.count[slot] = 0;
    if (layer.deferred)
      continue;
    for (int32_t head = 0; head < layer.heads; ++head)
      ss::reset_state(layer, slot, head);
  }
}

} // namespace sinkstate::test
