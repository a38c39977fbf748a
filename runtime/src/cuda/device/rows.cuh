// Where the rows of states lie, and in which form: what happens to the blocks
// of pool.cuh around the compactions of a step. Before a layer's compactions, and
// not beside its decode, the states that are due get room for all that a
// compaction may leave, or give back what is too much, and those that are smaller
// as a matrix get a block for it; after the compactions the matrices take the
// factors' place.
#pragma once

#include "foresee.cuh"
#include "row_tables.cuh"
#include "staging.cuh"

namespace ss {

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
  layer.back_rank[state] = -1; // until the kernel has said how many
  if (layer.most_staged == 0) {
    layer.back_work[place] = state;
    layer.back_matrix[place] = layer.row_base[state] * layer.row_elements;
    layer.back_base[state] = base;
    return;
  }
  if (place >= layer.most_staged) { // the next fold tries again
    --layer.folds[state];
    return;
  }
  layer.back_work[place] = state;
  layer.back_matrix[place] = int64_t(place) * layer.matrix_elements;
  layer.back_base[state] = int64_t(place) * staged_rows(layer);
  layer.back_rows[state] = base;
}

SS_BOTH_SIDES void list_compact(const RowLayer &layer, int32_t state) {
  layer.work[add_shared(layer.work_count, 1)] = state;
}

/// Notes the bytes of a state; returns what RowPool::live changes by.
SS_BOTH_SIDES int64_t note_live(const RowLayer &layer, int32_t state, int32_t bytes) {
  const int32_t before = layer.noted[state];
  layer.noted[state] = bytes;
  return int64_t(bytes) - before;
}

SS_BOTH_SIDES int32_t live_bytes(const RowLayer &layer, int32_t state, int32_t rank) {
  int64_t factors = int64_t(rank) * layer.live_row + layer.live_buffer;
  if (layer.shared_bytes && rank > 0)
    factors -= layer.shared_bytes[state % layer.heads];
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
  if (layer.most_back > 0 && tries_factors(folds)) {
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
  const int64_t grown = note_live(layer, state, live_bytes(layer, state, rank));
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

/// A fold of a step that does not end is none of those that are counted. `again`: nor
/// was it done, and is planned anew.
SS_BOTH_SIDES void uncount_fold(const RowTables &tables, const RowLayer &layer, int32_t place,
                                bool again) {
  const int32_t state = layer.dense_work[place];
  if (layer.rank[state] >= 0)
    return;
  if (again)
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
  for (int32_t l = blockIdx.x; blockIdx.y == 0 && l < tables.layer_count; l += gridDim.x)
    if (layer < 0 || l == layer)
      for (int32_t i = threadIdx.x; i < *tables.layers[l].dense_count; i += blockDim.x)
        ss::uncount_fold(tables, tables.layers[l], i, again);
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
