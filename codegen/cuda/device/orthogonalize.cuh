// Pivoted Cholesky of a Gram matrix, with the inverse of its factor, by one warp. The contract is
// that of the CPU twin in runtime/src/routines/Orthogonalize.cpp.
#pragma once
#include "ss/small_matrix.cuh"

namespace ss {
namespace orthogonalization {
using namespace small_matrix;

/// Residual of a row, relative to its own diagonal, below which it is dropped, and below which its
/// orthogonality is no longer certain.
constexpr double kDropBelow = 1e-13;
constexpr double kIllBelow = 1e-8;

/// What a lane knows about rows lane, lane + 32: they are also the columns it owns.
template <int M> struct Rows {
  static constexpr int count = (M + kLanes - 1) / kLanes;
  double scale[count];            // power of two that brings the diagonal into [1, 4); 0: no row
  double inverse_diagonal[count]; // of the scaled diagonal
  double unscale[count];          // 1 / scale^2
  int alive[count];
  int order[count];               // step at which the row became a pivot; kNever
};

constexpr int kNever = 0x7fffffff;

/// The power of two s with s * s * x in [1, 4).
__device__ __forceinline__ double diagonal_scale(double x) {
  int lift = 0;
  if (x < power_of_two(-1022)) {
    x *= power_of_two(600);
    lift = 600;
  }
  return power_of_two(-((binary_exponent(x) - lift - 1) >> 1));
}

/// Scales gram in place to a diagonal in [1, 4) and t to the identity on rows with a positive
/// diagonal.
template <int M>
__device__ __forceinline__ void load_scaled(int m, double *gram, double *t, Rows<M> &rows) {
#pragma unroll
  for (int r = 0; r < Rows<M>::count; ++r) {
    const int i = lane() + r * kLanes;
    const double d = i < m ? gram[i * m + i] : 0.0;
    const double s = d > 0.0 ? diagonal_scale(d) : 0.0;
    rows.scale[r] = s;
    rows.inverse_diagonal[r] = d > 0.0 ? 1.0 / (d * s * s) : 0.0;
    rows.unscale[r] = d > 0.0 ? 1.0 / s / s : 0.0;
    rows.alive[r] = d > 0.0;
    rows.order[r] = kNever;
  }
  __syncwarp();
  for (int i = 0; i < m; ++i) {
    const double row = value_of_row(rows.scale, i);
#pragma unroll
    for (int r = 0; r < Rows<M>::count; ++r) {
      const int j = lane() + r * kLanes;
      if (j >= m)
        continue;
      const bool kept = row != 0.0 && rows.scale[r] != 0.0;
      gram[i * m + j] = kept ? gram[i * m + j] * row * rows.scale[r] : 0.0;
      t[i * m + j] = kept && i == j ? 1.0 : 0.0;
    }
  }
  __syncwarp();
}

/// The live row with the largest residual of those that reach kDropBelow, -1 if none does.
template <int M>
__device__ __forceinline__ int find_pivot(int m, const double *gram, const Rows<M> &rows,
                                          double &residual) {
  double best = -1.0;
  int pivot = kLanes * Rows<M>::count;
#pragma unroll
  for (int r = 0; r < Rows<M>::count; ++r) {
    const int i = lane() + r * kLanes;
    if (i >= m || !rows.alive[r])
      continue;
    if (!(gram[i * m + i] * rows.inverse_diagonal[r] >= kDropBelow))
      continue;
    const double x = gram[i * m + i] * rows.unscale[r];
    if (x > best) {
      best = x;
      pivot = i;
    }
  }
  argmax_lanes(best, pivot);
  if (!(best >= 0.0))
    return -1;
  residual = gram[pivot * m + pivot] * value_of_row(rows.inverse_diagonal, pivot);
  return pivot;
}

/// Makes the pivot row a unit row and takes its part out of every other live row. Lane l owns
/// columns l, l + 32, ... of [gram | t].
template <int M>
__device__ __forceinline__ void eliminate(int m, int pivot, double *gram, double *t,
                                          const Rows<M> &rows) {
  const double inverse = 1.0 / sqrt(gram[pivot * m + pivot]);
  __syncwarp();
  for (int j = lane(); j < 2 * m; j += kLanes) {
    double *column = j < m ? gram + j : t + (j - m);
    column[pivot * m] *= inverse;
  }
  __syncwarp();
  for (int i = 0; i < m; ++i) {
    if (!value_of_row(rows.alive, i))
      continue;
    const double l = gram[pivot * m + i];
    for (int j = lane(); j < 2 * m; j += kLanes) {
      double *column = j < m ? gram + j : t + (j - m);
      column[i * m] = fma(-l, column[pivot * m], column[i * m]);
    }
  }
  __syncwarp();
}

/// Undoes the scaling of the columns of t and r and clears dropped rows. A row has no part in the
/// rows that were pivots before it. Returns whether all is finite.
template <int M>
__device__ __forceinline__ bool finish(int m, double *t, double *r, const Rows<M> &rows) {
  double check = 0.0;
  for (int i = 0; i < m; ++i) {
    const int order = value_of_row(rows.order, i);
#pragma unroll
    for (int c = 0; c < Rows<M>::count; ++c) {
      const int j = lane() + c * kLanes;
      if (j >= m)
        continue;
      const double s = rows.scale[c];
      const double x = order != kNever ? t[i * m + j] * s : 0.0;
      const double y =
          order != kNever && rows.order[c] >= order && s != 0.0 ? r[i * m + j] / s : 0.0;
      t[i * m + j] = x;
      r[i * m + j] = y;
      check += (x - x) + (y - y);
    }
  }
  return sum_lanes(check) == 0.0;
}

} // namespace orthogonalization

/// Rows of T A are orthonormal, where gram = A A^T: m x m doubles, row-major, in memory that the
/// whole warp sees. gram becomes R = T gram, so that A = R^T T A. M is the largest m. Called by all 32 lanes; returns the same status in each.
///   const int status = ss::orthogonalize<16>(16, &gram[0][0], &t[0][0]);
template <int M> __device__ int orthogonalize(int m, double *gram, double *t) {
  using namespace orthogonalization;
  constexpr int count = Rows<M>::count;
  __syncwarp();
  if (largest_magnitude(gram, m * m) == infinity()) {
    set_zero(t, m * m);
    set_zero(gram, m * m);
    __syncwarp();
    return kNotFinite;
  }
  Rows<M> rows;
  load_scaled<M>(m, gram, t, rows);
  int status = 0;
  for (int step = 0; step < m; ++step) {
    double residual;
    const int pivot = find_pivot<M>(m, gram, rows, residual);
    if (pivot < 0)
      break;
    if (residual < kIllBelow)
      status |= kIllConditioned;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const bool mine = pivot == lane() + r * kLanes;
      rows.alive[r] = rows.alive[r] && !mine;
      rows.order[r] = mine ? step : rows.order[r];
    }
    eliminate<M>(m, pivot, gram, t, rows);
  }
  const bool finite = finish<M>(m, t, gram, rows);
  if (!finite) {
    set_zero(t, m * m);
    set_zero(gram, m * m);
  }
  __syncwarp();
  return finite ? status : kNotFinite;
}

} // namespace ss
