// Products of small matrices in shared memory by one warp, on the tensor cores in double.
#pragma once
#include "ss/base.cuh"
#include "ss/warps.cuh"

namespace ss {
namespace mma {

// A fragment of S steps of four along k. Lane 4 g + t holds: of a (16 x 4 S) rows g and g + 8 at
// k(s, t), in a[2 s] and a[2 s + 1]; of b (4 S x 8) column g at k(s, t), in b[s]; of c (16 x 8)
// columns 2 t and 2 t + 1 of row g in c[0], c[1] and of row g + 8 in c[2], c[3].

/// c[0], c[1] += a b for 8 rows and one step.
__device__ __forceinline__ void step_of_eight(double &c0, double &c1, double a, double b) {
#ifdef __CUDA_ARCH__
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c0), "+d"(c1)
      : "d"(a), "d"(b));
#else
  const int lane = lane_id(), g = lane / 4, t = lane % 4;
  for (int s = 0; s < 4; ++s) {
    const double row = __shfl_sync(kAllLanes, a, g * 4 + s);
    c0 = fma(row, __shfl_sync(kAllLanes, b, 2 * t * 4 + s), c0);
    c1 = fma(row, __shfl_sync(kAllLanes, b, (2 * t + 1) * 4 + s), c1);
  }
#endif
}

/// c += a b over S steps of four.
template <int S>
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[2 * S],
                                             const double (&b)[S]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (S == 4) {
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    return;
  }
#endif
#pragma unroll
  for (int s = 0; s < S; ++s) {
    step_of_eight(c[0], c[1], a[2 * s], b[s]);
    step_of_eight(c[2], c[3], a[2 * s + 1], b[s]);
  }
}

/// Four elements that lie together, in doubles; by 16-byte accesses where they are aligned.
template <typename T> __device__ __forceinline__ void load_four(double (&to)[4], const T *from) {
#pragma unroll
  for (int s = 0; s < 4; ++s)
    to[s] = double(from[s]);
}
__device__ __forceinline__ void load_four(double (&to)[4], const float *from) {
  const float4 x = *reinterpret_cast<const float4 *>(from);
  to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

/// a or b or c, perhaps transposed, with zeros around it.
template <bool Transposed, int Rows, int Columns, typename T, int R, int L>
__device__ __forceinline__ double element(const T (&x)[R][L], int i, int j) {
  if (i >= Rows || j >= Columns)
    return 0.0;
  return double(Transposed ? x[j][i] : x[i][j]);
}

/// Two neighbouring elements of a row of c.
template <int M, int N, typename T, int R, int L>
__device__ __forceinline__ void store_two(T (&c)[R][L], int i, int j, double x, double y) {
  if (i >= M)
    return;
  if constexpr (N % 2 == 0 && L % 2 == 0 && sizeof(T) == 4) {
    if (j < N)
      *reinterpret_cast<float2 *>(&c[i][j]) = make_float2(float(x), float(y));
  } else if constexpr (N % 2 == 0 && L % 2 == 0) {
    if (j < N)
      *reinterpret_cast<double2 *>(&c[i][j]) = make_double2(x, y);
  } else {
    if (j < N)
      c[i][j] = T(x);
    if (j + 1 < N)
      c[i][j + 1] = T(y);
  }
}

/// Rows of 16 and columns of 8 from (16 i0, 8 j0) on of c = op(a) op(b): RT tiles by CT tiles. All
/// is read before anything is written.
template <bool TransposeA, bool TransposeB, int M, int N, int K, int RT, int CT, typename TC,
          int RC, int LC, typename TA, int RA, int LA, typename TB, int RB, int LB>
__device__ __forceinline__ void block(TC (&c)[RC][LC], const TA (&a)[RA][LA], const TB (&b)[RB][LB],
                                      int i0, int j0) {
  const int g = lane_id() / 4, t = lane_id() % 4;
  double sum[RT][CT][4] = {};
#pragma unroll 2
  for (int k0 = 0; k0 < K; k0 += 16) {
    double left[RT][8];
#pragma unroll
    for (int i = 0; i < RT; ++i)
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const int row = 16 * (i0 + i) + g, k = k0 + 4 * s + t;
        left[i][2 * s] = element<TransposeA, M, K>(a, row, k);
        left[i][2 * s + 1] = element<TransposeA, M, K>(a, row + 8, k);
      }
#pragma unroll
    for (int j = 0; j < CT; ++j) {
      double right[4];
#pragma unroll
      for (int s = 0; s < 4; ++s)
        right[s] = element<TransposeB, K, N>(b, k0 + 4 * s + t, 8 * (j0 + j) + g);
#pragma unroll
      for (int i = 0; i < RT; ++i)
        multiply_add<4>(sum[i][j], left[i], right);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < RT; ++i)
#pragma unroll
    for (int j = 0; j < CT; ++j) {
      const int row = 16 * (i0 + i) + g, column = 8 * (j0 + j) + 2 * t;
      store_two<M, N>(c, row, column, sum[i][j][0], sum[i][j][1]);
      store_two<M, N>(c, row + 8, column, sum[i][j][2], sum[i][j][3]);
    }
}

/// c = a b with at most 16 products a sum and at most 16 rows: the fragments of a stay in registers,
/// and all of b is read before c is written, 8 CT columns at a time. c may be b.
template <bool TransposeA, bool TransposeB, int M, int N, int K, int CT, typename TC, int RC, int LC,
          typename TA, int RA, int LA, typename TB, int RB, int LB>
__device__ __forceinline__ void strips(TC (&c)[RC][LC], const TA (&a)[RA][LA],
                                       const TB (&b)[RB][LB]) {
  const int g = lane_id() / 4, t = lane_id() % 4;
  double left[8];
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    left[2 * s] = element<TransposeA, M, K>(a, g, 4 * s + t);
    left[2 * s + 1] = element<TransposeA, M, K>(a, g + 8, 4 * s + t);
  }
#pragma unroll
  for (int j0 = 0; j0 < N; j0 += 8 * CT) {
    TB right[CT][4];
#pragma unroll
    for (int j = 0; j < CT; ++j)
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const int k = 4 * s + t, column = j0 + 8 * j + g;
        right[j][s] = k >= K || column >= N ? TB(0) : TransposeB ? b[column][k] : b[k][column];
      }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < CT; ++j) {
      double sum[4] = {}, wide[4];
#pragma unroll
      for (int s = 0; s < 4; ++s)
        wide[s] = double(right[j][s]);
      multiply_add<4>(sum, left, wide);
      const int column = j0 + 8 * j + 2 * t;
      store_two<M, N>(c, g, column, sum[0], sum[1]);
      store_two<M, N>(c, g + 8, column, sum[2], sum[3]);
    }
  }
}

/// c = a a^T. Each element of a is read once, four of a row at a time, and serves both sides.
template <int M, int K, typename TC, int RC, int LC, typename TA, int RA, int LA>
__device__ __forceinline__ void gram(TC (&c)[RC][LC], const TA (&a)[RA][LA]) {
  constexpr int RT = (M + 15) / 16, CT = (M + 7) / 8;
  const int g = lane_id() / 4, t = lane_id() % 4;
  // Two sums of each element, so that products of neighbouring blocks overlap.
  constexpr int parts = RT == 1 ? 2 : 1;
  double sums[parts][RT][CT][4] = {};
#pragma unroll 8
  for (int k0 = 0; k0 < K; k0 += 16) {
    double(&sum)[RT][CT][4] = sums[k0 / 16 % parts];
    double rows[2 * RT][4]; // of row 8 i + g, the columns k0 + 4 t + s
#pragma unroll
    for (int i = 0; i < 2 * RT; ++i)
      if (8 * i + g < M)
        load_four(rows[i], &a[8 * i + g][k0 + 4 * t]);
      else
        rows[i][0] = rows[i][1] = rows[i][2] = rows[i][3] = 0.0;
#pragma unroll
    for (int i = 0; i < RT; ++i) {
      double left[8];
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        left[2 * s] = rows[2 * i][s];
        left[2 * s + 1] = rows[2 * i + 1][s];
      }
#pragma unroll
      for (int j = 0; j < CT; ++j)
        if (j <= 2 * i + 1)
          multiply_add<4>(sum[i][j], left, rows[j]);
    }
  }
  double(&sum)[RT][CT][4] = sums[0];
  if constexpr (parts == 2)
#pragma unroll
    for (int j = 0; j < CT; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sum[0][j][e] += sums[1][0][j][e];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < RT; ++i)
#pragma unroll
    for (int j = 0; j < CT; ++j)
      if (j <= 2 * i + 1) {
        const int row = 16 * i + g, column = 8 * j + 2 * t;
        store_two<M, M>(c, row, column, sum[i][j][0], sum[i][j][1]);
        store_two<M, M>(c, row + 8, column, sum[i][j][2], sum[i][j][3]);
        if (j < 2 * i) // the other half is the same
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int to = column + e % 2, from = row + 8 * (e / 2);
            if (to < M && from < M)
              c[to][from] = TC(sum[i][j][e]);
          }
      }
}

/// Two neighbouring elements of a symmetric c, up to the diagonal, and their mirror images.
template <int M, typename T, int R, int L>
__device__ __forceinline__ void store_mirrored(T (&c)[R][L], int i, int j, double x, double y) {
  if (i < M && j <= i)
    c[i][j] = c[j][i] = T(x);
  if (i < M && j + 1 <= i)
    c[i][j + 1] = c[j + 1][i] = T(y);
}

/// One row of tiles and CT columns of tiles from (16 i, 8 j0) on of c (+)= op(a) op(b), by one warp.
/// Mirrored: c is symmetric, and what is above its diagonal is written as what is below.
template <bool TransposeA, bool TransposeB, bool Add, bool Mirrored, int M, int N, int K, int CT,
          typename TC, int RC, int LC, typename TA, int RA, int LA, typename TB, int RB, int LB>
__device__ __forceinline__ void unit(TC (&c)[RC][LC], const TA (&a)[RA][LA], const TB (&b)[RB][LB],
                                     int i, int j0) {
  const int g = lane_id() / 4, t = lane_id() % 4;
  double sum[CT][4];
#pragma unroll
  for (int j = 0; j < CT; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = 16 * i + g + 8 * (e / 2), column = 8 * (j0 + j) + 2 * t + e % 2;
      // What is mirrored is another warp's to write.
      sum[j][e] = Add && !(Mirrored && column > row) ? element<false, M, N>(c, row, column) : 0.0;
    }
#pragma unroll 2
  for (int k0 = 0; k0 < K; k0 += 16) {
    double left[8];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      left[2 * s] = element<TransposeA, M, K>(a, 16 * i + g, k0 + 4 * s + t);
      left[2 * s + 1] = element<TransposeA, M, K>(a, 16 * i + g + 8, k0 + 4 * s + t);
    }
#pragma unroll
    for (int j = 0; j < CT; ++j) {
      double right[4];
#pragma unroll
      for (int s = 0; s < 4; ++s)
        right[s] = element<TransposeB, K, N>(b, k0 + 4 * s + t, 8 * (j0 + j) + g);
      multiply_add<4>(sum[j], left, right);
    }
  }
#pragma unroll
  for (int j = 0; j < CT; ++j) {
    const int column = 8 * (j0 + j) + 2 * t;
    if constexpr (Mirrored) {
      store_mirrored<M>(c, 16 * i + g, column, sum[j][0], sum[j][1]);
      store_mirrored<M>(c, 16 * i + g + 8, column, sum[j][2], sum[j][3]);
    } else {
      store_two<M, N>(c, 16 * i + g, column, sum[j][0], sum[j][1]);
      store_two<M, N>(c, 16 * i + g + 8, column, sum[j][2], sum[j][3]);
    }
  }
}

/// Columns of tiles that one warp of W computes together: many, so that it reads little, but not so
/// many that warps go without.
__device__ constexpr int tiles_across(int rows, int columns, int warps) {
  for (int wide = 5; wide > 1; --wide)
    if (columns % wide == 0 && rows * (columns / wide) >= 2 * warps)
      return wide;
  return 1;
}

/// What a product may know of its operands beside their shapes.
enum class Operands { Apart, Same, InPlace }; ///< Same: a is b. InPlace: c is a

// A compaction does it ten times and more, with few shapes, and calls it, unless the kernel is
// faster otherwise.
#ifdef SS_REPEATED_MATMUL
#define SS_MULTIPLY __forceinline__
#else
#define SS_MULTIPLY __noinline__
#endif

/// matmul, which says what it does.
template <Operands Are, bool TransposeA, bool TransposeB, int M, int N, int K, typename C,
          typename A, typename B>
__device__ SS_MULTIPLY void multiply(SharedAddress c_at, SharedAddress a_at, SharedAddress b_at) {
  constexpr int RT = (M + 15) / 16, CT = (N + 7) / 8;
  C &c = at_shared<C>(c_at);
  A &a = at_shared<A>(a_at);
  B &b = at_shared<B>(b_at);
  if constexpr (Are == Operands::Same) {
    gram<M, K>(c, a);
  } else if constexpr (RT == 1 && CT > 2 && K <= 16) {
    constexpr int passes = (CT + 15) / 16;
    strips<TransposeA, TransposeB, M, N, K, (CT + passes - 1) / passes>(c, a, b);
  } else if constexpr (RT * CT <= 8) {
    block<TransposeA, TransposeB, M, N, K, RT, CT>(c, a, b, 0, 0);
  } else if constexpr (Are == Operands::InPlace) { // whole rows at a time
    if constexpr (N <= 64)
      for (int i = 0; i < RT; ++i)
        block<TransposeA, TransposeB, M, N, K, 1, CT>(c, a, b, i, 0);
  } else { // whole columns at a time
    constexpr int wide = RT >= 4 ? 1 : RT >= 2 ? 2 : 4;
    for (int j = 0; j < CT; j += wide)
      block<TransposeA, TransposeB, M, N, K, RT, wide>(c, a, b, 0, j);
  }
}

} // namespace mma

/// c = op(a) op(b), op a transpose or nothing, c of M x N and K products a sum. Products and sums
/// in double, fma, in an order that only the shapes decide; one rounding to c's type. c may be b
/// where op(a) is square, or a where op(b) is. All in shared memory. Called by all 32 lanes.
///   ss::matmul<false, true, 16, 16, 128>(gram, rows, rows);
template <bool TransposeA, bool TransposeB, int M, int N, int K, typename TC, int RC, int LC,
          typename TA, int RA, int LA, typename TB, int RB, int LB>
__device__ __forceinline__ void matmul(TC (&c)[RC][LC], const TA (&a)[RA][LA],
                                       const TB (&b)[RB][LB]) {
  using mma::Operands;
  using C = TC[RC][LC];
  using A = const TA[RA][LA];
  using B = const TB[RB][LB];
  constexpr int RT = (M + 15) / 16, CT = (N + 7) / 8;
  constexpr bool isGram = !TransposeA && TransposeB && M == N && RT <= 2 && K % 16 == 0 && LA % 4 == 0;
  constexpr bool readsFirst = RT * CT <= 8 || (RT == 1 && K <= 16); // all, before it writes
  const void *to = &c[0][0], *left = &a[0][0], *right = &b[0][0];
  const SharedAddress c_at = shared_address(c), a_at = shared_address(a), b_at = shared_address(b);
  if (isGram && left == right)
    mma::multiply<isGram ? Operands::Same : Operands::Apart, TransposeA, TransposeB, M, N, K, C, A,
                  B>(c_at, a_at, b_at);
  else if (!readsFirst && to == left)
    mma::multiply<readsFirst ? Operands::Apart : Operands::InPlace, TransposeA, TransposeB, M, N, K,
                  C, A, B>(c_at, a_at, b_at);
  else
    mma::multiply<Operands::Apart, TransposeA, TransposeB, M, N, K, C, A, B>(c_at, a_at, b_at);
}

/// c = op(a) op(b), or c += (Add), by the W warps of a program, which share its tiles out; c is
/// neither a nor b, and rows from `limit` on are left alone. The order of a sum is that of one warp.
/// Of a Gram matrix (which c is before, if it is added to) half is computed.
///   ss::matmul_of_warps<4, false, true, true, 80, 80, 32>(gram, chunk, chunk);
template <int W, bool TransposeA, bool TransposeB, bool Add, int M, int N, int K, typename TC,
          int RC, int LC, typename TA, int RA, int LA, typename TB, int RB, int LB>
__device__ __forceinline__ void matmul_of_warps(TC (&c)[RC][LC], const TA (&a)[RA][LA],
                                                const TB (&b)[RB][LB], int64_t limit = M) {
  constexpr int RT = (M + 15) / 16, CT = (N + 7) / 8, wide = mma::tiles_across(RT, CT, W);
  const void *left = &a[0][0], *right = &b[0][0];
  const bool isGram = TransposeA != TransposeB && M == N && left == right;
  int turn = 0;
  for (int i = 0; i < RT && 16 * i < limit; ++i)
    for (int j = 0; j < CT; j += wide) {
      if (isGram && 8 * j >= 16 * (i + 1))
        break;
      if (turn++ % W != warp_of<W>())
        continue;
      if constexpr (TransposeA != TransposeB && M == N)
        if (isGram) {
          mma::unit<TransposeA, TransposeB, Add, true, M, N, K, wide>(c, a, b, i, j);
          continue;
        }
      mma::unit<TransposeA, TransposeB, Add, false, M, N, K, wide>(c, a, b, i, j);
    }
}

} // namespace ss
