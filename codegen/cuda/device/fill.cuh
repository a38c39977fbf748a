// Setting scratch in shared memory, by one warp.
#pragma once
#include "ss/base.cuh"

namespace ss {

template <int N, typename T> __device__ __forceinline__ void fill(T (&to)[N], T x) {
  for (int i = lane_id(); i < N; i += kWarpSize)
    to[i] = x;
}

template <int M, int N, typename T> __device__ __forceinline__ void fill(T (&to)[M][N], T x) {
  for (int i = lane_id(); i < M * N; i += kWarpSize)
    to[i / N][i % N] = x;
}

} // namespace ss
