// Matrices of 16 bits on their way back to factors: an init kernel reads and writes
// f32, so that some of them at a time are widened beside the pool, and what it finds
// is rounded into their blocks, to the nearest as an initialisation's is.
#pragma once

#include "elements.cuh"
#include "row_tables.cuh"

namespace ss {

/// Matrices that are listed and have a place beside the pool.
SS_BOTH_SIDES int32_t staged_count(const RowLayer &layer) {
  return *layer.back_count < layer.most_staged ? *layer.back_count : layer.most_staged;
}

/// Rows that each of them has room for.
SS_BOTH_SIDES int32_t staged_rows(const RowLayer &layer) { return layer.most_back + 1; }

SS_BOTH_SIDES float widened(const RowLayer &layer, uint16_t bits) {
  return layer.storage == 1 ? from_f16(bits) : from_bf16(bits);
}

SS_BOTH_SIDES uint16_t rounded(const RowLayer &layer, float value) {
  return layer.storage == 1 ? to_f16(value) : to_bf16(value);
}

/// Thread `thread` of `threads` of one listed matrix.
SS_BOTH_SIDES void widen_matrix(const RowLayer &layer, const RowPool &pool, int32_t place,
                                int32_t thread, int32_t threads) {
  const int64_t row = layer.row_base[layer.back_work[place]];
  auto *from = reinterpret_cast<const uint16_t *>(pool.rows + row * pool.row_bytes);
  float *to = layer.staged_matrix + layer.back_matrix[place];
  for (int32_t i = thread; i < layer.matrix_elements; i += threads)
    to[i] = widened(layer, from[i]);
}

/// The factors of one listed matrix, where they are few enough to be taken.
SS_BOTH_SIDES void round_factors(const RowLayer &layer, const RowPool &pool, int32_t place,
                                 int32_t thread, int32_t threads) {
  const int32_t state = layer.back_work[place], rank = layer.back_rank[state];
  if (rank < 0 || rank > layer.most_back)
    return;
  const int64_t first = layer.back_base[state], row = layer.back_rows[state];
  const float *from = layer.staged_factors + first * layer.row_elements;
  auto *to = reinterpret_cast<uint16_t *>(pool.rows + row * pool.row_bytes);
  for (int32_t i = thread; i < rank * layer.row_elements; i += threads)
    to[i] = rounded(layer, from[i]);
  for (int32_t i = thread; i < rank; i += threads)
    pool.weights[row + i] = layer.staged_weights[first + i];
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// A block of threads per listed matrix, before the init kernel, which does as many as
/// have a place.
extern "C" __global__ void ss_widen_back(ss::RowTables tables, int32_t index) {
  const ss::RowLayer &layer = tables.layers[index];
  const ss::RowPool &pool = tables.pools[layer.pool];
  const int32_t count = ss::staged_count(layer);
  for (int32_t i = blockIdx.x; i < count; i += gridDim.x)
    ss::widen_matrix(layer, pool, i, threadIdx.x, blockDim.x);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *layer.back_count = count;
}

/// The same behind it.
extern "C" __global__ void ss_round_back(ss::RowTables tables, int32_t index) {
  const ss::RowLayer &layer = tables.layers[index];
  const ss::RowPool &pool = tables.pools[layer.pool];
  const int32_t count = ss::staged_count(layer);
  for (int32_t i = blockIdx.x; i < count; i += gridDim.x)
    ss::round_factors(layer, pool, i, threadIdx.x, blockDim.x);
}

#endif
