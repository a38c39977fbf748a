// What the warps of one program have in common: a meeting, and numbers that all of them know.
#pragma once
#include "ss/small_matrix.cuh"

namespace ss {

/// This thread and this warp among the W warps of the program, which are a block (one: a warp).
template <int W> __device__ __forceinline__ int thread_of() {
  return W == 1 ? int(threadIdx.x & 31) : int(threadIdx.x);
}
template <int W> __device__ __forceinline__ int warp_of() {
  return W == 1 ? 0 : int(threadIdx.x >> 5);
}

/// The place of this warp among those that share out work which may not be enough for all. Another
/// one is first in every other block: the same warp of all blocks has the same scheduler.
template <int W> __device__ __forceinline__ int turn_of() {
#ifdef __CUDA_ARCH__
  return W == 1 ? 0 : int((threadIdx.x / 32 + blockIdx.x) % W);
#else
  return warp_of<W>();
#endif
}

/// Memory that a warp of the program wrote before is seen by all of them behind.
template <int W> __device__ __forceinline__ void sync_warps() {
  if constexpr (W == 1)
    __syncwarp();
  else
    __syncthreads();
}

/// Memory through which the warps tell each other a number. Whoever uses one of the two turns
/// after the other needs no meeting in between.
template <int W> struct Exchange {
  double value[2][W], other[2][W];
  double third[W]; ///< between two turns
  float four[W][4];
  unsigned key[2][W];
};

/// The sum of what the warps have, in their order; x: the same in all lanes of a warp.
template <int W> __device__ __forceinline__ double sum_of_warps(double x, double (&through)[W]) {
  if constexpr (W == 1)
    return x;
  if (thread_of<W>() % 32 == 0)
    through[warp_of<W>()] = x;
  sync_warps<W>();
  double sum = through[0];
#pragma unroll
  for (int w = 1; w < W; ++w)
    sum += through[w];
  return sum;
}

/// The largest of what the warps have; none may be NaN.
template <int W>
__device__ __forceinline__ double max_of_warps(double x, double (&through)[W]) {
  if constexpr (W == 1)
    return x;
  if (thread_of<W>() % 32 == 0)
    through[warp_of<W>()] = x;
  sync_warps<W>();
  double most = through[0];
#pragma unroll
  for (int w = 1; w < W; ++w)
    most = through[w] > most ? through[w] : most;
  return most;
}

/// The largest of what the threads have, for each of four numbers; none may be NaN.
template <int W>
__device__ __forceinline__ void max_of_threads(float (&x)[4], Exchange<W> &exchange) {
#pragma unroll
  for (int e = 0; e < 4; ++e)
    x[e] = small_matrix::max_lanes(x[e]);
  if constexpr (W > 1) {
    if (thread_of<W>() % 32 == 0)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        exchange.four[warp_of<W>()][e] = x[e];
    sync_warps<W>();
#pragma unroll
    for (int w = 0; w < W; ++w)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[e] = exchange.four[w][e] > x[e] ? exchange.four[w][e] : x[e];
  }
}

/// The largest key of all threads (no two have the same one, unless it is 0), and two numbers of the
/// thread that has it.
template <int W>
__device__ __forceinline__ unsigned best_of_warps(unsigned key, double &value, double &other,
                                                  Exchange<W> &exchange, int turn) {
  const unsigned best = small_matrix::max_of_lanes(key);
  if constexpr (W == 1) {
    const unsigned who = __ballot_sync(small_matrix::kWholeWarp, key == best);
    const int lane = __ffs(int(who)) - 1;
    value = __shfl_sync(small_matrix::kWholeWarp, value, lane);
    other = __shfl_sync(small_matrix::kWholeWarp, other, lane);
    __syncwarp();
    return best;
  }
  if (key == best) {
    exchange.key[turn][warp_of<W>()] = best;
    exchange.value[turn][warp_of<W>()] = value;
    exchange.other[turn][warp_of<W>()] = other;
  }
  sync_warps<W>();
  unsigned most = exchange.key[turn][0];
  int from = 0;
#pragma unroll
  for (int w = 1; w < W; ++w) {
    const unsigned next = exchange.key[turn][w];
    from = next > most ? w : from;
    most = next > most ? next : most;
  }
  value = exchange.value[turn][from];
  other = exchange.other[turn][from];
  return most;
}

} // namespace ss
