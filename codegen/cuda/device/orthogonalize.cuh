// Pivoted Cholesky of a Gram matrix, with the inverse of its factor, by one warp. The contract is
// that of the CPU twin in runtime/src/routines/Orthogonalize.cpp.
#pragma once
#include "ss/base.cuh"
#include "ss/small_matrix.cuh"

namespace ss {
namespace orthogonalization {
using namespace small_matrix;

/// Residual of a row, relative to its own diagonal, below which it is dropped, and below which its
/// orthogonality is no longer certain.
constexpr double kDropBelow = 1e-13;
constexpr double kIllBelow = 1e-8;

/// What a lane knows of a row: its residual, what that was at first, and the pivot that it became.
struct Row {
  double residual, first, pivot;
  uint64_t before; // the rows that were pivots before it
  bool alive;

  __device__ __forceinline__ void begin(double diagonal) {
    residual = first = diagonal;
    pivot = 0.0;
    before = 0;
    alive = diagonal > 0.0;
  }
  __device__ __forceinline__ void become_pivot(uint64_t used) {
    pivot = residual;
    before = used;
    alive = false;
  }
  /// Whether row j became a pivot earlier, so that this row has no part in it.
  __device__ __forceinline__ bool comes_after(int j) const { return before >> j & 1u; }
  /// Orders rows by residual (to 15 bits), then by index; 0: cannot be the pivot.
  __device__ __forceinline__ unsigned key(int index) const {
    if (!alive || !(residual > kDropBelow * first))
      return 0u;
    return (unsigned(high_word(residual)) & ~63u) | unsigned(63 - index);
  }
  __device__ __forceinline__ bool ill() const { return residual < kIllBelow * first; }
  __device__ __forceinline__ double scale() const {
    return pivot > 0.0 ? reciprocal_sqrt(pivot) : 0.0;
  }
};

/// The row of the largest key of the warp, or -1.
__device__ __forceinline__ int pivot_of(unsigned key) {
  const unsigned best = max_of_lanes(key);
  return best == 0u ? -1 : 63 - int(best & 63u);
}

/// N doubles to or from memory, two at a time where a row begins at an even place.
template <int N, int LD>
__device__ __forceinline__ void write_row(double (&to)[LD], const double (&x)[N]) {
#pragma unroll
  for (int j = 0; j < N; j += 2)
    if (LD % 2 == 0 && j + 1 < N)
      *reinterpret_cast<double2 *>(&to[j]) = make_double2(x[j], x[j + 1]);
    else
      for (int k = j; k < j + 2 && k < N; ++k)
        to[k] = x[k];
}

/// x -= factor * row.
template <int N, int LD>
__device__ __forceinline__ void subtract(double (&x)[N], double factor, const double (&row)[LD]) {
#pragma unroll
  for (int j = 0; j < N; j += 2)
    if (LD % 2 == 0 && j + 1 < N) {
      const double2 y = *reinterpret_cast<const double2 *>(&row[j]);
      x[j] = fma(-factor, y.x, x[j]);
      x[j + 1] = fma(-factor, y.y, x[j + 1]);
    } else
      for (int k = j; k < j + 2 && k < N; ++k)
        x[k] = fma(-factor, row[k], x[k]);
}

/// Of what elimination left of row `row` of gram (or of t, where it is not `left`, in x; of t in y
/// too, where that is whole) what R and T have; the sum is 0 where all of it is finite.
template <int M, int N>
__device__ __forceinline__ double scale_row(const Row &row, double scale, bool left,
                                            double (&x)[M], double (&y)[N]) {
  double check = 0.0;
#pragma unroll
  for (int j = 0; j < M; ++j) {
    x[j] = scale > 0.0 && !(left && row.comes_after(j)) ? x[j] * scale : 0.0;
    check += x[j] - x[j];
    if constexpr (N == M) {
      y[j] = scale > 0.0 ? y[j] * scale : 0.0;
      check += y[j] - y[j];
    }
  }
  return check;
}

/// Up to 16 rows: lanes 0 to 15 hold the rows of gram, the others those of t. Up to 32 rows: lane i
/// holds row i of both. A pivot row passes through memory, where it stays.
template <int M, int LD>
__device__ __forceinline__ int eliminate_rows(int m, double (&gram)[M][LD], double (&t)[M][LD]) {
  constexpr bool split = M <= 16;
  const int i = split ? lane() & 15 : lane();
  const bool left = !split || lane() < 16, inside = i < m;
  double(&matrix)[M][LD] = left ? gram : t;
  double x[M], y[split ? 1 : M];
#pragma unroll
  for (int j = 0; j < M; ++j) {
    x[j] = !inside || j >= m ? 0.0 : left ? gram[i][j] : i == j ? 1.0 : 0.0;
    if constexpr (!split)
      y[j] = i == j ? 1.0 : 0.0;
  }
  Row row;
  row.begin(inside ? gram[i][i] : 0.0);
  double inverse = reciprocal(row.residual);
  bool ill = false;
  uint64_t used = 0;
  __syncwarp();
  // The reciprocal of a residual is ready long before its row can be the pivot.
  for (int step = 0; step < m; ++step) {
    const int p = pivot_of(row.key(i));
    if (p < 0)
      break;
    if (i == p) {
      write_row<M>(matrix[i], x);
      if constexpr (!split)
        write_row<M>(t[i], y);
    }
    const double share = __shfl_sync(kWholeWarp, inverse, p);
    __syncwarp();
    const double mine = gram[p][inside ? i : 0];
    if (i == p) {
      ill = ill || row.ill();
      row.become_pivot(used);
    }
    const double factor = row.alive ? mine * share : 0.0;
    row.residual = fma(-factor, mine, row.residual);
    inverse = reciprocal(row.residual);
    used |= uint64_t(1) << p;
    subtract(x, factor, matrix[p]);
    if constexpr (!split)
      subtract(y, factor, t[p]);
  }
  const double scale = row.scale();
  __syncwarp();
  const double check = scale_row(row, scale, left, x, y);
  if (inside) {
    write_row<M>(matrix[i], x);
    if constexpr (!split)
      write_row<M>(t[i], y);
  }
  if (!all_lanes(check == 0.0))
    return kNotFinite;
  return any_lane(ill) ? kIllConditioned : 0;
}

/// More rows: in memory. Lane l owns columns l, l + 32 of [gram | t], and the residuals of rows l and
/// l + 32. Row p is the pivot: notes it, lowers the residuals of the other rows, and says in
/// `alive` which of them are still to be pivots.
template <int M, int LD>
__device__ __forceinline__ void take_pivot(int m, int p, double inverse, uint64_t used,
                                           const double (&gram)[M][LD], Row (&rows)[2], bool &ill,
                                           unsigned (&alive)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = lane() + r * kLanes;
    if (i == p) {
      ill = ill || rows[r].ill();
      rows[r].become_pivot(used);
    }
    if (i < m && rows[r].alive) {
      const double mine = gram[p][i];
      rows[r].residual = fma(-mine * inverse, mine, rows[r].residual);
    }
    alive[r] = __ballot_sync(kWholeWarp, rows[r].alive);
  }
}

/// Takes the pivot row from the rows that are still to be pivots, in this lane's columns.
template <int M, int LD>
__device__ __forceinline__ void subtract_pivot(int m, int p, double inverse,
                                               const unsigned (&alive)[2], double (&gram)[M][LD],
                                               double (&t)[M][LD]) {
  double above[2], below[2]; // the pivot rows
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int j = lane() + r * kLanes;
    above[r] = j < m ? gram[p][j] : 0.0;
    below[r] = j < m ? t[p][j] : 0.0;
  }
#pragma unroll 4
  for (int i = 0; i < m; ++i) {
    if (!(alive[i / kLanes] >> (i % kLanes) & 1u))
      continue;
    const double factor = gram[p][i] * inverse;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int j = lane() + r * kLanes;
      if (j >= m)
        continue;
      gram[i][j] = fma(-factor, above[r], gram[i][j]);
      t[i][j] = fma(-factor, below[r], t[i][j]);
    }
  }
}

/// Rows as R and T have them; the sum is 0 where this lane's columns are finite.
template <int M, int LD>
__device__ __forceinline__ double scale_columns(int m, const Row (&rows)[2], double (&gram)[M][LD],
                                                double (&t)[M][LD]) {
  double check = 0.0;
  for (int i = 0; i < m; ++i) {
    const Row &mine = i < kLanes ? rows[0] : rows[1];
    const double scale = __shfl_sync(kWholeWarp, mine.scale(), i % kLanes);
    const uint64_t before = __shfl_sync(kWholeWarp, mine.before, i % kLanes);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int j = lane() + r * kLanes;
      if (j >= m)
        continue;
      const double x = scale > 0.0 && !(before >> j & 1u) ? gram[i][j] * scale : 0.0;
      const double y = scale > 0.0 ? t[i][j] * scale : 0.0;
      check += (x - x) + (y - y);
      gram[i][j] = x;
      t[i][j] = y;
    }
  }
  return check;
}

template <int M, int LD>
__device__ __forceinline__ int eliminate_columns(int m, double (&gram)[M][LD], double (&t)[M][LD]) {
  static_assert(M <= 64, "a lane keeps two rows");
  Row rows[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = lane() + r * kLanes;
    rows[r].begin(i < m ? gram[i][i] : 0.0);
  }
  for (int at = lane(); at < m * m; at += kLanes)
    t[at / m][at % m] = at / m == at % m ? 1.0 : 0.0;
  bool ill = false;
  uint64_t used = 0;
  __syncwarp();
  for (int step = 0; step < m; ++step) {
    const unsigned first = rows[0].key(lane()), second = rows[1].key(lane() + kLanes);
    const int p = pivot_of(first > second ? first : second);
    if (p < 0)
      break;
    const double inverse = reciprocal(
        __shfl_sync(kWholeWarp, p < kLanes ? rows[0].residual : rows[1].residual, p % kLanes));
    unsigned alive[2];
    __syncwarp();
    take_pivot(m, p, inverse, used, gram, rows, ill, alive);
    used |= uint64_t(1) << p;
    subtract_pivot(m, p, inverse, alive, gram, t);
    __syncwarp();
  }
  const double check = scale_columns(m, rows, gram, t);
  if (!all_lanes(check == 0.0))
    return kNotFinite;
  return any_lane(ill) ? kIllConditioned : 0;
}

// A compaction does it up to four times, and calls it, unless the kernel is faster otherwise.
#ifdef SS_REPEATED_ORTHOGONALIZE
#define SS_FACTORIZE __forceinline__
#else
#define SS_FACTORIZE __noinline__
#endif

/// [gram | t] from the Gram matrix to [R | T].
template <int M, int LD>
__device__ SS_FACTORIZE int factorize(int m, SharedAddress gram_at, SharedAddress t_at) {
  using Matrix = double[M][LD];
  Matrix &gram = at_shared<Matrix>(gram_at), &t = at_shared<Matrix>(t_at);
  __syncwarp();
  double check = 0.0;
  for (int at = lane(); at < m * m; at += kLanes) {
    const double x = gram[at / m][at % m];
    check += x - x;
  }
  int status = kNotFinite;
  if (all_lanes(check == 0.0)) {
    if constexpr (M <= 32)
      status = eliminate_rows<M, LD>(m, gram, t);
    else
      status = eliminate_columns<M, LD>(m, gram, t);
  }
  __syncwarp();
  if (status == kNotFinite) {
    for (int at = lane(); at < m * m; at += kLanes)
      gram[at / m][at % m] = t[at / m][at % m] = 0.0;
    __syncwarp();
  }
  return status;
}

} // namespace orthogonalization

/// Rows of T A are orthonormal, where gram = A A^T, and gram becomes R = T gram, so that A = R^T T A
/// (rows of dropped pivots are zero in both). The pivot is the row of the largest residual. M x M
/// doubles in shared memory. Called by all 32 lanes; the same status in each.
///   const int status = ss::orthogonalize(16, gram, t);
template <int M, int LD>
__device__ __forceinline__ int orthogonalize(int m, double (&gram)[M][LD], double (&t)[M][LD]) {
  return orthogonalization::factorize<M, LD>(m, shared_address(gram), shared_address(t));
}

} // namespace ss
