// The tables of the layers whose rows are in pools, and the rows that a state needs:
// what rows.cuh and foresee.cuh share.
#pragma once

#include "pool.cuh"

namespace ss {

/// Bits of a state's status that moving rows touches, as in routines.h.
constexpr int32_t kNotFinite = 1, kNotConverged = 4, kTightened = 8, kOutOfRange = 16;

/// Whether a dense state's fold of this number, from 1, tries to store it in factors
/// again: the 16th, the 32nd, and so on, twice as many each time, then every 1024th, as
/// on a CPU (triesFactors in engine/ReturnAttempts.h).
SS_BOTH_SIDES bool tries_factors(int32_t folds) {
  constexpr int32_t kFirst = 16, kMostBetween = 1024;
  return folds >= kFirst && ((folds & (folds - 1)) == 0 || folds % kMostBetween == 0);
}

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
  // In 16 bits (staging.cuh): the matrices and the factors, in f32, of those that are
  // decomposed at a time, and the rows of the pool that the factors are for.
  float *staged_matrix;       // [most_staged, matrix_elements]
  float *staged_factors;      // [most_staged, most_back + 1, row_elements]
  float *staged_weights;      // [most_staged, most_back + 1]
  int64_t *back_rows;         // [states]
  int32_t *asked;             // [most_asked], its requests in this step; kNoRequest: void
  int32_t *asked_count;       // [1], and those that found no room
  int32_t *last;              // [states], what was due in the last step
  int32_t *last_count;        // [1]
  int32_t *noted;             // [states], bytes that RowPool::live has of it
  const int32_t *shared_bytes; // [heads], of a state that has rows; null: none
  int32_t heads, pool;
  int32_t most_asked;         // two for each state
  int32_t pairs;              // of a full buffer, drafts included
  int32_t before;             // 1: it is compacted before its tokens, none is ahead
  int32_t buffer, phase;      // as of its schedule
  int32_t bound;              // most rows of a state in factors
  int32_t break_even;         // rank from which a state goes dense
  int32_t most_back;          // rank up to which it comes back; 0: it does not
  int32_t most_staged;        // 0: the decomposition works in the pool itself
  int32_t storage;            // an ss_element_type
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

} // namespace ss
