// The bookkeeping of a step on the device: which states are due, and what their
// counts become. Compiled by NVRTC for the GPU, and by the host's compiler for
// the CPU's engine, which has the same rules, and the tests; nothing here is
// mathematics of a state.
#pragma once

#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
#define SS_BOTH_SIDES __device__ __forceinline__
#else
#include <cstdint>
#define SS_BOTH_SIDES inline
#endif

namespace ss {

/// What went wrong in a batch, as bits of Schedule::faults.
enum ScheduleFault : int32_t {
  kSlotOutOfRange = 1, ///< a slot is not below the number of slots
  kSlotTwice = 2,      ///< a slot is named by several rows
  kSlotLeft = 8        ///< a slot is of a step that was given up: see Schedule::left
};

/// One layer with a buffer. The arrays are those that kernels get; a deferred
/// layer, which its decode kernel compacts itself, has `count` alone.
struct ScheduleLayer {
  int32_t *count;      // [slots]
  int32_t *rank;       // [slots * heads]
  int32_t *status;     // [slots * heads]
  int32_t *work;       // [slots * heads]
  int32_t *work_count; // [1]
  int32_t *order;      // [slots * heads], programs of the batch
  int32_t heads, buffer, phase, deferred;
  int32_t dense_rows; // that a dense state counts as
  int32_t before;     // compacts before its tokens, not after them
  int32_t draft;      // in that case: tokens of a call that may be forgotten
};

/// All of an engine's layers with buffers.
struct Schedule {
  const ScheduleLayer *layers;
  int64_t *position;    // [slots]
  int64_t *compactions; // [1], of one state each
  int32_t *faults;      // [1]
  int32_t *step_tokens; // [slots]; 0: a step of one token; else one more than the
                        // tokens that every layer takes and counts itself
  int64_t *token_position; // [slots], within such a step: of the token that a layer takes
  int32_t *first_rows;     // [layer_count, at least 1; slots], of one launch: which row of
                           // a batch is the first to name a slot
  int32_t *step_rows;      // [rows], the slots of a step; other rows than the first are padding
  int32_t *left;           // [slots], 1: a step was given up when some layers had changed
                           // the slot's states, until it is made fresh
  int32_t layer_count, slots;
};

/// Whether the states of a slot are compacted after the token at `position`:
/// the request's own position decides, so that its bits do not depend on when
/// it joined; a full buffer always does.
SS_BOTH_SIDES bool is_due(const ScheduleLayer &layer, int64_t position, int32_t count) {
  if (layer.deferred)
    return false;
  return (position + 1) % layer.buffer == layer.phase || count + 1 >= layer.buffer;
}

/// Whether a position of the phase lies in (from, to]; 0 <= from <= to.
SS_BOTH_SIDES bool passes_phase(int64_t from, int64_t to, int32_t period, int32_t phase) {
  return (to - phase + period) / period > (from - phase + period) / period;
}

/// Layers that compact before their tokens: whether what is in the buffer is due
/// before the token at `position`. Until then it can be forgotten.
SS_BOTH_SIDES bool is_due_before(const ScheduleLayer &layer, int64_t position, int32_t count) {
  return count >= layer.buffer ||
         passes_phase(position - count, position, layer.buffer, layer.phase);
}

/// Whether a step of one token at `position` compacts, after it or before it.
SS_BOTH_SIDES bool is_listed(const ScheduleLayer &layer, int64_t position, int32_t count) {
  if (layer.deferred)
    return false;
  return layer.before ? is_due_before(layer, position, count)
                      : is_due(layer, position, count);
}

/// Whether a row of a batch names a slot; negative slots are padding.
SS_BOTH_SIDES bool is_slot(const Schedule &schedule, int32_t slot) {
  return slot >= 0 && slot < schedule.slots;
}

/// Whether a row is the one that a step decodes a slot for: of several rows that name
/// it the first.
SS_BOTH_SIDES bool takes_part(const Schedule &schedule, const int32_t *first_rows, int32_t slot,
                              int32_t row) {
  return is_slot(schedule, slot) && first_rows[slot] == row;
}

/// What is wrong with the slot of a row.
SS_BOTH_SIDES int32_t fault_of(const Schedule &schedule, const int32_t *first_rows, int32_t slot,
                               int32_t row) {
  if (slot < 0)
    return 0;
  if (slot >= schedule.slots)
    return kSlotOutOfRange;
  if (first_rows[slot] != row)
    return kSlotTwice;
  return schedule.left[slot] ? kSlotLeft : 0;
}

/// Lists all heads of a slot from `place` on.
SS_BOTH_SIDES void list_states(const ScheduleLayer &layer, int32_t slot, int32_t place) {
  for (int32_t head = 0; head < layer.heads; ++head)
    layer.work[place + head] = slot * layer.heads + head;
}

/// Counts the token at `position` of one slot in one layer, after what
/// compaction it made due; returns the states compacted.
SS_BOTH_SIDES int32_t advance_count(const ScheduleLayer &layer, int64_t position, int32_t slot) {
  const int32_t count = layer.count[slot];
  if (layer.deferred) {
    // Two halves of keys in turn; see state/DeferredState.h.
    layer.count[slot] = count == 2 * layer.buffer ? 1 : count + 1;
    return 0;
  }
  const bool due = !layer.before && is_due(layer, position, count);
  layer.count[slot] = due ? 0 : count + 1;
  return due ? layer.heads : 0;
}

/// States are sorted by rows two at a time, into so many classes; the first one
/// has all that is larger.
constexpr int32_t kSizeClasses = 128;

/// How much a program of a decode has to read: the most rows are class 0, and
/// padding is in the last.
SS_BOTH_SIDES int32_t size_class(const Schedule &schedule, const ScheduleLayer &layer,
                                 const int32_t *slots, int32_t program) {
  const int32_t slot = slots[program / layer.heads];
  if (!is_slot(schedule, slot))
    return kSizeClasses - 1;
  const int32_t rank = layer.rank[int64_t(slot) * layer.heads + program % layer.heads];
  const int32_t half = (rank < 0 ? layer.dense_rows : rank) / 2;
  return kSizeClasses - 1 - (half < kSizeClasses ? half : kSizeClasses - 1);
}

/// The step of a slot comes to no end.
SS_BOTH_SIDES void leave_slot(const Schedule &schedule, int32_t slot) {
  if (!is_slot(schedule, slot))
    return;
  schedule.left[slot] = 1;
  schedule.step_tokens[slot] = 0;
}

SS_BOTH_SIDES void reset_state(const ScheduleLayer &layer, int32_t slot, int32_t head) {
  layer.rank[int64_t(slot) * layer.heads + head] = 0;
  layer.status[int64_t(slot) * layer.heads + head] = 0;
}

} // namespace ss

#ifdef __CUDACC_RTC__

constexpr unsigned kWholeWarp = 0xffffffffu;

/// Calls `body(row, slot)` for the rows of a thread that name a slot.
template <typename Body>
__device__ __forceinline__ void with_slots(const ss::Schedule &schedule, const int32_t *slots,
                                           int32_t batch, const Body &body) {
  for (int32_t row = threadIdx.x; row < batch; row += blockDim.x)
    if (const int32_t slot = slots[row]; ss::is_slot(schedule, slot))
      body(row, slot);
}

/// A block: the first row that names each slot of a batch. Whichever row has written
/// last is one that names it; only where another one does, too, do they compare.
__device__ __forceinline__ void find_first_rows(const ss::Schedule &schedule, int32_t *first_rows,
                                                const int32_t *slots, int32_t batch) {
  volatile int32_t *written = first_rows;
  with_slots(schedule, slots, batch, [&](int32_t row, int32_t slot) { written[slot] = row; });
  __syncthreads();
  int again = 0;
  with_slots(schedule, slots, batch,
             [&](int32_t row, int32_t slot) { again |= written[slot] != row; });
  if (!__syncthreads_or(again))
    return;
  with_slots(schedule, slots, batch,
             [&](int32_t row, int32_t slot) { atomicMin(first_rows + slot, row); });
  __syncthreads();
}

/// A block: the slots of a batch as its kernels take them.
__device__ __forceinline__ void write_rows(const ss::Schedule &schedule,
                                           const int32_t *first_rows, const int32_t *slots,
                                           int32_t batch, int32_t *rows) {
  for (int32_t row = threadIdx.x; row < batch; row += blockDim.x) {
    const int32_t slot = slots[row];
    const int32_t fault = ss::fault_of(schedule, first_rows, slot, row);
    if (fault != 0)
      atomicOr(schedule.faults, fault);
    rows[row] = ss::takes_part(schedule, first_rows, slot, row) ? slot : -1;
  }
}

/// Lists the states of a layer that are due.
__device__ __forceinline__ void list_due(const ss::Schedule &schedule, const ss::ScheduleLayer &layer,
                                         const int32_t *first_rows, const int32_t *slots,
                                         int32_t batch) {
  __shared__ int32_t next;
  if (threadIdx.x == 0)
    next = 0;
  __syncthreads();
  for (int32_t row = threadIdx.x; row < batch; row += blockDim.x) {
    const int32_t slot = slots[row];
    // The order in which slots find their places changes no state.
    if (ss::takes_part(schedule, first_rows, slot, row) &&
        ss::is_listed(layer, schedule.position[slot], layer.count[slot]))
      ss::list_states(layer, slot, atomicAdd(&next, layer.heads));
  }
  __syncthreads();
  if (threadIdx.x == 0 && !layer.deferred)
    *layer.work_count = next;
}

/// Replaces counts by the sums of those before them.
__device__ __forceinline__ void add_up(int32_t (&counts)[ss::kSizeClasses]) {
  constexpr int32_t kEach = ss::kSizeClasses / 32;
  if (threadIdx.x < 32) {
    int32_t own[kEach], sum = 0;
    for (int32_t i = 0; i < kEach; ++i) {
      own[i] = counts[threadIdx.x * kEach + i];
      sum += own[i];
    }
    int32_t end = sum;
    for (int32_t distance = 1; distance < 32; distance *= 2) {
      const int32_t other = __shfl_up_sync(kWholeWarp, end, distance);
      end += threadIdx.x >= distance ? other : 0;
    }
    for (int32_t i = 0, begin = end - sum; i < kEach; begin += own[i++])
      counts[threadIdx.x * kEach + i] = begin;
  }
  __syncthreads();
}

/// What the counter of each lane's size was, which each adds one to: lanes of the same
/// size do it together, as most of a warp's are. Without a size (-1): nothing.
__device__ __forceinline__ int32_t take_place(int32_t (&counts)[ss::kSizeClasses], int32_t size) {
  const int32_t lane = threadIdx.x % 32;
  const unsigned same = __match_any_sync(kWholeWarp, size);
  const int32_t leader = __ffs(int(same)) - 1;
  int32_t place = 0;
  if (size >= 0 && lane == leader)
    place = atomicAdd(&counts[size], __popc(same));
  return __shfl_sync(kWholeWarp, place, leader) + __popc(same & ((1u << lane) - 1));
}

/// Calls `body(program, size)` for the programs of a thread, by whole warps: beyond the
/// last program size is -1. The sizes of several are asked for together: one after the
/// other they would take as long each.
template <typename Size, typename Body>
__device__ __forceinline__ void with_sizes(int32_t programs, const Size &size_of, const Body &body) {
  constexpr int32_t kAtOnce = 4;
  const int32_t threads = blockDim.x, lane = threadIdx.x % 32;
  for (int32_t first = threadIdx.x; first - lane < programs; first += kAtOnce * threads) {
    int32_t sizes[kAtOnce];
#pragma unroll
    for (int32_t i = 0; i < kAtOnce; ++i) {
      const int32_t program = first + i * threads;
      sizes[i] = program < programs ? size_of(program) : -1;
    }
#pragma unroll
    for (int32_t i = 0; i < kAtOnce; ++i)
      body(first + i * threads, sizes[i]);
  }
}

/// Sorts the programs of a layer's decode by what they read. Where equal ones
/// find their places changes no state.
__device__ __forceinline__ void order_programs(const ss::Schedule &schedule,
                                               const ss::ScheduleLayer &layer, const int32_t *slots,
                                               int32_t batch) {
  constexpr int32_t kKept = 16384; // sizes that are not found again
  static_assert(ss::kSizeClasses <= 256, "a size is a byte");
  __shared__ int32_t counts[ss::kSizeClasses];
  __shared__ unsigned char kept[kKept];
  if (layer.deferred)
    return;
  const int32_t programs = batch * layer.heads;
  for (int32_t size = threadIdx.x; size < ss::kSizeClasses; size += blockDim.x)
    counts[size] = 0;
  __syncthreads();
  auto find_size = [&](int32_t program) {
    return ss::size_class(schedule, layer, slots, program);
  };
  with_sizes(programs, find_size, [&](int32_t program, int32_t size) {
    (void)take_place(counts, size);
    if (size >= 0 && program < kKept)
      kept[program] = (unsigned char)(size);
  });
  __syncthreads();
  add_up(counts);
  auto known_size = [&](int32_t program) {
    return program < kKept ? int32_t(kept[program]) : find_size(program);
  };
  with_sizes(programs, known_size, [&](int32_t program, int32_t size) {
    const int32_t place = take_place(counts, size);
    if (size >= 0)
      layer.order[place] = program;
  });
}

/// A block per layer, and at least one: the rows of the step, and the states that are
/// due. Each block finds the first rows for itself.
extern "C" __global__ void __launch_bounds__(1024)
ss_schedule(ss::Schedule schedule, const int32_t *slots, int32_t batch) {
  int32_t *first_rows = schedule.first_rows + int64_t(blockIdx.x) * schedule.slots;
  find_first_rows(schedule, first_rows, slots, batch);
  if (blockIdx.x == 0) {
    write_rows(schedule, first_rows, slots, batch, schedule.step_rows);
    with_slots(schedule, slots, batch,
               [&](int32_t, int32_t slot) { schedule.step_tokens[slot] = 0; });
  }
  if (schedule.layer_count > 0)
    list_due(schedule, schedule.layers[blockIdx.x], first_rows, slots, batch);
}

/// A block: the rows of another list than the one that the step began with.
extern "C" __global__ void __launch_bounds__(1024)
ss_take_slots(ss::Schedule schedule, const int32_t *slots, int32_t batch, int32_t *rows) {
  find_first_rows(schedule, schedule.first_rows, slots, batch);
  write_rows(schedule, schedule.first_rows, slots, batch, rows);
}

/// A block per layer: the order of its decode's programs.
extern "C" __global__ void __launch_bounds__(1024)
ss_order_programs(ss::Schedule schedule, const int32_t *slots, int32_t batch) {
  order_programs(schedule, schedule.layers[blockIdx.x], slots, batch);
}

/// A block per row of the batch.
extern "C" __global__ void ss_advance(ss::Schedule schedule, const int32_t *slots, int32_t batch) {
  const int32_t slot = slots[blockIdx.x];
  if (!ss::is_slot(schedule, slot))
    return;
  const int64_t position = schedule.position[slot];
  const int32_t taken = schedule.step_tokens[slot];
  int32_t compacted = 0;
  for (int32_t layer = threadIdx.x; taken == 0 && layer < schedule.layer_count;
       layer += blockDim.x)
    compacted += ss::advance_count(schedule.layers[layer], position, slot);
  if (compacted > 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(schedule.compactions),
              (unsigned long long)(compacted));
  __syncthreads();
  if (threadIdx.x == 0) {
    schedule.position[slot] = position + (taken == 0 ? 1 : taken - 1);
    schedule.step_tokens[slot] = 0;
  }
}

/// A block: the slots of a step are left as its layers have them.
extern "C" __global__ void ss_leave_step(ss::Schedule schedule, int32_t batch) {
  for (int32_t row = threadIdx.x; row < batch; row += blockDim.x)
    ss::leave_slot(schedule, schedule.step_rows[row]);
}

/// A block per layer, and at least one.
extern "C" __global__ void ss_reset_slot(ss::Schedule schedule, int32_t slot) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    schedule.position[slot] = 0;
    schedule.step_tokens[slot] = 0;
    schedule.left[slot] = 0;
  }
  if (blockIdx.x >= schedule.layer_count)
    return;
  const ss::ScheduleLayer &layer = schedule.layers[blockIdx.x];
  if (threadIdx.x == 0)
    layer.count[slot] = 0;
  if (layer.deferred)
    return;
  for (int32_t head = threadIdx.x; head < layer.heads; head += blockDim.x)
    ss::reset_state(layer, slot, head);
}

#endif
