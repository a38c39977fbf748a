// Register tiles: how they lie over the lanes of a warp, how they are loaded and stored,
// and the contractions over them. All 32 lanes call every function together.
#pragma once
#include "ss/warp.cuh"

namespace ss {

/// Elements of one access of a lane: the smallest of 1, 2, 4 that divides n and needs the
/// fewest accesses.
__device__ constexpr int lane_width(int n) {
  int best = 1;
  for (int width = 2; width <= 4; width *= 2)
    if (n % width == 0 && (n - 1) / (32 * width) < (n - 1) / (32 * best))
      best = width;
  return best;
}

/// N elements over 32 lanes: element e is component e % width of chunk e / (32 * width) in
/// lane (e / width) % 32, so that a chunk is one coalesced access. With N = 80, 20 lanes hold
/// one float4 each. What lies beyond N is zero after a load and means nothing later.
template <int N> struct Lanes {
  static constexpr int width = lane_width(N);
  static constexpr int chunks = (N + kWarpSize * width - 1) / (kWarpSize * width);
  static constexpr int size = chunks * width; // registers of one lane
  static constexpr bool full = size * kWarpSize == N;

  /// The first element of a chunk in this lane.
  static __device__ __forceinline__ int first(int chunk) {
    return (chunk * kWarpSize + lane_id()) * width;
  }
  /// Whether a chunk of this lane holds elements of the tile.
  static __device__ __forceinline__ bool holds(int chunk) { return full || first(chunk) < N; }
};

/// Count elements from memory to registers, by accesses of type V (float4, float2, float, ...).
/// What is narrower than a register stays in whole ones: taken apart element by element, each
/// would need an instruction more to come out.
template <typename V, int Count, typename T>
__device__ __forceinline__ void read(T *registers, const T *memory) {
  constexpr int parts = sizeof(V) / sizeof(T);
  static_assert(Count % parts == 0, "the access is wider than what is read");
#pragma unroll
  for (int i = 0; i < Count; i += parts) {
    const V vector = *reinterpret_cast<const V *>(memory + i);
    if constexpr (sizeof(T) < 4 && sizeof(V) >= 4) {
      memcpy(registers + i, &vector, sizeof(V));
      continue;
    }
#pragma unroll
    for (int p = 0; p < parts; ++p)
      registers[i + p] = reinterpret_cast<const T *>(&vector)[p];
  }
}

/// Count elements from registers to memory.
template <typename V, int Count, typename T>
__device__ __forceinline__ void write(T *memory, const T *registers) {
  constexpr int parts = sizeof(V) / sizeof(T);
  static_assert(Count % parts == 0, "the access is wider than what is written");
#pragma unroll
  for (int i = 0; i < Count; i += parts) {
    V vector;
#pragma unroll
    for (int p = 0; p < parts; ++p)
      reinterpret_cast<T *>(&vector)[p] = registers[i + p];
    *reinterpret_cast<V *>(memory + i) = vector;
  }
}

template <int Count, typename T> __device__ __forceinline__ void zero(T *to) {
  if constexpr (sizeof(T) < 4) {
    memset(to, 0, Count * sizeof(T));
    return;
  }
#pragma unroll
  for (int i = 0; i < Count; ++i)
    to[i] = T(0);
}

// ------------------------------------------------------------------ loads and stores
// `limit`: elements (rows, for tiles of two dimensions) from there on are not touched and
// read as 0. For a vector with wide accesses it is a multiple of their elements.

/// A vector of N elements over the lanes.
template <typename V, int N, typename T>
__device__ __forceinline__ void load_lanes(T (&tile)[Lanes<N>::size], const T *from, int64_t limit = N) {
  using L = Lanes<N>;
  constexpr int parts = sizeof(V) / sizeof(T);
#pragma unroll
  for (int i = 0; i < L::size; i += parts) {
    const int e = L::first(i / L::width) + i % L::width;
    if (L::holds(i / L::width) && e < limit)
      read<V, parts>(tile + i, from + e);
    else
      zero<parts>(tile + i);
  }
}

template <typename V, int N, typename T>
__device__ __forceinline__ void store_lanes(T *to, const T (&tile)[Lanes<N>::size], int64_t limit = N) {
  using L = Lanes<N>;
  constexpr int parts = sizeof(V) / sizeof(T);
#pragma unroll
  for (int i = 0; i < L::size; i += parts) {
    const int e = L::first(i / L::width) + i % L::width;
    if (L::holds(i / L::width) && e < limit)
      write<V, parts>(to + e, tile + i);
  }
}

/// R rows of N elements over the lanes; row r starts at `from + r * stride`.
template <typename V, int N, int R, typename T>
__device__ __forceinline__ void load_rows(T (&tile)[R][Lanes<N>::size], const T *from, int64_t stride,
                                          int64_t limit = R) {
  const int rows = limit < R ? static_cast<int>(limit) : R;
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < rows)
      load_lanes<V, N>(tile[r], from + r * stride);
    else
      zero<Lanes<N>::size>(tile[r]);
}

/// The same, for memory that the kernel writes too. There the compiler does not read ahead of a
/// condition, and every load under one would wait for the load before it. So rows from `limit` on
/// are read as the last one before it, and dropped. It takes registers.
template <typename V, int N, int R, typename T>
__device__ __forceinline__ void load_rows_at_once(T (&tile)[R][Lanes<N>::size], const T *from,
                                                  int64_t stride, int64_t limit) {
  const int last = (limit < R ? static_cast<int>(limit) : R) - 1;
  if (limit > 0) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      load_lanes<V, N>(tile[r], from + (r < last ? r : last) * stride);
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r > last)
      zero<Lanes<N>::size>(tile[r]);
}

template <typename V, int N, int R, typename T>
__device__ __forceinline__ void store_rows(T *to, const T (&tile)[R][Lanes<N>::size], int64_t stride,
                                           int64_t limit = R) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < limit)
      store_lanes<V, N>(to + r * stride, tile[r]);
}

/// Rows over the lanes, the C elements of a row in one lane; row e starts at `from + e * stride`.
template <typename V, int N, int C, typename T>
__device__ __forceinline__ void load_columns(T (&tile)[Lanes<N>::size][C], const T *from, int64_t stride,
                                             int64_t limit = N) {
  using L = Lanes<N>;
#pragma unroll
  for (int i = 0; i < L::size; ++i) {
    const int e = L::first(i / L::width) + i % L::width;
    if (L::holds(i / L::width) && e < limit)
      read<V, C>(tile[i], from + e * stride);
    else
      zero<C>(tile[i]);
  }
}

template <typename V, int N, int C, typename T>
__device__ __forceinline__ void store_columns(T *to, const T (&tile)[Lanes<N>::size][C], int64_t stride,
                                              int64_t limit = N) {
  using L = Lanes<N>;
#pragma unroll
  for (int i = 0; i < L::size; ++i) {
    const int e = L::first(i / L::width) + i % L::width;
    if (L::holds(i / L::width) && e < limit)
      write<V, C>(to + e * stride, tile[i]);
  }
}

/// The same R elements in every lane.
template <typename V, int R, typename T>
__device__ __forceinline__ void load_all(T (&tile)[R], const T *from, int64_t limit = R) {
  constexpr int parts = sizeof(V) / sizeof(T);
#pragma unroll
  for (int r = 0; r < R; r += parts)
    if (r < limit)
      read<V, parts>(tile + r, from + r);
    else
      zero<parts>(tile + r);
}

template <typename V, int R, int C, typename T>
__device__ __forceinline__ void load_all_rows(T (&tile)[R][C], const T *from, int64_t stride, int64_t limit = R) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < limit)
      read<V, C>(tile[r], from + r * stride);
    else
      zero<C>(tile[r]);
}

/// Lane 0 stores what every lane holds.
template <typename V, int R, typename T>
__device__ __forceinline__ void store_all(T *to, const T (&tile)[R], int64_t limit = R) {
  constexpr int parts = sizeof(V) / sizeof(T);
#pragma unroll
  for (int r = 0; r < R; r += parts)
    if (lane_id() == 0 && r < limit)
      write<V, parts>(to + r, tile + r);
}

template <typename V, int R, int C, typename T>
__device__ __forceinline__ void store_all_rows(T *to, const T (&tile)[R][C], int64_t stride, int64_t limit = R) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (lane_id() == 0 && r < limit)
      write<V, C>(to + r * stride, tile[r]);
}

// ------------------------------------------------------------------ whole tiles

template <int R, typename T> __device__ __forceinline__ void splat(T (&tile)[R], T x) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    tile[r] = x;
}

template <int R, int C, typename T> __device__ __forceinline__ void splat(T (&tile)[R][C], T x) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    splat(tile[r], x);
}

/// The numbers of the elements of a vector of N over the lanes.
template <int N> __device__ __forceinline__ void iota_lanes(int32_t (&tile)[Lanes<N>::size]) {
  using L = Lanes<N>;
#pragma unroll
  for (int i = 0; i < L::size; ++i)
    tile[i] = L::first(i / L::width) + i % L::width;
}

/// The same where every lane has all of them.
template <int R> __device__ __forceinline__ void iota(int32_t (&tile)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    tile[r] = r;
}

template <int R, typename T> __device__ __forceinline__ void assign(T (&to)[R], const T (&from)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    to[r] = from[r];
}

template <int R, int C, typename T>
__device__ __forceinline__ void assign(T (&to)[R][C], const T (&from)[R][C]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    assign(to[r], from[r]);
}

// ------------------------------------------------------------------ reductions
// Over lanes: each lane in ascending order, then the butterfly. Over a register axis: ascending.

/// The reduction of this lane's own elements of a vector of N.
template <typename Op, int N, typename T> __device__ __forceinline__ T reduce_lane(const T (&tile)[Lanes<N>::size]) {
  using L = Lanes<N>;
  T sum = Op::template identity<T>();
#pragma unroll
  for (int i = 0; i < L::size; ++i)
    if (L::holds(i / L::width))
      sum = i == 0 ? tile[0] : Op::apply(sum, tile[i]);
  return sum;
}

/// A vector over the lanes -> a scalar.
template <typename Op, int N, typename T> __device__ __forceinline__ T reduce_lanes(const T (&tile)[Lanes<N>::size]) {
  return warp_reduce<Op>(reduce_lane<Op, N>(tile));
}

/// R rows over the lanes -> one scalar a row.
template <typename Op, int N, int R, typename T>
__device__ __forceinline__ void reduce_lanes(T (&result)[R], const T (&tile)[R][Lanes<N>::size]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    result[r] = reduce_lane<Op, N>(tile[r]);
  warp_reduce<Op>(result);
}

/// Rows over the lanes, C columns in registers -> one scalar a column.
template <typename Op, int N, int C, typename T>
__device__ __forceinline__ void reduce_lanes_of_columns(T (&result)[C], const T (&tile)[Lanes<N>::size][C]) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    T column[Lanes<N>::size];
#pragma unroll
    for (int i = 0; i < Lanes<N>::size; ++i)
      column[i] = tile[i][c];
    result[c] = reduce_lane<Op, N>(column);
  }
  warp_reduce<Op>(result);
}

/// All elements of a register vector -> a scalar.
template <typename Op, int R, typename T> __device__ __forceinline__ T reduce(const T (&tile)[R]) {
  T sum = tile[0];
#pragma unroll
  for (int r = 1; r < R; ++r)
    sum = Op::apply(sum, tile[r]);
  return sum;
}

/// The first axis (in registers) of a tile of two -> a vector along the second.
template <typename Op, int R, int C, typename T>
__device__ __forceinline__ void reduce_first(T (&result)[C], const T (&tile)[R][C]) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    result[c] = tile[0][c];
#pragma unroll
    for (int r = 1; r < R; ++r)
      result[c] = Op::apply(result[c], tile[r][c]);
  }
}

/// The second axis (in registers) of a tile of two -> a vector along the first.
template <typename Op, int R, int C, typename T>
__device__ __forceinline__ void reduce_second(T (&result)[R], const T (&tile)[R][C]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    result[r] = reduce<Op>(tile[r]);
}

// ------------------------------------------------------------------ contractions

/// This lane's part of a dot product of two vectors of N elements.
template <int N, typename T>
__device__ __forceinline__ T dot_lane(const T (&a)[Lanes<N>::size], const T (&b)[Lanes<N>::size]) {
  using L = Lanes<N>;
  T sum = T(0);
#pragma unroll
  for (int i = 0; i < L::size; ++i)
    if (L::holds(i / L::width))
      sum = fma(a[i], b[i], sum);
  return sum;
}

/// The dot product of two vectors over the lanes.
template <int N, typename T>
__device__ __forceinline__ T dot(const T (&a)[Lanes<N>::size], const T (&b)[Lanes<N>::size]) {
  return warp_sum(dot_lane<N>(a, b));
}

/// The dot product of each of R rows with one vector.
template <int N, int R, typename T>
__device__ __forceinline__ void dot(T (&result)[R], const T (&rows)[R][Lanes<N>::size],
                                    const T (&x)[Lanes<N>::size]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    result[r] = dot_lane<N>(rows[r], x);
  warp_reduce<Add>(result);
}

/// sum += coefficients[r] * rows[r], in ascending order of r.
template <int R, int S, typename T>
__device__ __forceinline__ void accumulate(T (&sum)[S], const T (&coefficients)[R], const T (&rows)[R][S]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int i = 0; i < S; ++i)
      sum[i] = fma(coefficients[r], rows[r][i], sum[i]);
}

/// sum += coefficient * row.
template <int S, typename T>
__device__ __forceinline__ void accumulate(T (&sum)[S], T coefficient, const T (&row)[S]) {
#pragma unroll
  for (int i = 0; i < S; ++i)
    sum[i] = fma(coefficient, row[i], sum[i]);
}

} // namespace ss
