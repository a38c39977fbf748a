// What an engine does with states besides decoding, as far as it is moving and
// counting: several tokens in a step, rollback, pieces of memory, dense matrices
// in a caller's layout. Compiled by NVRTC for the GPU; the tests run the same
// functions on the host.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/schedule.cuh"

namespace ss {

/// Numbers of some rows of a batch, from the host: they travel as parameters of
/// a launch, so that no memory has to stay until it runs.
constexpr int32_t kRowsAtOnce = 448;
struct RowNumbers {
  int32_t first, rows;
  int32_t slot[kRowsAtOnce], tokens[kRowsAtOnce];
};

/// What happens to one slot in one layer between token - 1 and `token` of its
/// step: the former is counted, with the compaction that it made due. Returns
/// whether the states are compacted, after `token` or before it. In the latter
/// case, of a call's newest draft + 1 tokens only the first may compact: those
/// before it are what nobody can forget any more.
SS_BOTH_SIDES bool next_token(const Schedule &schedule, const ScheduleLayer &layer, int32_t slot,
                              int32_t token, int32_t &compacted) {
  const int32_t tokens = schedule.step_tokens[slot] - 1;
  const int64_t position = schedule.position[slot] + token;
  if (token > 0 && token <= tokens)
    compacted += advance_count(layer, position - 1, slot);
  if (token >= tokens)
    return false;
  if (layer.before && token > 0 && token >= tokens - layer.draft)
    return false;
  return is_listed(layer, position, layer.count[slot]);
}

/// Token `token` of a slot comes next: rounding goes by its position.
SS_BOTH_SIDES void begin_token(const Schedule &schedule, int32_t slot, int32_t token) {
  if (is_slot(schedule, slot))
    schedule.token_position[slot] = schedule.position[slot] + token;
}

/// Whether a slot of a row has a token of this number.
SS_BOTH_SIDES bool has_token(const Schedule &schedule, int32_t slot, int32_t token) {
  return is_slot(schedule, slot) && token < schedule.step_tokens[slot] - 1;
}

/// Whether every layer has these tokens of a slot in its buffer.
SS_BOTH_SIDES bool can_forget(const Schedule &schedule, int32_t slot, int32_t tokens) {
  if (!is_slot(schedule, slot) || tokens < 0 || tokens > schedule.position[slot])
    return false;
  for (int32_t layer = 0; layer < schedule.layer_count; ++layer)
    if (tokens > schedule.layers[layer].count[slot])
      return false;
  return true;
}

SS_BOTH_SIDES void forget(const Schedule &schedule, int32_t slot, int32_t tokens) {
  schedule.position[slot] -= tokens;
  for (int32_t layer = 0; layer < schedule.layer_count; ++layer)
    schedule.layers[layer].count[slot] -= tokens;
}

/// A piece of memory to be copied. `to_type`: 0 as it is,
/// 1 from f32 to f16, 2 from f32 to bf16; `bytes` are those that are written.
struct Piece {
  const void *from;
  void *to;
  int64_t bytes;
  int64_t to_type;
};

struct alignas(16) Quad {
  int32_t words[4];
};

template <typename T>
SS_BOTH_SIDES void copy_elements(const Piece &piece, int32_t thread, int32_t threads) {
  const T *from = static_cast<const T *>(piece.from);
  T *to = static_cast<T *>(piece.to);
  for (int64_t i = thread; i < piece.bytes / int64_t(sizeof(T)); i += threads)
    to[i] = from[i];
}

/// Thread `thread` of `threads` of one piece.
SS_BOTH_SIDES void copy_piece(const Piece &piece, int32_t thread, int32_t threads) {
  if (piece.to_type != 0) {
    const float *from = static_cast<const float *>(piece.from);
    uint16_t *to = static_cast<uint16_t *>(piece.to);
    for (int64_t i = thread; i < piece.bytes / 2; i += threads)
      to[i] = piece.to_type == 1 ? to_f16(from[i]) : to_bf16(from[i]);
    return;
  }
  const uint64_t all = uint64_t(piece.from) | uint64_t(piece.to) | uint64_t(piece.bytes);
  if (all % sizeof(Quad) == 0)
    copy_elements<Quad>(piece, thread, threads);
  else if (all % sizeof(int32_t) == 0)
    copy_elements<int32_t>(piece, thread, threads);
  else if (all % sizeof(uint16_t) == 0)
    copy_elements<uint16_t>(piece, thread, threads);
  else
    copy_elements<unsigned char>(piece, thread, threads);
}

/// Dense matrices in a caller's array: element (v, k) of matrix i lies
/// first[i] + v * dv_stride + k * dk_stride elements from the beginning.
struct DenseMatrices {
  void *elements;
  const int64_t *first; // [matrices]
  int64_t dv_stride, dk_stride;
  int32_t type; // an ss_element_type
  int32_t dv, dk, matrices;
};

SS_BOTH_SIDES float read_element(const DenseMatrices &dense, int64_t place) {
  if (dense.type == 0)
    return static_cast<const float *>(dense.elements)[place];
  const uint16_t bits = static_cast<const uint16_t *>(dense.elements)[place];
  return dense.type == 1 ? from_f16(bits) : from_bf16(bits);
}

SS_BOTH_SIDES void write_element(const DenseMatrices &dense, int64_t place, float value) {
  if (dense.type == 0)
    static_cast<float *>(dense.elements)[place] = value;
  else
    static_cast<uint16_t *>(dense.elements)[place] =
        dense.type == 1 ? to_f16(value) : to_bf16(value);
}

/// Of a square of a matrix that a block takes at a time; its sides are so many.
constexpr int32_t kSquare = 32;

SS_BOTH_SIDES int32_t squares(int32_t elements) { return (elements + kSquare - 1) / kSquare; }

/// Squares of all matrices.
SS_BOTH_SIDES int64_t square_count(const DenseMatrices &dense) {
  return int64_t(dense.matrices) * squares(dense.dv) * squares(dense.dk);
}

/// Where square `number` begins.
struct Square {
  int64_t matrix;
  int32_t v, k;
};
SS_BOTH_SIDES Square square_at(const DenseMatrices &dense, int64_t number) {
  const int32_t down = squares(dense.dv), across = squares(dense.dk);
  Square square;
  square.matrix = number / (down * across);
  const int32_t rest = int32_t(number - square.matrix * (down * across));
  square.v = rest % down * kSquare;
  square.k = rest / down * kSquare;
  return square;
}

/// The place of element (v, k) of a matrix in columns [dk, dv], and in the
/// caller's array.
SS_BOTH_SIDES int64_t in_columns(const DenseMatrices &dense, int64_t matrix, int32_t v, int32_t k) {
  return (matrix * dense.dk + k) * dense.dv + v;
}
SS_BOTH_SIDES int64_t in_caller(const DenseMatrices &dense, int64_t matrix, int32_t v, int32_t k) {
  return dense.first[matrix] + v * dense.dv_stride + k * dense.dk_stride;
}

} // namespace ss

#ifdef __CUDACC_RTC__

/// A block. Says how many tokens the slots of these rows take in this step.
extern "C" __global__ void ss_take_tokens(ss::Schedule schedule, const int32_t *slots,
                                          int32_t batch, ss::RowNumbers numbers) {
  for (int32_t i = threadIdx.x; i < numbers.rows && numbers.first + i < batch; i += blockDim.x)
    if (ss::is_slot(schedule, slots[numbers.first + i]))
      schedule.step_tokens[slots[numbers.first + i]] = numbers.tokens[i] + 1;
}

/// A block. `slots`: as ss_schedule gave them out, each once. Between the tokens of a
/// step in one layer (number among those
/// with buffers; -1: one without): notes where token `token` is, lists what is
/// compacted, and in `row_slots`, where that is not null, the slots of the rows that
/// have this token.
extern "C" __global__ void ss_next_token(ss::Schedule schedule, int32_t number,
                                         const int32_t *slots, int32_t batch, int32_t token,
                                         int32_t *row_slots) {
  __shared__ int32_t next, all_compacted;
  if (threadIdx.x == 0)
    next = all_compacted = 0;
  __syncthreads();
  int32_t compacted = 0;
  for (int32_t row = threadIdx.x; row < batch; row += blockDim.x) {
    const int32_t slot = slots[row];
    if (row_slots)
      row_slots[row] = ss::has_token(schedule, slot, token) ? slot : -1;
    ss::begin_token(schedule, slot, token);
    if (number < 0 || !ss::is_slot(schedule, slot))
      continue;
    const ss::ScheduleLayer &layer = schedule.layers[number];
    if (ss::next_token(schedule, layer, slot, token, compacted))
      ss::list_states(layer, slot, atomicAdd(&next, layer.heads));
  }
  if (compacted > 0)
    atomicAdd(&all_compacted, compacted);
  __syncthreads();
  if (threadIdx.x > 0 || number < 0)
    return;
  if (!schedule.layers[number].deferred)
    *schedule.layers[number].work_count = next;
  if (all_compacted > 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(schedule.compactions),
              (unsigned long long)(all_compacted));
}

/// A block. After a compaction that comes before its step's token: the buffers
/// of what is listed are empty.
extern "C" __global__ void ss_settle(ss::Schedule schedule, int32_t number) {
  const ss::ScheduleLayer layer = schedule.layers[number];
  const int32_t states = *layer.work_count;
  for (int32_t i = threadIdx.x; i < states; i += blockDim.x)
    layer.count[layer.work[i] / layer.heads] = 0;
  if (threadIdx.x == 0 && states > 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(schedule.compactions),
              (unsigned long long)(states));
}

/// A block. With `apply` 0: notes in `refused` whether one of the rows cannot
/// forget its tokens. With 1: forgets them, where none was refused.
extern "C" __global__ void ss_rollback(ss::Schedule schedule, ss::RowNumbers numbers, int32_t apply,
                                       int32_t *refused) {
  const bool none = *refused == 0;
  for (int32_t i = threadIdx.x; i < numbers.rows; i += blockDim.x) {
    if (numbers.slot[i] < 0)
      continue;
    if (apply == 0 && !ss::can_forget(schedule, numbers.slot[i], numbers.tokens[i]))
      atomicOr(refused, 1);
    else if (apply != 0 && none)
      ss::forget(schedule, numbers.slot[i], numbers.tokens[i]);
  }
}

/// A block per piece.
extern "C" __global__ void ss_copy_pieces(const ss::Piece *pieces) {
  ss::copy_piece(pieces[blockIdx.x], int32_t(threadIdx.x), int32_t(blockDim.x));
}

/// A block per square: the caller's matrices as columns [matrices, dk, dv]. Both
/// sides of a transposition are read and written row by row.
extern "C" __global__ void ss_read_dense(ss::DenseMatrices dense, float *columns) {
  __shared__ float tile[ss::kSquare][ss::kSquare + 1];
  const ss::Square square = ss::square_at(dense, blockIdx.x);
  const int32_t lane = threadIdx.x % ss::kSquare, first = threadIdx.x / ss::kSquare;
  const int32_t step = blockDim.x / ss::kSquare;
  const bool k_fast = dense.dk_stride < dense.dv_stride;
  for (int32_t i = first; i < ss::kSquare; i += step) {
    const int32_t v = k_fast ? i : lane, k = k_fast ? lane : i;
    if (square.v + v < dense.dv && square.k + k < dense.dk)
      tile[k][v] = ss::read_element(
          dense, ss::in_caller(dense, square.matrix, square.v + v, square.k + k));
  }
  __syncthreads();
  for (int32_t k = first; k < ss::kSquare; k += step)
    if (square.v + lane < dense.dv && square.k + k < dense.dk)
      columns[ss::in_columns(dense, square.matrix, square.v + lane, square.k + k)] = tile[k][lane];
}

/// The way back.
extern "C" __global__ void ss_write_dense(ss::DenseMatrices dense, const float *columns) {
  __shared__ float tile[ss::kSquare][ss::kSquare + 1];
  const ss::Square square = ss::square_at(dense, blockIdx.x);
  const int32_t lane = threadIdx.x % ss::kSquare, first = threadIdx.x / ss::kSquare;
  const int32_t step = blockDim.x / ss::kSquare;
  const bool k_fast = dense.dk_stride < dense.dv_stride;
  for (int32_t k = first; k < ss::kSquare; k += step)
    if (square.v + lane < dense.dv && square.k + k < dense.dk)
      tile[k][lane] = columns[ss::in_columns(dense, square.matrix, square.v + lane, square.k + k)];
  __syncthreads();
  for (int32_t i = first; i < ss::kSquare; i += step) {
    const int32_t v = k_fast ? i : lane, k = k_fast ? lane : i;
    if (square.v + v < dense.dv && square.k + k < dense.dk)
      ss::write_element(dense, ss::in_caller(dense, square.matrix, square.v + v, square.k + k),
                        tile[k][v]);
  }
}

#endif
