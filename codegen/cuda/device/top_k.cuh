// The indices of the largest elements of a vector in shared memory, by one warp.
#pragma once
#include "ss/tile.cuh"

namespace ss {

/// Whether element i comes before element j: NaN first, then larger first, ties by lower index.
/// Without branches, as lanes would take different ones.
template <typename T> __device__ __forceinline__ bool ranks_before(T x, int i, T y, int j) {
  const bool x_nan = x != x;
  const bool y_nan = y != y;
  const bool ties = (x == y) | (x_nan & y_nan);
  return (x > y) | (x_nan & !y_nan) | (ties & (i < j));
}

/// index[0..A): the places of the A largest of the first n elements of w, descending; -1 from n on.
/// The place of an element is the number of elements before it: no dependence between lanes.
template <int A, int N, typename T>
__device__ __forceinline__ void top_k(int32_t (&index)[A], const T (&w)[N], int64_t n) {
  // Elements that are read at once: by single reads, as by branches, each would wait for the last.
  constexpr int together = N % 4 == 0 && sizeof(T) == 4 ? 4 : 1;
  const int count = int(n);
  for (int i = lane_id(); i < A; i += kWarpSize)
    if (i >= count)
      index[i] = -1;
  for (int i = lane_id(); i < count; i += kWarpSize) {
    const T x = w[i];
    int place = 0;
#pragma unroll 1
    for (int first = 0; first < count; first += together) {
      T y[together];
      if constexpr (together == 4)
        read<float4, together>(y, w + first);
      else
        y[0] = w[first];
#pragma unroll
      for (int k = 0; k < together; ++k)
        place += int((first + k < count) & ranks_before(y[k], first + k, x, i));
    }
    if (place < A)
      index[place] = i;
  }
}

} // namespace ss
