// A Gram matrix that lies packed in the place of its vectors-to-be: its pivoted
// Cholesky factor, and the factor's rows in single precision. Half of a
// symmetric matrix in double takes the memory of all of the vectors in single,
// so that more programs fit a multiprocessor.
#pragma once
#include "ss/small_matrix.cuh"
#include "ss/warps.cuh"

namespace ss {
namespace gram {
using namespace small_matrix;

/// Where row s of a packed symmetric matrix would begin, were it whole: element
/// (s, q), s <= q, is q further.
__device__ __forceinline__ int row_of(int m, int s) { return s * m - s * (s + 1) / 2; }

/// The packed matrix of m rows: at the end of the memory of its vectors, which
/// are a row more than there are. Rows in single precision, from the first on,
/// then reach no row behind them.
template <int Rows, int LD>
__device__ __forceinline__ double *packed_of(int m, float (&vectors)[Rows][LD]) {
  static_assert(Rows * LD >= Rows * (Rows - 1), "vectors of as many elements, and one more");
  return reinterpret_cast<double *>(&vectors[0][0]) + (Rows * LD - m * (m + 1)) / 2;
}

/// What is left of a row's diagonal (to 13 bits), and its place: the largest
/// key is the pivot.
__device__ __forceinline__ unsigned key_of(double residual, int place) {
  return residual > 0.0 ? (unsigned(high_word(residual)) & ~127u) | unsigned(127 - place) : 0u;
}

/// Numbers that all warps must agree on.
struct Size {
  double least; // of the largest eigenvalue: a lower bound
  bool finite;
};

template <int W>
__device__ __forceinline__ Size measure(int m, const double *packed, Exchange<W> &exchange) {
  double squares = 0.0, diagonal = 0.0, trace = 0.0, largest = 0.0;
#pragma unroll 4
  for (int at = thread_of<W>(); at < m * (m + 1) / 2; at += W * kLanes)
    squares = fma(packed[at], packed[at], squares);
  for (int s = thread_of<W>(); s < m; s += W * kLanes) {
    const double x = packed[row_of(m, s) + s];
    trace += x;
    diagonal = fma(x, x, diagonal);
    largest = x > largest ? x : largest;
  }
  const double both = fma(2.0, squares, -diagonal); // halves of the matrix
  const double square = sum_of_warps(sum_lanes(both), exchange.value[0]);
  trace = sum_of_warps(sum_lanes(trace), exchange.value[1]);
  largest = max_of_warps(max_lanes(largest), exchange.third);
  const bool finite = square - square == 0.0 && trace - trace == 0.0;
  const double mean = trace > 0.0 ? square / trace : 0.0;
  return {mean > largest ? mean : largest, finite};
}

/// Which column of the matrix is in which place, and a number on its way
/// between threads.
template <int M> struct Places {
  double residual[2]; // of the column in the place of the next pivot, by turns
  int of[M];
};

__device__ __forceinline__ void swap(double &x, double &y) {
  const double before = x;
  x = y;
  y = before;
}

/// Columns in places `step` and p (behind it) change them: in the rows of the
/// factor above, and in what the matrix has behind.
template <int W, int M>
__device__ __forceinline__ void exchange_places(int m, int step, int p, double *packed,
                                                Places<M> &places) {
  constexpr int threads = W * kLanes;
  if (thread_of<W>() == 0) {
    const int pivot = places.of[p];
    places.of[p] = places.of[step];
    places.of[step] = pivot;
  }
  for (int s = thread_of<W>(); s < step; s += threads)
    swap(packed[row_of(m, s) + step], packed[row_of(m, s) + p]);
  for (int q = thread_of<W>(); q < m; q += threads)
    if (q > step && q != p)
      swap(packed[row_of(m, step) + q], packed[q < p ? row_of(m, q) + p : row_of(m, p) + q]);
  sync_warps<W>();
}

/// Less `Count` rows' products, all of which are on their way at once. left, right: elements (s, step)
/// and (s, q) of the first of them, so far from those of the next row.
template <int Count>
__device__ __forceinline__ void take_rows(int apart, const double *left, const double *right,
                                          double (&sums)[4]) {
#pragma unroll
  for (int e = 0; e < Count; ++e) { // each row is shorter by one than that above
    const int nearer = e * (e + 1) / 2;
    sums[e % 4] = fma(-left[e * apart - nearer], right[e * apart - nearer], sums[e % 4]);
  }
}

/// Element (step, q) of the matrix less what the rows of the factor above make
/// of it.
__device__ __forceinline__ double left_of(int m, int step, int q, const double *packed) {
  double sums[4] = {packed[row_of(m, step) + q], 0.0, 0.0, 0.0};
  const int whole = step & ~7;
#pragma unroll 1
  for (int s = 0; s < whole; s += 8)
    take_rows<8>(m - s, packed + row_of(m, s) + step, packed + row_of(m, s) + q, sums);
  int s = whole;
  if (step & 4) {
    take_rows<4>(m - s, packed + row_of(m, s) + step, packed + row_of(m, s) + q, sums);
    s += 4;
  }
  if (step & 2) {
    take_rows<2>(m - s, packed + row_of(m, s) + step, packed + row_of(m, s) + q, sums);
    s += 2;
  }
  if (step & 1)
    take_rows<1>(m - s, packed + row_of(m, s) + step, packed + row_of(m, s) + q, sums);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/// The packed matrix becomes P^T L^T L P up to `limit` in the trace: L's rows
/// where its own were, the permutation in places. Returns how many rows. A
/// thread owns places, and computes their elements of a row.
template <int W, int M>
__device__ __forceinline__ int factorize(int m, double *packed, double limit, Exchange<W> &exchange,
                                         Places<M> &places) {
  constexpr int threads = W * kLanes, count = (M + threads - 1) / threads;
  double residual[count]; // negative: has been the pivot
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int q = thread_of<W>() + r * threads;
    residual[r] = q < m ? packed[row_of(m, q) + q] : -1.0;
    if (q < m)
      places.of[q] = q;
  }
  for (int step = 0; step < m; ++step) {
    unsigned key = 0u;
    double value = 0.0;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const int q = thread_of<W>() + r * threads;
      const unsigned next = key_of(residual[r], q);
      value = next > key ? residual[r] : value;
      key = next > key ? next : key;
      if (q == step)
        places.residual[step & 1] = residual[r];
    }
    double inverse = reciprocal_sqrt(value); // while the warps meet
    const unsigned best = best_of_warps(key, value, inverse, exchange, step & 1);
    if (best == 0u)
      return step;
    if (value <= limit) { // so that the trace may be
      double trace = 0.0;
#pragma unroll
      for (int r = 0; r < count; ++r)
        trace += residual[r] > 0.0 ? residual[r] : 0.0;
      if (sum_of_warps(sum_lanes(trace), exchange.third) <= limit)
        return step;
    }
    const int p = 127 - int(best & 127u);
    const double moved = places.residual[step & 1];
    if (p != step)
      exchange_places<W>(m, step, p, packed, places);
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const int q = thread_of<W>() + r * threads;
      if (q < step || q >= m)
        continue;
      const double l = q == step ? value * inverse : left_of(m, step, q, packed) * inverse;
      packed[row_of(m, step) + q] = l;
      const double left = fma(-l, l, q == p ? moved : residual[r]);
      residual[r] = q == step ? -1.0 : left > 0.0 ? left : 0.0;
    }
  }
  return m;
}

/// The rows of the factor, in single precision, scaled, and columns in their
/// own places again, from the first row of the vectors on.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ void narrow(int m, int rank, double scale, float (&vectors)[Rows][LD],
                                       const Places<M> &places) {
  constexpr int count = (M + kLanes - 1) / kLanes, together = 2;
  const double *packed = packed_of(m, vectors);
  int to[count];
#pragma unroll
  for (int r = 0; r < count; ++r)
    to[r] = lane() + r * kLanes < m ? places.of[lane() + r * kLanes] : lane() + r * kLanes;
  for (int first = 0; first < rank; first += W * together) {
    float x[together][count];
#pragma unroll
    for (int e = 0; e < together; ++e)
#pragma unroll
      for (int r = 0; r < count; ++r) {
        const int s = first + e * W + warp_of<W>(), q = lane() + r * kLanes;
        const bool isThere = s < rank && q >= s && q < m;
        x[e][r] = isThere ? float(packed[row_of(m, s) + q] * scale) : 0.0f;
      }
    sync_warps<W>();
#pragma unroll
    for (int e = 0; e < together; ++e)
#pragma unroll
      for (int r = 0; r < count; ++r) {
        const int s = first + e * W + warp_of<W>();
        if (s < rank && to[r] < M)
          vectors[s][to[r]] = x[e][r];
      }
  }
  sync_warps<W>();
}

} // namespace gram
} // namespace ss
