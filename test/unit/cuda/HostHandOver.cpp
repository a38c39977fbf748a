//===- HostHandOver.cpp - The hand-over kernels on the host ---------------===//

#include "HostHandOver.h"

#include "FakeCuda.h"
#include "HostSchedule.h"

#include "cuda/device/handover.cuh"

#include <algorithm>

namespace sinkstate::test {
namespace {

template <typename T> T value(void *const *parameters, int index) {
  return *static_cast<const T *>(parameters[index]);
}

void hostTakeTokens(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto *slots = value<const int32_t *>(parameters, 1);
  const auto batch = value<int32_t>(parameters, 2);
  const auto numbers = value<ss::RowNumbers>(parameters, 3);
  for (int32_t i = 0; i < numbers.rows && numbers.first + i < batch; ++i)
    if (ss::is_slot(schedule, slots[numbers.first + i]))
      schedule.step_tokens[slots[numbers.first + i]] = numbers.tokens[i] + 1;
}

void hostNextToken(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto number = value<int32_t>(parameters, 1);
  const auto *slots = value<const int32_t *>(parameters, 2);
  const auto batch = value<int32_t>(parameters, 3);
  const auto token = value<int32_t>(parameters, 4);
  auto *rowSlots = value<int32_t *>(parameters, 5);
  int32_t next = 0, compacted = 0;
  for (int32_t row = 0; row < batch; ++row) {
    const int32_t slot = slots[row];
    if (rowSlots)
      rowSlots[row] = ss::has_token(schedule, slot, token) ? slot : -1;
    ss::begin_token(schedule, slot, token);
    if (number < 0 || !ss::is_slot(schedule, slot))
      continue;
    const ss::ScheduleLayer &layer = schedule.layers[number];
    if (!ss::next_token(schedule, layer, slot, token, compacted))
      continue;
    ss::list_states(layer, slot, next);
    next += layer.heads;
  }
  if (number < 0)
    return;
  const ss::ScheduleLayer &layer = schedule.layers[number];
  if (!layer.deferred)
    *layer.work_count = next;
  *schedule.compactions += compacted;
}

void hostSettle(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const ss::ScheduleLayer &layer =
      schedule.layers[value<int32_t>(parameters, 1)];
  for (int32_t i = 0; i < *layer.work_count; ++i)
    layer.count[layer.work[i] / layer.heads] = 0;
  *schedule.compactions += *layer.work_count;
}

void hostRollback(void *, void *const *parameters, unsigned) {
  const auto schedule = value<ss::Schedule>(parameters, 0);
  const auto numbers = value<ss::RowNumbers>(parameters, 1);
  const auto apply = value<int32_t>(parameters, 2);
  auto *refused = value<int32_t *>(parameters, 3);
  const bool none = *refused == 0;
  for (int32_t i = 0; i < numbers.rows; ++i) {
    const int32_t slot = numbers.slot[i], tokens = numbers.tokens[i];
    if (slot < 0)
      continue;
    if (apply == 0 && !ss::can_forget(schedule, slot, tokens))
      *refused |= 1;
    else if (apply != 0 && none)
      ss::forget(schedule, slot, tokens);
  }
}

void hostCopyPieces(void *, void *const *parameters, unsigned blocks) {
  const auto *pieces = value<const ss::Piece *>(parameters, 0);
  for (unsigned block = 0; block < blocks; ++block)
    for (int32_t thread = 0; thread < 3; ++thread)
      ss::copy_piece(pieces[block], thread, 3);
}

/// Calls `body(v, k, place in columns, place in the caller's array)` for all
/// elements, square by square.
template <typename Body>
void overSquares(const ss::DenseMatrices &dense, unsigned blocks,
                 const Body &body) {
  for (unsigned block = 0; block < blocks; ++block) {
    const ss::Square square = ss::square_at(dense, block);
    for (int32_t v = square.v; v < std::min(square.v + ss::kSquare, dense.dv);
         ++v)
      for (int32_t k = square.k;
           k < std::min(square.k + ss::kSquare, dense.dk); ++k)
        body(ss::in_columns(dense, square.matrix, v, k),
             ss::in_caller(dense, square.matrix, v, k));
  }
}

void hostReadDense(void *, void *const *parameters, unsigned blocks) {
  const auto dense = value<ss::DenseMatrices>(parameters, 0);
  auto *columns = value<float *>(parameters, 1);
  overSquares(dense, blocks, [&](int64_t here, int64_t there) {
    columns[here] = ss::read_element(dense, there);
  });
}

void hostWriteDense(void *, void *const *parameters, unsigned blocks) {
  const auto dense = value<ss::DenseMatrices>(parameters, 0);
  const auto *columns = value<const float *>(parameters, 1);
  overSquares(dense, blocks, [&](int64_t here, int64_t there) {
    ss::write_element(dense, there, columns[here]);
  });
}

void add(const char *name, std::initializer_list<size_t> sizes,
         fake_kernel run) {
  fake_add_kernel(name, sizes.begin(), sizes.size(), run, nullptr);
}

} // namespace

void addHandOverKernels() {
  constexpr size_t schedule = sizeof(ss::Schedule),
                   numbers = sizeof(ss::RowNumbers),
                   dense = sizeof(ss::DenseMatrices);
  // What a launch may have on any GPU.
  static_assert(schedule + numbers + 64 <= 4096);
  add("ss_take_tokens", {schedule, 8, 4, numbers}, hostTakeTokens);
  add("ss_next_token", {schedule, 4, 8, 4, 4, 8}, hostNextToken);
  add("ss_settle", {schedule, 4}, hostSettle);
  add("ss_rollback", {schedule, numbers, 4, 8}, hostRollback);
  add("ss_copy_pieces", {8}, hostCopyPieces);
  add("ss_read_dense", {dense, 8}, hostReadDense);
  add("ss_write_dense", {dense, 8}, hostWriteDense);
}

} // namespace sinkstate::test
