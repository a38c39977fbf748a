// Reductions over the 32 lanes of a warp. An xor butterfly from 16 down to 1: the
// order is fixed and every lane ends with the same bits.
#pragma once
#include "ss/base.cuh"

namespace ss {

struct Add {
  static __device__ __forceinline__ float apply(float a, float b) { return a + b; }
  static __device__ __forceinline__ double apply(double a, double b) { return a + b; }
  static __device__ __forceinline__ int32_t apply(int32_t a, int32_t b) { return a + b; }
  static __device__ __forceinline__ int64_t apply(int64_t a, int64_t b) { return a + b; }
  template <typename T> static __device__ __forceinline__ T identity() { return T(0); }
};

/// NaN is ignored, as by fmax.
struct Max {
  static __device__ __forceinline__ float apply(float a, float b) { return fmaxf(a, b); }
  static __device__ __forceinline__ double apply(double a, double b) { return fmax(a, b); }
  static __device__ __forceinline__ int32_t apply(int32_t a, int32_t b) { return a > b ? a : b; }
  static __device__ __forceinline__ int64_t apply(int64_t a, int64_t b) { return a > b ? a : b; }
  template <typename T> static __device__ __forceinline__ T identity() { return Limits<T>::lowest(); }
};

/// NaN is ignored, as by fmin.
struct Min {
  static __device__ __forceinline__ float apply(float a, float b) { return fminf(a, b); }
  static __device__ __forceinline__ double apply(double a, double b) { return fmin(a, b); }
  static __device__ __forceinline__ int32_t apply(int32_t a, int32_t b) { return a < b ? a : b; }
  static __device__ __forceinline__ int64_t apply(int64_t a, int64_t b) { return a < b ? a : b; }
  template <typename T> static __device__ __forceinline__ T identity() { return Limits<T>::highest(); }
};

template <typename Op, typename T> __device__ __forceinline__ T warp_reduce(T x) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
    x = Op::apply(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

template <typename T> __device__ __forceinline__ T warp_sum(T x) { return warp_reduce<Add>(x); }

/// R sums at once. The steps are interleaved, so that their latencies overlap.
template <typename Op, int R, typename T> __device__ __forceinline__ void warp_reduce(T (&x)[R]) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
#pragma unroll
    for (int r = 0; r < R; ++r)
      x[r] = Op::apply(x[r], __shfl_xor_sync(kAllLanes, x[r], offset));
}

} // namespace ss
