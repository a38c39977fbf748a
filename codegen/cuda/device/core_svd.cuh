// Singular value decomposition of a small core by one warp: pivoted Householder QR, then one-sided
// Jacobi on the rows of the triangular factor, in round-robin order, all pairs of a round at once.
// The contract is that of the CPU twin in runtime/src/routines/CoreSvd.cpp: every step is a row
// operation on [c | xt], so that c ends as sigma_i y_i and xt as the left vectors.
#pragma once
#include "ss/small_matrix.cuh"

namespace ss {
namespace svd {
using namespace small_matrix;

/// Rows whose norm is below this share of the matrix's are rounding noise of the QR.
constexpr double kRankTolerance = 0x1p-50;
constexpr int kMaxSweeps = 30;

/// Element 0 of column j of [c | xt].
__device__ __forceinline__ double *column_of(int m, int j, double *c, double *xt) {
  return j < m ? c + j : xt + (j - m);
}

/// Scales c so that its largest element is in [0.5, 1) and sets xt to the identity. Returns the
/// exponent that undoes it.
template <int LD>
__device__ __forceinline__ int load_scaled(int m, double largest, double *c, double *xt) {
  int lift = 0;
  if (largest < power_of_two(-1022)) {
    largest *= power_of_two(600);
    lift = 600;
  }
  const int exponent = binary_exponent(largest) - lift;
  for (int at = lane(); at < m * m; at += kLanes) {
    const int to = at / m * LD + at % m;
    c[to] = scale_by(c[to], -exponent);
    xt[to] = at % (m + 1) == 0 ? 1.0 : 0.0;
  }
  __syncwarp();
  return exponent;
}

/// Applies the reflection that clears column `pivot` of c below row k to the columns that this
/// lane owns, and finds the squared norms of their rows below k. `norm`: of the pivot column.
template <int M, int LD>
__device__ __forceinline__ void reflect(int m, int k, int pivot, double norm, double *c, double *xt,
                                        double (&norms)[(2 * M + kLanes - 1) / kLanes]) {
  const double head = c[k * LD + pivot];
  const double diagonal = head >= 0.0 ? -norm : norm;
  const double v = head - diagonal;
  const double factor = 1.0 / (-diagonal * v);
#pragma unroll
  for (int r = 0; r < (2 * M + kLanes - 1) / kLanes; ++r) {
    const int j = lane() + r * kLanes;
    if (j >= 2 * m || (j < m && norms[r] < 0.0))
      continue;
    double *column = column_of(m, j, c, xt);
    double w = v * column[k * LD];
    for (int i = k + 1; i < m; ++i)
      w = fma(c[i * LD + pivot], column[i * LD], w);
    w *= factor;
    column[k * LD] = fma(-v, w, column[k * LD]);
    double square = 0.0;
    for (int i = k + 1; i < m; ++i) {
      const double x = fma(-c[i * LD + pivot], w, column[i * LD]);
      column[i * LD] = x;
      square = fma(x, x, square);
    }
    norms[r] = square;
  }
  __syncwarp();
  for (int i = k + lane(); i < m; i += kLanes)
    c[i * LD + pivot] = i == k ? diagonal : 0.0;
  __syncwarp();
}

/// QR with column pivoting of c; columns stay where they are. Returns the numeric rank: rows of c
/// from there on count as zero.
template <int M, int LD>
__device__ __forceinline__ int pivoted_qr(int m, double *c, double *xt) {
  constexpr int count = (2 * M + kLanes - 1) / kLanes;
  double norms[count]; // of this lane's columns; negative: already a pivot
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int j = lane() + r * kLanes;
    norms[r] = 0.0;
    if (j < m)
      for (int i = 0; i < m; ++i)
        norms[r] = fma(c[i * LD + j], c[i * LD + j], norms[r]);
  }
  double tolerance = 0.0;
  for (int k = 0; k < m; ++k) {
    double total = 0.0, best = -1.0;
    int pivot = 2 * M;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const int j = lane() + r * kLanes;
      if (j >= m || norms[r] < 0.0)
        continue;
      total += norms[r];
      if (norms[r] > best) {
        best = norms[r];
        pivot = j;
      }
    }
    total = sum_lanes(total);
    if (k == 0)
      tolerance = total * kRankTolerance * kRankTolerance;
    if (total <= tolerance)
      return k;
    argmax_lanes(best, pivot);
#pragma unroll
    for (int r = 0; r < count; ++r)
      if (pivot == lane() + r * kLanes)
        norms[r] = -1.0;
    reflect<M, LD>(m, k, pivot, sqrt(best), c, xt, norms);
  }
  return m;
}

/// How the lanes share the pairs of a round: `group` neighbouring lanes a pair; sub-lane s holds
/// elements s, s + group, ... of both rows, each pair beginning elsewhere so that the rows of
/// different pairs meet in different banks.
template <int M> struct Deal {
  static constexpr int group = M <= 8 ? 8 : M <= 16 ? 4 : M <= 32 ? 2 : 1;
  static constexpr int steps = (M + group - 1) / group;

  static __device__ __forceinline__ int pair() { return lane() / group; }
  static __device__ __forceinline__ int element(int step) {
    const int shifted = step + pair() % steps;
    return lane() % group + group * (shifted >= steps ? shifted - steps : shifted);
  }
};

struct Rotation {
  double cosine, sine, tangent;
};

/// What the rotations of a sweep were like: the largest squared cosine between two rows, and the
/// largest squared share of one row that was mixed into another, relative to the other's norm.
struct SweepMaximum {
  float cosine, mixing;
};

/// The rotation that makes two rows orthogonal: dot product d, squared norms p and q. The tangent
/// needs no more than single precision (what is left of d is for the next sweep), but the rotation
/// is orthogonal to double precision. Returns false if there is nothing to do.
__device__ __forceinline__ bool find_rotation(double d, double p, double q, double tolerance,
                                              Rotation &rotation, SweepMaximum &seen) {
  if (!(d * d > tolerance * p * q))
    return false;
  const double larger = p > q ? p : q;
  const double smaller = p > q ? q : p;
  const double scale = power_of_two(1 - binary_exponent(larger)); // the larger one to [1, 2)
  const float delta = float((q - p) * scale);
  const float twice = float(2.0 * d * scale);
  const float square = fmaf(delta, delta, twice * twice);
  const float h = square * rsqrtf(square);
  const float t = twice / (delta + copysignf(h, delta));
  const float big = float(larger * scale);
  const float ratio = big / float(smaller * scale);
  const float cosine = 0.25f * (twice / big) * (twice / big) * ratio;
  const float mixing = t * t * ratio;
  seen.cosine = cosine > seen.cosine ? cosine : seen.cosine;
  seen.mixing = mixing > seen.mixing ? mixing : seen.mixing;
  rotation.tangent = double(t);
  rotation.cosine = inverse_sqrt(fma(rotation.tangent, rotation.tangent, 1.0));
  rotation.sine = rotation.cosine * rotation.tangent;
  return true;
}

/// The players of a game in a round of a round robin of n (even), p < q.
__device__ __forceinline__ void players_of(int round, int game, int n, int &p, int &q) {
  int a = game == 0 ? 0 : game - 1 + round;
  int b = n - 2 - game + round;
  if (game != 0)
    a = 1 + (a >= n - 1 ? a - (n - 1) : a);
  b = 1 + (b >= n - 1 ? b - (n - 1) : b);
  p = a < b ? a : b;
  q = a < b ? b : a;
}

/// One round: every group of lanes makes its pair of rows orthogonal.
template <int M, int LD>
__device__ __forceinline__ void play_round(int m, int rank, int round, double tolerance, double *c,
                                           double *xt, double *norm, SweepMaximum &seen) {
  using Pairs = Deal<M>;
  const int n = (rank + 1) & ~1;
  int p = 0, q = rank;
  if (Pairs::pair() < n / 2)
    players_of(round, Pairs::pair(), n, p, q);
  const bool plays = q < rank; // an odd one out has a bye
  double d = 0.0;
  if (plays)
#pragma unroll
    for (int step = 0; step < Pairs::steps; ++step) {
      const int k = Pairs::element(step);
      if (k < m)
        d = fma(c[p * LD + k], c[q * LD + k], d);
    }
#pragma unroll
  for (int offset = Pairs::group / 2; offset > 0; offset /= 2)
    d += __shfl_xor_sync(kWholeWarp, d, offset);
  Rotation r;
  const double np = plays ? norm[p] : 0.0, nq = plays ? norm[q] : 0.0;
  __syncwarp();
  if (!plays || !find_rotation(d, np, nq, tolerance, r, seen))
    return;
#pragma unroll
  for (int step = 0; step < Pairs::steps; ++step) {
    const int k = Pairs::element(step);
    if (k >= m)
      continue;
    const double x = c[p * LD + k], y = c[q * LD + k];
    c[p * LD + k] = fma(r.cosine, x, -r.sine * y);
    c[q * LD + k] = fma(r.sine, x, r.cosine * y);
    const double u = xt[p * LD + k], v = xt[q * LD + k];
    xt[p * LD + k] = fma(r.cosine, u, -r.sine * v);
    xt[q * LD + k] = fma(r.sine, u, r.cosine * v);
  }
  if (lane() % Pairs::group == 0) {
    norm[p] = fma(-r.tangent, d, np);
    norm[q] = fma(r.tangent, d, nq);
  }
}

/// The squared norm of row i of c; each lane begins elsewhere in its row.
template <int LD>
__device__ __forceinline__ double row_norm(int m, int i, const double *c) {
  double sum = 0.0;
  int k = lane() % m;
  for (int step = 0; step < m; ++step) {
    sum = fma(c[i * LD + k], c[i * LD + k], sum);
    k = k + 1 == m ? 0 : k + 1;
  }
  return sum;
}

/// Makes the first `rank` rows of c orthogonal to each other. norm: room for m numbers. Returns
/// status bits.
template <int M, int LD>
__device__ __forceinline__ int jacobi(int m, int rank, double *c, double *xt, double *norm) {
  // Cosines below a few roundings of a dot product are noise.
  constexpr double below = 4e-16 * (M <= 16 ? 4 : M <= 36 ? 6 : 8);
  const int n = (rank + 1) & ~1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    for (int i = lane(); i < rank; i += kLanes)
      norm[i] = row_norm<LD>(m, i, c);
    __syncwarp();
    SweepMaximum seen = {0.0f, 0.0f};
    for (int round = 0; round < n - 1; ++round) {
      play_round<M, LD>(m, rank, round, below * below, c, xt, norm, seen);
      __syncwarp();
    }
    const double cosine = double(max_lanes(seen.cosine));
    const double mixing = double(max_lanes(seen.mixing));
    // After a pair is made orthogonal, up to the precision of the tangent, the rotations of the
    // rest of the sweep bring back at most n * mixing * cosine: often that is nothing.
    if (cosine * (mixing * double(n * n) + 0x1p-42) <= 1e-13 * 1e-13)
      return 0;
  }
  return kNotConverged;
}

/// Writes sigma, xt and yt in descending order of sigma; c is scratch from here on. Returns whether
/// all is finite.
template <int M, int LD>
__device__ __forceinline__ bool store_sorted(int m, int rank, int exponent, double *c, double *xt,
                                             double *sigma, double *yt) {
  constexpr int count = (M + kLanes - 1) / kLanes;
  double norm[count];
  int place[count];
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int i = lane() + r * kLanes;
    norm[r] = i < rank ? sqrt(row_norm<LD>(m, i, c)) : 0.0;
    if (i < m)
      sigma[i] = norm[r];
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int i = lane() + r * kLanes;
    place[r] = 0;
    for (int j = 0; j < m; ++j)
      place[r] += sigma[j] > norm[r] || (sigma[j] == norm[r] && j < i);
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < count; ++r)
    if (lane() + r * kLanes < m)
      sigma[place[r]] = scale_by(norm[r], exponent);
  for (int i = 0; i < m; ++i) {
    const int to = value_of_row(place, i);
    const double length = value_of_row(norm, i);
    const double inverse = length > 0.0 ? 1.0 / length : 0.0;
    for (int j = lane(); j < m; j += kLanes) {
      yt[to * LD + j] = inverse > 0.0 ? c[i * LD + j] * inverse : 0.0;
      c[i * LD + j] = inverse > 0.0 ? xt[i * LD + j] : 0.0;
    }
  }
  __syncwarp();
  for (int i = 0; i < m; ++i) {
    const int to = value_of_row(place, i);
    for (int j = lane(); j < m; j += kLanes)
      xt[to * LD + j] = c[i * LD + j];
  }
  __syncwarp();
  return sigma[0] - sigma[0] == 0.0;
}

template <int LD>
__device__ __forceinline__ void store_nothing(int m, double *xt, double *sigma, double *yt) {
  set_zero<LD>(xt, m, m);
  set_zero<LD>(yt, m, m);
  set_zero<1>(sigma, m, 1);
  __syncwarp();
}

} // namespace svd

/// C = X diag(sigma) Y^T for the m x m matrix c, in memory that the whole warp sees; row i of xt and
/// yt are the vectors of sigma[i]. M is the largest m. c is destroyed. Called by all 32 lanes; returns
/// the same status in each.
///   const int status = ss::core_svd(16, c, xt, sigma, yt);
template <int M, int LD>
__device__ int core_svd(int m, double (&matrix)[M][LD], double (&left)[M][LD], double (&sigma)[M],
                        double (&right)[M][LD]) {
  using namespace small_matrix;
  double *c = &matrix[0][0], *xt = &left[0][0], *yt = &right[0][0];
  __syncwarp();
  const double largest = largest_magnitude<LD>(c, m, m);
  if (largest == 0.0 || largest == infinity()) {
    svd::store_nothing<LD>(m, xt, sigma, yt);
    return largest == 0.0 ? 0 : kNotFinite;
  }
  const int exponent = svd::load_scaled<LD>(m, largest, c, xt);
  const int rank = svd::pivoted_qr<M, LD>(m, c, xt);
  const int status = rank > 1 ? svd::jacobi<M, LD>(m, rank, c, xt, sigma) : 0;
  __syncwarp();
  if (svd::store_sorted<M, LD>(m, rank, exponent, c, xt, sigma, yt))
    return status;
  __syncwarp();
  svd::store_nothing<LD>(m, xt, sigma, yt);
  return kNotFinite;
}

} // namespace ss
