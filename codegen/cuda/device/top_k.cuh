// The indices of the largest elements of a vector in shared memory, by one warp.
#pragma once
#include "ss/base.cuh"

namespace ss {

/// Whether element i comes before element j: NaN first, then larger first, ties by lower index.
template <typename T> __device__ __forceinline__ bool ranks_before(T x, int i, T y, int j) {
  const bool x_nan = x != x;
  const bool y_nan = y != y;
  if (x_nan != y_nan)
    return x_nan;
  if (x_nan || x == y)
    return i < j;
  return x > y;
}

/// index[0..A): the places of the A largest of the first n elements of w, descending; -1 from n on.
/// The place of an element is the number of elements before it: no dependence between lanes.
template <int A, int N, typename T>
__device__ __forceinline__ void top_k(int32_t (&index)[A], const T (&w)[N], int64_t n) {
  constexpr int together = 4; // elements that are read at once
  const int count = int(n);
  for (int i = lane_id(); i < A; i += kWarpSize)
    if (i >= count)
      index[i] = -1;
  for (int i = lane_id(); i < count; i += kWarpSize) {
    const T x = w[i];
    int place = 0;
#pragma unroll 1
    for (int first = 0; first < count; first += together) {
#pragma unroll
      for (int k = 0; k < together; ++k) {
        const int j = first + k;
        const T y = w[j < count ? j : i];
        place += j < count && ranks_before(y, j, x, i) ? 1 : 0;
      }
    }
    if (place < A)
      index[place] = i;
  }
}

} // namespace ss
