// Products of small matrices in shared memory by one warp.
#pragma once
#include "ss/base.cuh"

namespace ss {

/// c = op(a) op(b), op a transpose or nothing. Products and sums in double, fma, k ascending; one
/// rounding to c's type. Lane l computes the elements l, l + 32, ... of c. c may be a or b: then
/// all of it is computed before any of it is written.
template <bool TransposeA, bool TransposeB, int M, int N, int RA, int CA, int RB, int CB, typename TC,
          typename TA, typename TB>
__device__ __forceinline__ void matmul(TC (&c)[M][N], const TA (&a)[RA][CA], const TB (&b)[RB][CB]) {
  constexpr int K = TransposeA ? RA : CA;
  static_assert((TransposeA ? CA : RA) == M, "rows of op(a) and of c differ");
  static_assert((TransposeB ? RB : CB) == N, "columns of op(b) and of c differ");
  static_assert((TransposeB ? CB : RB) == K, "columns of op(a) and rows of op(b) differ");
  const auto element = [&](int at) {
    const int i = at / N;
    const int j = at % N;
    double sum = 0.0;
#pragma unroll 8
    for (int k = 0; k < K; ++k)
      sum = fma(double(TransposeA ? a[k][i] : a[i][k]), double(TransposeB ? b[j][k] : b[k][j]), sum);
    return TC(sum);
  };
  const bool in_place = (const void *)&c == (const void *)&a || (const void *)&c == (const void *)&b;
  if (!in_place) {
    for (int at = lane_id(); at < M * N; at += kWarpSize)
      c[at / N][at % N] = element(at);
    return;
  }
  TC held[(M * N + kWarpSize - 1) / kWarpSize];
  for (int at = lane_id(); at < M * N; at += kWarpSize)
    held[at / kWarpSize] = element(at);
  __syncwarp();
  for (int at = lane_id(); at < M * N; at += kWarpSize)
    c[at / N][at % N] = held[at / kWarpSize];
}

} // namespace ss
