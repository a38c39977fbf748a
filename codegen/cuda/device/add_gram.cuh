// A chunk's share of a packed Gram matrix, by all warps of a program, on the
// tensor cores in double.
#pragma once
#include "ss/matmul.cuh"
#include "ss/packed_gram.cuh"

namespace ss {
namespace gram {

/// Element k of row i of A, whose columns are rows of the chunk or not, with
/// zeros around it.
template <bool ColumnsAreRows, int R, int L>
__device__ __forceinline__ double entry(const float (&chunk)[R][L], int m, int width, int i,
                                        int k) {
  return i < m && k < width ? double(ColumnsAreRows ? chunk[k][i] : chunk[i][k]) : 0.0;
}

/// Tiles of 16 rows and 8 columns that one warp computes together: with more, five blocks of four
/// warps a multiprocessor have not the registers.
constexpr int kTilesAcross = 2;

/// Up to the diagonal, tiles from (16 i, 8 j0) on of the packed matrix (+)= A
/// A^T.
template <bool ColumnsAreRows, int R, int L>
__device__ __forceinline__ void add_tiles(int m, int width, bool isFirst, int i, int j0,
                                          const float (&chunk)[R][L], double *packed) {
  const int g = lane_id() / 4, t = lane_id() % 4;
  double sum[kTilesAcross][4];
#pragma unroll
  for (int j = 0; j < kTilesAcross; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = 16 * i + g + 8 * (e / 2), column = 8 * (j0 + j) + 2 * t + e % 2;
      sum[j][e] = isFirst || row >= m || column > row ? 0.0 : packed[row_of(m, column) + row];
    }
  for (int k0 = 0; k0 < width; k0 += 16) {
    double left[8];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const int k = k0 + 4 * s + t;
      left[2 * s] = entry<ColumnsAreRows>(chunk, m, width, 16 * i + g, k);
      left[2 * s + 1] = entry<ColumnsAreRows>(chunk, m, width, 16 * i + g + 8, k);
    }
#pragma unroll
    for (int j = 0; j < kTilesAcross; ++j) {
      if (j0 + j > 2 * i + 1)
        break;
      double right[4];
#pragma unroll
      for (int s = 0; s < 4; ++s)
        right[s] = entry<ColumnsAreRows>(chunk, m, width, 8 * (j0 + j) + g, k0 + 4 * s + t);
      mma::multiply_add<4>(sum[j], left, right);
    }
  }
#pragma unroll
  for (int j = 0; j < kTilesAcross; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = 16 * i + g + 8 * (e / 2), column = 8 * (j0 + j) + 2 * t + e % 2;
      if (row < m && column <= row)
        packed[row_of(m, column) + row] = sum[j][e];
    }
}

} // namespace gram

/// The packed Gram matrix of A (m rows), in the place of its vectors, becomes
/// or gains A A^T of `width` columns of A: rows of the chunk (columnsAreRows)
/// or columns of it. isFirst: what was in its place does not count. Called by
/// all warps; returns 0.
///   ss::add_gram<4>(80, 16, 1, first == 0, scratch.chunk, scratch.vectors);
template <int W, int R, int L, int Rows, int LD>
__device__ __forceinline__ int add_gram(int m, int width, int columnsAreRows, int isFirst,
                                        const float (&chunk)[R][L], float (&vectors)[Rows][LD]) {
  double *packed = gram::packed_of(m, vectors);
  int turn = 0;
#pragma unroll 1
  for (int i = 0; 16 * i < m; ++i)
#pragma unroll 1
    for (int j = 0; j < 2 * (i + 1) && 8 * j < m; j += gram::kTilesAcross) {
      if (turn++ % W != warp_of<W>())
        continue;
      if (columnsAreRows)
        gram::add_tiles<true>(m, width, isFirst, i, j, chunk, packed);
      else
        gram::add_tiles<false>(m, width, isFirst, i, j, chunk, packed);
    }
  return 0;
}

} // namespace ss
