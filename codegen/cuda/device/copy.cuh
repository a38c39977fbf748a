// Copies from global to shared memory that run beside the program.
#pragma once
#include "ss/base.cuh"

namespace ss {

/// One access of type V; `whole`: or zeros.
template <typename V, typename T>
__device__ __forceinline__ void copy_one(T *to, const T *from, bool whole) {
#if defined(__CUDA_ARCH__)
  const unsigned address = unsigned(__cvta_generic_to_shared(to));
  constexpr int bytes = sizeof(V);
  const int count = whole ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(count)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(from),
                 "r"(count), "n"(bytes)
                 : "memory");
#else
  *reinterpret_cast<V *>(to) = whole ? *reinterpret_cast<const V *>(from) : V();
#endif
}

/// Starts to copy N elements; those from limit on are not read and become 0. Called by all lanes.
///   ss::copy_row<float4, 128>(&scratch.rows[i][0], &rows[at]);
template <typename V, int N, typename T>
__device__ __forceinline__ void copy_row(T *to, const T *from, int64_t limit = N) {
  constexpr int parts = sizeof(V) / sizeof(T);
#pragma unroll
  for (int first = 0; first < N; first += kWarpSize * parts) {
    const int e = first + lane_id() * parts;
    if (first + kWarpSize * parts <= N || e < N)
      copy_one<V>(to + e, e < limit ? from + e : from, e < limit);
  }
}

/// This lane's copies are done after it; a __syncwarp shows them to the others.
__device__ __forceinline__ void wait_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

} // namespace ss
