// What the next steps will ask of a pool: so much memory is mapped before they come.
// Nothing is kept from one step to the next, so that nothing can be stale.
#pragma once

#include "row_tables.cuh"

namespace ss {

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

/// Counts in `coming`, by classes of its pool, what plan_state() will ask for a state,
/// if nothing moves it before. `pairs`: that it will have; `due`: after it has been
/// compacted in this step.
SS_BOTH_SIDES void foresee_state(const RowTables &tables, const RowLayer &layer, int32_t state,
                                 int32_t pairs, bool due, int32_t *coming) {
  const RowPool &pool = tables.pools[layer.pool];
  const int32_t rank = layer.rank[state], capacity = layer.row_capacity[state];
  const int32_t folds = layer.folds[state];
  const int64_t base = layer.row_base[state];
  auto expect = [&](int32_t rows) { add_shared(&coming[pool.class_of[rows]], 1); };
  if (rank < 0) {
    if (layer.most_back > 0 && tries_factors(folds + 1))
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
                                int32_t lane, int32_t lanes, int32_t *coming) {
  const int64_t position = tables.position[slot];
  const int32_t count = layer.count[slot];
  const bool due = compacts_at(layer, position, count) &&
                   is_due(layer, slot, lane, lanes);
  const int32_t pairs = pairs_to_come(layer, position, count, due);
  if (pairs == 0)
    return;
  for (int32_t head = lane; head < layer.heads; head += lanes)
    foresee_state(tables, layer, slot * layer.heads + head, pairs, due, coming);
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// A warp per slot, before the provision that reports it: grid (any, layers).
extern "C" __global__ void ss_foresee_rows(ss::RowTables tables) {
  // Of a block first: all states ask for few classes, and the pool's own counters are
  // one place for the whole GPU.
  __shared__ int32_t coming[ss::kMostClasses];
  const ss::RowLayer &layer = tables.layers[blockIdx.y];
  ss::RowPool &pool = tables.pools[layer.pool];
  const int32_t warps = blockDim.x / 32, lane = threadIdx.x % 32;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    pool.foreseen = 1;
  for (int32_t c = threadIdx.x; c < ss::kMostClasses; c += blockDim.x)
    coming[c] = 0;
  __syncthreads();
  for (int32_t slot = blockIdx.x * warps + threadIdx.x / 32; slot < tables.slots;
       slot += gridDim.x * warps)
    ss::foresee_slot(tables, layer, slot, lane, 32, coming);
  __syncthreads();
  for (int32_t c = threadIdx.x; c < ss::kMostClasses; c += blockDim.x)
    if (coming[c] > 0)
      ss::add_shared(&pool.coming[c], coming[c]);
}

#endif
