// Where the rows of states lie, and in which form: what happens to the blocks
// of pool.cuh around the compactions of a step. Before a layer's compactions, and
// not beside its decode, the states that are due get room for all that a
// compaction may leave, or give back what is too much, and those that are smaller
// as a matrix get a block for it; after the compactions the matrices take the
// factors' place.
#pragma once

#include "pool.cuh"

namespace ss {

/// Bits of a state's status that this file touches, as in routines.h.
constexpr int32_t kNotFinite = 1, kNotConverged = 4, kTightened = 8, kOutOfRange = 16;

/// Folds of a dense state between two attempts to store it in factors again.
constexpr int32_t kFoldsPerAttempt = 16;

/// Words of RowTables::faults.
enum RowFault : int32_t {
  kRowsDenied = 1,    ///< a compaction kept less than the policy would have
  kTooManyRequests = 2 ///< a batch named a slot twice
};

/// One factored layer. The arrays are those that kernels get.
struct RowLayer {
  int64_t *row_base;          // [states]
  int32_t *row_capacity;      // [states]; 0: no block
  int32_t *rank;              // [states]
  int32_t *status;            // [states]
  const int32_t *count;       // [slots]
  const int32_t *due;         // [states], what the schedule lists
  const int32_t *due_count;   // [1]
  int32_t *work;              // [states], of those: what is compacted
  int32_t *work_count;        // [1]
  int32_t *dense_work;        // [states], and what is densified
  int32_t *dense_count;       // [1]
  int64_t *dense_place;       // [states] out_base of those
  int32_t *folds;             // [states], since the state went dense; of one without
                              // rows: 1 where its slot has an owner
  // What a decomposition of matrices works on, beside the states' own tables.
  int32_t *back_work;         // [states], states to decompose
  int32_t *back_count;        // [1]
  int64_t *back_matrix;       // [states], elements from the pool's begin, as listed
  int64_t *back_base;         // [states], rows for the factors
  int32_t *back_rank;         // [states], what was found
  int32_t *back_status;       // [states]
  int32_t *asked;             // [most_asked], its requests in this step; kNoRequest: void
  int32_t *asked_count;       // [1], and those that found no room
  int32_t *last;              // [states], what was due in the last step
  int32_t *last_count;        // [1]
  int32_t *noted;             // [states], bytes that RowPool::live has of it
  int32_t heads, pool;
  int32_t most_asked;         // two for each state
  int32_t pairs;              // of a full buffer, drafts included
  int32_t before;             // 1: it is compacted before its tokens, none is ahead
  int32_t buffer, phase;      // as of its schedule
  int32_t bound;              // most rows of a state in factors
  int32_t break_even;         // rank from which a state goes dense
  int32_t most_back;          // rank up to which it comes back; 0: it does not
  int32_t dense_rows;         // rows that a matrix takes
  int32_t row_elements;       // of a row
  int32_t out_is_rows;        // 1: densify's `out` is the pool itself
  int32_t matrix_elements;
  // docs/state-math.md section 7: a row, the buffer, the matrix.
  int32_t live_row, live_buffer, live_matrix;
  int32_t sink_rows;          // 1: the first compaction stores a sink as well
  int32_t room;               // rows more than needed in a new block
  int32_t spare;              // rows too many before a smaller block is asked for
};

struct RowTables {
  const RowLayer *layers;
  RowPool *pools;
  int64_t *counters; // [kRowCounters]
  int32_t *faults;   // [1]
  const int64_t *position; // [slots]
  int32_t layer_count, pool_count, slots;
};

/// Places of RowTables::counters.
enum RowCounter : int32_t {
  kFolds,
  kWentDense,
  kWentFactored,
  kTightenedCount,
  kOutOfRangeCount,
  kRowCounters
};

/// `out_base` of a densify kernel for a matrix that begins at a row of the
/// pool, as docs/interfaces.md section 3 has it.
SS_BOTH_SIDES int64_t matrix_place(const RowLayer &layer, int64_t row) {
  const int64_t element = row * layer.row_elements;
  return layer.out_is_rows ? element : -1 - element;
}

SS_BOTH_SIDES void list_dense(const RowLayer &layer, int32_t state, int64_t row) {
  const int32_t place = add_shared(layer.dense_count, 1);
  layer.dense_work[place] = state;
  layer.dense_place[place] = matrix_place(layer, row);
}

/// A matrix to decompose, where it is, into the rows at `base`.
SS_BOTH_SIDES void list_back(const RowLayer &layer, int32_t state, int64_t base) {
  const int32_t place = add_shared(layer.back_count, 1);
  layer.back_work[place] = state;
  layer.back_matrix[place] = layer.row_base[state] * layer.row_elements;
  layer.back_base[state] = base;
}

SS_BOTH_SIDES void list_compact(const RowLayer &layer, int32_t state) {
  layer.work[add_shared(layer.work_count, 1)] = state;
}

/// Rows that a compaction of a rank and so many pairs may leave at most.
SS_BOTH_SIDES int32_t rows_left(const RowLayer &layer, int32_t rank, int32_t pairs) {
  const int32_t rows = (rank == 0 ? layer.sink_rows : rank) +
                       (pairs < layer.pairs ? pairs : layer.pairs);
  return rows < layer.bound ? rows : layer.bound;
}

SS_BOTH_SIDES int32_t rows_needed(const RowLayer &layer, int32_t state, int32_t ahead) {
  const int32_t pairs = layer.count[state / layer.heads] + (layer.before ? 0 : ahead);
  return rows_left(layer, layer.rank[state], pairs);
}

SS_BOTH_SIDES int32_t with_room(const RowLayer &layer, int32_t rows) {
  const int32_t more = rows + layer.room;
  return more < layer.bound ? more : layer.bound;
}

/// Whether a block is to be left: its chunk is hardly used, or the pool shrinks.
SS_BOTH_SIDES bool is_to_leave(const RowPool &pool, int64_t base) {
  if (base < kScrapRows)
    return false;
  const int32_t chunk = chunk_at(pool, base);
  return chunk >= pool.bound || pool.leaving[chunk];
}

/// Whether a state of these rows gets another block.
SS_BOTH_SIDES bool wants_block(const RowLayer &layer, const RowPool &pool, int64_t base,
                               int32_t capacity, int32_t needed) {
  if (capacity < needed || is_to_leave(pool, base))
    return true;
  return capacity > needed + layer.room + layer.spare &&
         capacity > pool.capacity[pool.class_of[with_room(layer, needed)]];
}

/// Notes the bytes of a state; returns what RowPool::live changes by.
SS_BOTH_SIDES int64_t note_live(const RowLayer &layer, int32_t state, int32_t bytes) {
  const int32_t before = layer.noted[state];
  layer.noted[state] = bytes;
  return int64_t(bytes) - before;
}

SS_BOTH_SIDES int32_t live_bytes(const RowLayer &layer, int32_t rank) {
  const int64_t factors = int64_t(rank) * layer.live_row + layer.live_buffer;
  return rank < 0 || factors > layer.live_matrix ? layer.live_matrix : int32_t(factors);
}

/// Asks for a block of `rows` rows for a state; false where there is no room for
/// the request itself.
SS_BOTH_SIDES bool ask_rows(const RowTables &tables, int32_t rows, const RowRequest &request) {
  const RowLayer &layer = tables.layers[request.layer];
  const int32_t place = add_shared(layer.asked_count, 1);
  if (place >= layer.most_asked)
    return false;
  layer.asked[place] = ask_block(tables.pools[layer.pool], rows, request);
  return layer.asked[place] != kNoRequest;
}

/// A request of a layer by its number there, or null.
SS_BOTH_SIDES RowRequest *request_at(const RowLayer &layer, const RowPool &pool, int32_t number) {
  const int32_t place = layer.asked[number];
  return place == kNoRequest ? nullptr : pool.requests + place;
}

SS_BOTH_SIDES int32_t requests_of(const RowLayer &layer) {
  return *layer.asked_count < layer.most_asked ? *layer.asked_count : layer.most_asked;
}

/// A dense state is written in place, at the address that it has when the step
/// is through with moving. Now and then it is tried whether factors would do.
SS_BOTH_SIDES void plan_dense(const RowTables &tables, RowPool &pool, RowRequest request) {
  const RowLayer &layer = tables.layers[request.layer];
  const int32_t state = request.state;
  const int64_t base = layer.row_base[state];
  const int32_t folds = ++layer.folds[state];
  if (layer.most_back > 0 && folds % kFoldsPerAttempt == 0) {
    request.purpose = kGoBack;
    ask_rows(tables, layer.most_back + 1, request);
  } else if (is_to_leave(pool, base) && ask_rows(tables, layer.dense_rows, request)) {
    return; // listed when it has moved
  }
  list_dense(layer, state, base);
  add_shared(tables.counters + kFolds, 1);
}

/// Plans for one state that is due: what it is listed for, and what it asks.
/// Returns what RowPool::live changes by.
SS_BOTH_SIDES int64_t plan_state(const RowTables &tables, int32_t index, int32_t state,
                              int32_t ahead) {
  const RowLayer &layer = tables.layers[index];
  RowPool &pool = tables.pools[layer.pool];
  const int32_t rank = layer.rank[state], capacity = layer.row_capacity[state];
  const int64_t base = layer.row_base[state];
  RowRequest request = {index, state, 0, 0, kResize, 0};
  const int64_t grown = note_live(layer, state, live_bytes(layer, rank));
  if (rank < 0) {
    plan_dense(tables, pool, request);
    return grown;
  }
  bool listed = false;
  if (rank >= layer.break_even) {
    request.purpose = kGoDense;
    listed = ask_rows(tables, layer.dense_rows, request); // when the answer is there
    request.purpose = kResize;
  }
  const int32_t needed = rows_needed(layer, state, ahead);
  if (wants_block(layer, pool, base, capacity, needed) &&
      !ask_rows(tables, with_room(layer, needed), request))
    or_shared(reinterpret_cast<uint32_t *>(tables.faults), kTooManyRequests);
  if (!listed)
    list_compact(layer, state);
  return grown;
}

/// Whether a slot is among those that are due in this step, which have their heads
/// one after another.
SS_BOTH_SIDES bool is_due(const RowLayer &layer, int32_t slot) {
  for (int32_t i = 0; i < *layer.due_count; i += layer.heads)
    if (layer.due[i] / layer.heads == slot)
      return true;
  return false;
}

/// The same by lanes, each of which looks at some.
SS_BOTH_SIDES bool is_due(const RowLayer &layer, int32_t slot, int32_t lane, int32_t lanes) {
  bool found = false;
  for (int32_t i = lane * layer.heads; i < *layer.due_count; i += lanes * layer.heads)
    found |= layer.due[i] / layer.heads == slot;
  return any_lane(found);
}

/// A state that the last step has compacted gives back what it does not fill,
/// where memory is short. One that is due again asks for itself.
SS_BOTH_SIDES void squeeze_state(const RowTables &tables, int32_t index, int32_t state) {
  const RowLayer &layer = tables.layers[index];
  RowPool &pool = tables.pools[layer.pool];
  const int32_t rank = layer.rank[state];
  if (rank < 0 || is_due(layer, state / layer.heads))
    return;
  if (layer.row_capacity[state] > pool.capacity[pool.class_of[rank]])
    ask_rows(tables, rank, {index, state, 0, 0, kResize, 0});
}

/// What a state held is lost; it gets a block of at least `rows` rows.
SS_BOTH_SIDES void place_state(const RowTables &tables, int32_t index, int32_t state,
                               int32_t rows) {
  const RowLayer &layer = tables.layers[index];
  RowPool &pool = tables.pools[layer.pool];
  layer.rank[state] = 0;
  layer.folds[state] = 0;
  const int32_t capacity = layer.row_capacity[state];
  if (capacity < rows || capacity > pool.capacity[pool.class_of[rows]])
    ask_block(pool, rows, {index, state, 0, 0, kResize, 0});
}

//===-- What the next steps will ask ---------------------------------------===//

/// Whether a step of one token at `position` compacts a slot's states: as the
/// schedule has it (device/schedule.cuh).
SS_BOTH_SIDES bool compacts_at(const RowLayer &layer, int64_t position, int32_t count) {
  if (!layer.before)
    return (position + 1) % layer.buffer == layer.phase || count + 1 >= layer.buffer;
  const int64_t to = position - layer.phase + layer.buffer;
  return count >= layer.buffer || to / layer.buffer > (to - count) / layer.buffer;
}

/// The pairs that a compaction of a slot's states will find, of the first one within
/// the next steps; 0: there is none. `due`: they are compacted in this step.
SS_BOTH_SIDES int32_t pairs_to_come(const RowLayer &layer, int64_t position, int32_t count,
                                    bool due) {
  for (int32_t step = 0; step <= kForeseenSteps; ++step, ++position) {
    const bool compacts = compacts_at(layer, position, count);
    const int32_t pairs = count + !layer.before;
    if (compacts && (step > 0 || !due))
      return pairs;
    count = compacts ? layer.before : count + 1;
  }
  return 0;
}

/// Counts what plan_state() will ask for a state, if nothing moves it before.
/// `pairs`: that it will have; `due`: after it has been compacted in this step.
SS_BOTH_SIDES void foresee_state(const RowTables &tables, const RowLayer &layer, int32_t state,
                                 int32_t pairs, bool due) {
  RowPool &pool = tables.pools[layer.pool];
  const int32_t rank = layer.rank[state], capacity = layer.row_capacity[state];
  const int32_t folds = layer.folds[state];
  const int64_t base = layer.row_base[state];
  auto expect = [&](int32_t rows) { add_shared(&pool.coming[pool.class_of[rows]], 1); };
  if (rank < 0) {
    if (layer.most_back > 0 && (folds + 1) % kFoldsPerAttempt == 0)
      expect(layer.most_back + 1);
    else if (is_to_leave(pool, base))
      expect(layer.dense_rows);
    return;
  }
  if (capacity == 0 && folds == 0) // nobody's
    return;
  if (rank >= layer.break_even)
    expect(layer.dense_rows);
  const int32_t most = due ? rows_left(layer, rank, layer.pairs) : rank;
  const int32_t needed = rows_left(layer, most, pairs);
  if (wants_block(layer, pool, base, capacity, needed))
    expect(with_room(layer, needed));
}

/// The heads of a slot: `lane` of `lanes`.
SS_BOTH_SIDES void foresee_slot(const RowTables &tables, const RowLayer &layer, int32_t slot,
                                int32_t lane, int32_t lanes) {
  const int64_t position = tables.position[slot];
  const int32_t count = layer.count[slot];
  const bool due = compacts_at(layer, position, count) &&
                   is_due(layer, slot, lane, lanes);
  const int32_t pairs = pairs_to_come(layer, position, count, due);
  if (pairs == 0)
    return;
  for (int32_t head = lane; head < layer.heads; head += lanes)
    foresee_state(tables, layer, slot * layer.heads + head, pairs, due);
}

//===-- Moving: a team of threads per request ----------------------------===//

/// Copies `bytes` bytes. Rows of 8 bits may begin anywhere.
SS_BOTH_SIDES void copy_bytes(char *to, const char *from, int64_t bytes, int32_t lane,
                              int32_t lanes) {
  const auto unaligned = uint32_t((unsigned long long)(to) | (unsigned long long)(from) |
                                  (unsigned long long)(bytes));
#ifdef __CUDACC_RTC__
  if (unaligned % 16 == 0) {
    auto *target = reinterpret_cast<int4 *>(to);
    auto *source = reinterpret_cast<const int4 *>(from);
#pragma unroll 4
    for (int64_t i = lane; i < bytes / 16; i += lanes)
      target[i] = source[i];
    return;
  }
#endif
  if (unaligned % 2 != 0) {
    for (int64_t i = lane; i < bytes; i += lanes)
      to[i] = from[i];
    return;
  }
  auto *target = reinterpret_cast<short *>(to);
  auto *source = reinterpret_cast<const short *>(from);
  for (int64_t i = lane; i < bytes / 2; i += lanes)
    target[i] = source[i];
}

/// Everything that a state stores, to another row of its pool.
SS_BOTH_SIDES void copy_state(const RowLayer &layer, const RowPool &pool, int32_t rank,
                              int64_t from, int64_t to, int32_t lane, int32_t lanes) {
  const int64_t element = pool.row_bytes / layer.row_elements;
  const int64_t bytes = rank < 0 ? layer.matrix_elements * element : rank * pool.row_bytes;
  copy_bytes(pool.rows + to * pool.row_bytes, pool.rows + from * pool.row_bytes, bytes, lane,
             lanes);
  for (int32_t i = lane; i < rank; i += lanes)
    pool.weights[to + i] = pool.weights[from + i];
}

/// A state leaves its block for another one. By an exchange, so that no block
/// is lost where a batch names a slot twice.
SS_BOTH_SIDES void take_block(const RowLayer &layer, RowPool &pool, int32_t state,
                              int32_t size_class, int32_t block) {
  const int64_t old =
      exchange_shared(layer.row_base + state, block_base(pool, block, size_class));
  layer.row_capacity[state] = pool.capacity[size_class];
  if (old >= kScrapRows)
    free_block(pool, old);
}

/// What one thread does with the answer to a request, when the copy is made.
/// `block` kNoBlock: the state stays where it is.
SS_BOTH_SIDES void finish_request(const RowTables &tables, RowRequest &request, int32_t block) {
  const RowLayer &layer = tables.layers[request.layer];
  RowPool &pool = tables.pools[layer.pool];
  const int32_t state = request.state;
  if (request.purpose == kGoDense) {
    // Without a block it stays in factors, which is as exact.
    if (block == kNoBlock)
      list_compact(layer, state);
    else
      list_dense(layer, state, block_base(pool, block, request.size_class));
    return;
  }
  if (request.purpose == kGoBack) {
    if (block != kNoBlock)
      list_back(layer, state, block_base(pool, block, request.size_class));
    return;
  }
  if (block == kNoBlock) {
    request.before = layer.status[state] & kTightened;
    layer.status[state] &= ~kTightened;
  } else {
    take_block(layer, pool, state, request.size_class, block);
  }
  request.purpose = block == kNoBlock ? kDenied : kSettled;
  if (layer.rank[state] < 0) {
    list_dense(layer, state, layer.row_base[state]);
    add_shared(tables.counters + kFolds, 1);
  }
}

//===-- Between the matrices and the compactions --------------------------===//

/// Whether a matrix of f16 keeps its digits: what is near either end of the
/// exponents stays in factors, whose weights are f32. `largest`: bits of the
/// largest element.
SS_BOTH_SIDES bool is_in_range(int32_t largest) {
  constexpr int32_t kLeast = 0x2000, kMost = 0x7800; // 2^-7 and 2^15
  return largest >= kLeast && largest < kMost;
}

/// A dense state has been folded in place, whatever became of it: what f16 has no
/// digits for, or no numbers, is said. Zero has lost nothing worth saying.
SS_BOTH_SIDES void note_range(const RowTables &tables, const RowLayer &layer, int32_t state,
                              int32_t largest) {
  constexpr int32_t kInfinity = 0x7c00;
  if (largest == 0 || is_in_range(largest))
    return;
  layer.status[state] |= kOutOfRange | (largest >= kInfinity ? kNotFinite : 0);
  add_shared(tables.counters + kOutOfRangeCount, 1);
}

/// The largest element of a matrix of f16, of those that are this thread's.
SS_BOTH_SIDES int32_t largest_element(const RowLayer &layer, const RowPool &pool, int64_t row,
                                      int32_t thread, int32_t threads) {
  auto *elements = reinterpret_cast<const unsigned short *>(pool.rows + row * pool.row_bytes);
  int32_t largest = 0;
  for (int32_t i = thread; i < layer.matrix_elements; i += threads)
    largest = largest < (elements[i] & 0x7fff) ? elements[i] & 0x7fff : largest;
  return largest;
}

/// Whether a request has a matrix to check.
SS_BOTH_SIDES bool has_matrix(const RowPool &pool, const RowRequest *request) {
  return request && request->purpose == kGoDense && granted_block(pool, *request) != kNoBlock;
}

/// The state stays in factors and is compacted after all.
SS_BOTH_SIDES void reject_matrix(const RowTables &tables, RowPool &pool,
                                 const RowRequest &request) {
  const int32_t place = pool.first_grant[request.size_class] + request.ticket;
  free_block(pool, block_base(pool, pool.granted[place], request.size_class));
  pool.granted[place] = kNoBlock;
  list_compact(tables.layers[request.layer], request.state);
}

//===-- After the compactions ---------------------------------------------===//

/// The factors of a matrix are the state's, where they are few.
SS_BOTH_SIDES void settle_back(const RowTables &tables, RowPool &pool, const RowRequest &request,
                               int32_t block) {
  const RowLayer &layer = tables.layers[request.layer];
  const int32_t state = request.state, rank = layer.back_rank[state];
  const bool failed = layer.back_status[state] & (kNotFinite | kNotConverged);
  if (failed || rank < 0 || rank > layer.most_back || layer.rank[state] >= 0) {
    free_block(pool, block_base(pool, block, request.size_class));
    return;
  }
  take_block(layer, pool, state, request.size_class, block);
  layer.rank[state] = rank;
  add_shared(tables.counters + kWentFactored, 1);
}

/// A state that went dense leaves its factors; one that had to be compacted
/// within its rows says so.
SS_BOTH_SIDES void settle_request(const RowTables &tables, RowRequest &request) {
  const RowLayer &layer = tables.layers[request.layer];
  RowPool &pool = tables.pools[layer.pool];
  const int32_t state = request.state, block = granted_block(pool, request);
  if (request.purpose == kDenied) {
    if (layer.status[state] & kTightened) {
      add_shared(tables.counters + kTightenedCount, 1);
      or_shared(reinterpret_cast<uint32_t *>(tables.faults), kRowsDenied);
    }
    layer.status[state] |= request.before;
  }
  if (request.purpose == kGoDense && block != kNoBlock) {
    take_block(layer, pool, state, request.size_class, block);
    layer.rank[state] = -1;
    layer.folds[state] = 0;
    add_shared(tables.counters + kWentDense, 1);
  }
  if (request.purpose == kGoBack && block != kNoBlock)
    settle_back(tables, pool, request, block);
  request.purpose = kSettled;
}

/// Forgets a request whose lists nobody will launch over: blocks that are not
/// that of the state go back. `again`: a fold that was counted when it was
/// planned, and waited for the answer, is planned anew.
SS_BOTH_SIDES void cancel_request(const RowTables &tables, RowRequest &request, bool again) {
  const RowLayer &layer = tables.layers[request.layer];
  RowPool &pool = tables.pools[layer.pool];
  const int32_t state = request.state, block = granted_block(pool, request);
  const bool waits = request.purpose == kResize;
  if ((waits || request.purpose == kGoDense || request.purpose == kGoBack) && block != kNoBlock)
    free_block(pool, block_base(pool, block, request.size_class));
  if (waits && again && layer.rank[state] < 0)
    --layer.folds[state];
  if (request.purpose == kDenied)
    layer.status[state] |= request.before;
  request.purpose = kSettled;
}

/// A fold that was planned is planned anew: it counts once.
SS_BOTH_SIDES void uncount_fold(const RowTables &tables, const RowLayer &layer, int32_t place) {
  const int32_t state = layer.dense_work[place];
  if (layer.rank[state] >= 0)
    return;
  --layer.folds[state];
  add_shared(tables.counters + kFolds, -1);
}

/// A state of a fresh slot, or of one without an owner, has no rows.
SS_BOTH_SIDES void release_state(const RowTables &tables, const RowLayer &layer, int32_t state,
                                 bool owned) {
  if (layer.row_base[state] >= kScrapRows)
    free_block(tables.pools[layer.pool], layer.row_base[state]);
  layer.row_capacity[state] = 0;
  layer.row_base[state] = 0;
  layer.folds[state] = owned;
  add_shared(&tables.pools[layer.pool].live, note_live(layer, state, 0));
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// Makes the lists of a layer from what is due: a block per layer.
extern "C" __global__ void __launch_bounds__(512, 1)
    ss_plan_rows(ss::RowTables tables, int32_t first, int32_t ahead) {
  const int32_t index = first + blockIdx.x;
  const ss::RowLayer &layer = tables.layers[index];
  const int32_t due = *layer.due_count, last = *layer.last_count;
  if (threadIdx.x == 0)
    *layer.work_count = *layer.dense_count = *layer.back_count = *layer.asked_count = 0;
  __syncthreads();
  if (tables.pools[layer.pool].squeezed)
    for (int32_t i = threadIdx.x; i < last; i += blockDim.x)
      ss::squeeze_state(tables, index, layer.last[i]);
  __syncthreads();
  int64_t grown = 0;
  for (int32_t i = threadIdx.x; i < due; i += blockDim.x) {
    layer.last[i] = layer.due[i];
    grown += ss::plan_state(tables, index, layer.due[i], ahead);
  }
  // One addition a warp: all layers of a pool meet at this word.
  for (int32_t distance = 16; distance > 0; distance /= 2)
    grown += __shfl_down_sync(0xffffffffu, grown, distance);
  if (threadIdx.x % 32 == 0 && grown != 0)
    ss::add_shared(&tables.pools[layer.pool].live, grown);
  if (threadIdx.x == 0)
    *layer.last_count = due;
}

/// A warp per slot, before the provision that reports it: grid (any, layers).
extern "C" __global__ void ss_foresee_rows(ss::RowTables tables) {
  const ss::RowLayer &layer = tables.layers[blockIdx.y];
  const int32_t warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    tables.pools[layer.pool].foreseen = 1;
  for (int32_t slot = blockIdx.x * warps + threadIdx.x / 32; slot < tables.slots;
       slot += gridDim.x * warps)
    ss::foresee_slot(tables, layer, slot, lane, 32);
}

/// Between steps: rows[i] rows for states[i].
extern "C" __global__ void ss_place_rows(ss::RowTables tables, int32_t index,
                                         const int32_t *states, const int32_t *rows,
                                         int32_t count) {
  for (int32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    ss::place_state(tables, index, states[i], rows[i]);
}

/// A block of threads moves what a request is for.
__device__ __forceinline__ void move_request(const ss::RowTables &tables, ss::RowPool &pool,
                                             ss::RowRequest &request) {
  const ss::RowLayer &layer = tables.layers[request.layer];
  const int32_t block = ss::granted_block(pool, request);
  if (request.purpose == ss::kResize && block != ss::kNoBlock)
    ss::copy_state(layer, pool, layer.rank[request.state], layer.row_base[request.state],
                   ss::block_base(pool, block, request.size_class), threadIdx.x, blockDim.x);
  // Whoever sees the new place finds the rows there.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    ss::finish_request(tables, request, block);
}

/// The requests of a layer.
extern "C" __global__ void ss_move_rows(ss::RowTables tables, int32_t index) {
  const ss::RowLayer &layer = tables.layers[index];
  ss::RowPool &pool = tables.pools[layer.pool];
  const int32_t count = ss::requests_of(layer);
  for (int32_t i = blockIdx.x; i < count; i += gridDim.x)
    if (ss::RowRequest *request = ss::request_at(layer, pool, i))
      move_request(tables, pool, *request);
}

/// Those of all layers but one (-1: of all). Grid (any, pools).
extern "C" __global__ void ss_move_all(ss::RowTables tables, int32_t except) {
  ss::RowPool &pool = tables.pools[blockIdx.y];
  for (int32_t i = blockIdx.x; i < pool.grant_count; i += gridDim.x)
    if (pool.requests[i].layer != except)
      move_request(tables, pool, pool.requests[i]);
}

/// The largest element of the matrix at a row: a block of threads.
__device__ __forceinline__ int32_t largest_of_block(const ss::RowLayer &layer,
                                                    const ss::RowPool &pool, int64_t row) {
  __shared__ int32_t largest;
  __syncthreads(); // the last one has been read
  if (threadIdx.x == 0)
    largest = 0;
  __syncthreads();
  ss::max_shared(&largest, ss::largest_element(layer, pool, row, threadIdx.x, blockDim.x));
  __syncthreads();
  return largest;
}

/// A block of threads per request, and per state that was folded in place, in layers
/// that check the range.
extern "C" __global__ void ss_check_range(ss::RowTables tables, int32_t index) {
  const ss::RowLayer &layer = tables.layers[index];
  ss::RowPool &pool = tables.pools[layer.pool];
  for (int32_t i = blockIdx.x; i < *layer.dense_count; i += gridDim.x) {
    const int32_t state = layer.dense_work[i];
    if (layer.rank[state] >= 0) // becomes dense: a request
      continue;
    const int32_t largest = largest_of_block(layer, pool, layer.row_base[state]);
    if (threadIdx.x == 0)
      ss::note_range(tables, layer, state, largest);
  }
  const int32_t count = ss::requests_of(layer);
  for (int32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const ss::RowRequest *request = ss::request_at(layer, pool, i);
    if (!ss::has_matrix(pool, request))
      continue;
    const int64_t row =
        ss::block_base(pool, ss::granted_block(pool, *request), request->size_class);
    const int32_t largest = largest_of_block(layer, pool, row);
    if (threadIdx.x == 0 && !ss::is_in_range(largest))
      ss::reject_matrix(tables, pool, *request);
    __syncthreads();
  }
}

/// Grid (any, pools). Requests of one layer, or with -1 of all.
extern "C" __global__ void ss_settle_rows(ss::RowTables tables, int32_t layer) {
  ss::RowPool &pool = tables.pools[blockIdx.y];
  for (int32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pool.grant_count;
       i += gridDim.x * blockDim.x)
    if (layer < 0 || pool.requests[i].layer == layer)
      ss::settle_request(tables, pool.requests[i]);
}

/// Grid (any, pools). Of one layer, or with -1 of all. `again`: all is planned anew.
extern "C" __global__ void ss_cancel_rows(ss::RowTables tables, int32_t layer, int32_t again) {
  for (int32_t l = blockIdx.x; again && blockIdx.y == 0 && l < tables.layer_count; l += gridDim.x)
    if (layer < 0 || l == layer)
      for (int32_t i = threadIdx.x; i < *tables.layers[l].dense_count; i += blockDim.x)
        ss::uncount_fold(tables, tables.layers[l], i);
  ss::RowPool &pool = tables.pools[blockIdx.y];
  for (int32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pool.grant_count;
       i += gridDim.x * blockDim.x)
    if (layer < 0 || pool.requests[i].layer == layer)
      ss::cancel_request(tables, pool.requests[i], again);
}

/// A block per layer.
extern "C" __global__ void ss_release_rows(ss::RowTables tables, int32_t slot, int32_t owned) {
  const ss::RowLayer &layer = tables.layers[blockIdx.x];
  for (int32_t head = threadIdx.x; head < layer.heads; head += blockDim.x)
    ss::release_state(tables, layer, slot * layer.heads + head, owned);
}

#endif
