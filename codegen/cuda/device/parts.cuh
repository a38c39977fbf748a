// Sums of parts that the warps of a program compute: one of them all parts, or each its
// own. The order of the additions is that of the parts either way.
#pragma once
#include "ss/tile.cuh"

namespace ss {

/// Waits for the work that is queued before this kernel, where the launch let it begin beside
/// the end of that (sm_90), and lets the next kernel begin. To come before any access of globals.
__device__ __forceinline__ void follow_stream() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Adds a part to what this warp has kept of its earlier ones. `isFirst`: it had none.
/// A lane touches its own elements alone. V: the access, as wide as a lane's elements are.
template <typename V, int N, typename T>
__device__ __forceinline__ void keep_part(T (&kept)[N], const T (&part)[Lanes<N>::size], bool isFirst) {
  if (isFirst)
    return store_lanes<V, N>(kept, part);
  T sum[Lanes<N>::size];
  load_lanes<V, N>(sum, kept);
#pragma unroll
  for (int i = 0; i < Lanes<N>::size; ++i)
    sum[i] += part[i];
  store_lanes<V, N>(kept, sum);
}

/// What the warps of a block have kept, added up in their order. `kept` is the first
/// warp's; each further one's is `stride` bytes on.
template <typename V, int N, int Warps, typename T>
__device__ __forceinline__ void add_parts(T (&sum)[Lanes<N>::size], const T (&kept)[N], int stride) {
  load_lanes<V, N>(sum, kept);
#pragma unroll
  for (int w = 1; w < Warps; ++w) {
    T part[Lanes<N>::size];
    load_lanes<V, N>(part, reinterpret_cast<const T *>(reinterpret_cast<const char *>(kept) + w * stride));
#pragma unroll
    for (int i = 0; i < Lanes<N>::size; ++i)
      sum[i] += part[i];
  }
}

} // namespace ss
