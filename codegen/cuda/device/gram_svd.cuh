// Singular values and left vectors of A from gram = A A^T, by all warps of a program: pivoted
// Cholesky of the Gram matrix in double, then one-sided Jacobi on the rows of its factor in single
// precision. The contract is that of the CPU twin in runtime/src/routines/GramSvd.cpp.
//
// The rows of the pivoted factor are the singular vectors already, up to rotations that are small
// where weights are far apart, so few sweeps are needed; and as Jacobi is exact relative to each
// row's own length, single precision does for rows of any length.
#pragma once
#include "ss/small_matrix.cuh"
#include "ss/warps.cuh"

namespace ss {
namespace gram {
using namespace small_matrix;

/// The factor ends where what is left of the trace is below this share of the smallest squared
/// weight that is wanted: their weights are then exact to half of it, relative.
constexpr double kTail = 1e-3;
/// Cosines below are rounding of a dot product.
constexpr float kNoise = 1e-6f;
constexpr int kMaxSweeps = 24;
constexpr int kGroup = 8; // lanes that rotate one pair of rows

/// What is left of a row's diagonal (to 13 bits), and its index: the largest key is the pivot.
__device__ __forceinline__ unsigned key_of(double residual, int index) {
  return residual > 0.0 ? (unsigned(high_word(residual)) & ~127u) | unsigned(127 - index) : 0u;
}

/// The part of a row of M floats that one of the kGroup lanes of a pair holds.
template <int M, int LD> struct Slice {
  static constexpr int width = M % 4 == 0 && LD % 2 == 0 ? 4 : 1;
  static constexpr int steps = (M + kGroup * width - 1) / (kGroup * width);

  static __device__ __forceinline__ int first(int step) {
    return (step * kGroup + lane() % kGroup) * width;
  }
  static __device__ __forceinline__ void load(float (&x)[steps * width], const float *row) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int at = first(step);
      if constexpr (width == 4) {
        const float4 four = at < M ? *reinterpret_cast<const float4 *>(row + at)
                                   : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        x[4 * step] = four.x, x[4 * step + 1] = four.y;
        x[4 * step + 2] = four.z, x[4 * step + 3] = four.w;
      } else {
        x[step] = at < M ? row[at] : 0.0f;
      }
    }
  }
  static __device__ __forceinline__ void store(float *row, const float (&x)[steps * width]) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int at = first(step);
      if (at >= M)
        continue;
      if constexpr (width == 4)
        *reinterpret_cast<float4 *>(row + at) =
            make_float4(x[4 * step], x[4 * step + 1], x[4 * step + 2], x[4 * step + 3]);
      else
        row[at] = x[step];
    }
  }
};

__device__ __forceinline__ float sum_group(float x) {
#pragma unroll
  for (int offset = kGroup / 2; offset > 0; offset /= 2)
    x += __shfl_xor_sync(kWholeWarp, x, offset);
  return x;
}

/// The rows of single precision lie in the second half of the matrix's rows.
template <int M, int LD> __device__ __forceinline__ float *second_half(double (&row)[LD]) {
  return reinterpret_cast<float *>(&row[0]) + M;
}

/// Numbers that all warps must agree on.
struct Size {
  double least; // of the largest eigenvalue: a lower bound
  bool finite;
};

template <int W, int M, int LD>
__device__ __forceinline__ Size measure(int m, const double (&gram)[M][LD], Exchange<W> &exchange) {
  double square = 0.0, trace = 0.0, largest = 0.0;
  for (int i = warp_of<W>(); i < m; i += W)
    for (int j = lane(); j < m; j += kLanes) {
      const double x = gram[i][j];
      square = fma(x, x, square);
      if (i == j) {
        trace += x;
        largest = x > largest ? x : largest;
      }
    }
  square = sum_of_warps(sum_lanes(square), exchange, 0);
  trace = sum_of_warps(sum_lanes(trace), exchange, 1);
  largest = max_of_warps(max_lanes(largest), exchange, 0);
  const bool finite = square - square == 0.0 && trace - trace == 0.0;
  const double mean = trace > 0.0 ? square / trace : 0.0;
  return {mean > largest ? mean : largest, finite};
}

/// Rows order[0], order[1], ... of gram become those of L with gram = L^T L up to `limit` in the
/// trace. Returns how many. A thread owns columns, and computes a row when it is the pivot.
template <int W, int M, int LD>
__device__ __forceinline__ int factorize(int m, double (&gram)[M][LD], double limit,
                                         Exchange<W> &exchange, int *order) {
  constexpr int threads = W * kLanes, count = (M + threads - 1) / threads;
  double residual[count]; // negative: has been the pivot
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int j = thread_of<W>() + r * threads;
    residual[r] = j < m ? gram[j][j] : -1.0;
  }
  for (int step = 0; step < m; ++step) {
    unsigned key = 0u;
    double value = 0.0;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const unsigned next = key_of(residual[r], thread_of<W>() + r * threads);
      value = next > key ? residual[r] : value;
      key = next > key ? next : key;
    }
    const unsigned best = best_of_warps(key, value, exchange, ~step & 1);
    if (best == 0u || value * double(m - step) <= limit)
      return step;
    const int p = 127 - int(best & 127u);
    const double inverse = reciprocal_sqrt(value);
    if (thread_of<W>() == 0)
      order[step] = p;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const int j = thread_of<W>() + r * threads;
      if (j >= m)
        continue;
      double even = gram[p][j], odd = 0.0;
      if (residual[r] >= 0.0) {
        int s = 0;
        for (; s + 4 <= step; s += 4) {
          const double(&a)[LD] = gram[order[s]];
          const double(&b)[LD] = gram[order[s + 1]];
          const double(&c)[LD] = gram[order[s + 2]];
          const double(&d)[LD] = gram[order[s + 3]];
          even = fma(-a[p], a[j], even);
          odd = fma(-b[p], b[j], odd);
          even = fma(-c[p], c[j], even);
          odd = fma(-d[p], d[j], odd);
        }
        for (; s < step; ++s)
          even = fma(-gram[order[s]][p], gram[order[s]][j], even);
      }
      const double l = j == p ? value * inverse : residual[r] < 0.0 ? 0.0 : (even + odd) * inverse;
      gram[p][j] = l;
      const double left = fma(-l, l, residual[r]);
      residual[r] = j == p || residual[r] < 0.0 ? -1.0 : left > 0.0 ? left : 0.0;
    }
  }
  return m;
}

/// Row s of single precision is row order[s] of the factor, scaled.
template <int W, int M, int LD>
__device__ __forceinline__ void narrow(int m, int rank, double scale, double (&gram)[M][LD],
                                       const int *order) {
  constexpr int count = (M + kLanes - 1) / kLanes;
  for (int s = warp_of<W>(); s < rank; s += W) {
    double(&row)[LD] = gram[order[s]];
    float x[count];
#pragma unroll
    for (int r = 0; r < count; ++r)
      x[r] = lane() + r * kLanes < m ? float(row[lane() + r * kLanes] * scale) : 0.0f;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < count; ++r)
      if (lane() + r * kLanes < M)
        reinterpret_cast<float *>(&row[0])[lane() + r * kLanes] = x[r];
  }
  sync_warps<W>();
  for (int s = warp_of<W>(); s < rank; s += W) {
    const float *from = reinterpret_cast<const float *>(&gram[order[s]][0]);
    for (int j = lane(); j < M; j += kLanes)
      second_half<M>(gram[s])[j] = from[j];
  }
  sync_warps<W>();
}

/// What the rotations of a sweep were like: the largest cosine between two rows, and the largest
/// share of one row that was mixed into another, relative to the other's length.
struct SweepMaximum {
  float cosine, mixing;
};

/// Makes one pair of rows orthogonal; its lanes call together. Returns whether it changed them.
template <int N>
__device__ __forceinline__ bool rotate(float (&x)[N], float (&y)[N], SweepMaximum &seen) {
  float d = 0.0f, p = 0.0f, q = 0.0f;
#pragma unroll
  for (int e = 0; e < N; ++e) {
    d = fmaf(x[e], y[e], d);
    p = fmaf(x[e], x[e], p);
    q = fmaf(y[e], y[e], q);
  }
  d = sum_group(d), p = sum_group(p), q = sum_group(q);
  const float ratio = rsqrtf(p), other = rsqrtf(q);
  const float cosine = fabsf(d * ratio * other);
  if (!(cosine > kNoise))
    return false;
  const float delta = q - p, twice = 2.0f * d;
  const float square = fmaf(delta, delta, twice * twice);
  const float t = twice / (delta + copysignf(square * rsqrtf(square), delta));
  const float c = rsqrtf(fmaf(t, t, 1.0f)), s = c * t;
  const float mixing = fabsf(t) * (p > q ? p * ratio * other : q * ratio * other);
  seen.cosine = cosine > seen.cosine ? cosine : seen.cosine;
  seen.mixing = mixing > seen.mixing ? mixing : seen.mixing;
#pragma unroll
  for (int e = 0; e < N; ++e) {
    const float before = x[e];
    x[e] = fmaf(c, before, -s * y[e]);
    y[e] = fmaf(s, before, c * y[e]);
  }
  return true;
}

/// Makes the rows orthogonal to each other, all pairs of a round at once. Returns status bits.
template <int W, int M, int LD>
__device__ __forceinline__ int jacobi(int rank, double (&gram)[M][LD], Exchange<W> &exchange) {
  using Row = Slice<M, LD>;
  constexpr int atOnce = W * (kLanes / kGroup);
  const int n = (rank + 1) & ~1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    SweepMaximum seen = {0.0f, 0.0f};
    for (int round = 0; round < n - 1; ++round) {
      for (int first = warp_of<W>() * (kLanes / kGroup); first < n / 2; first += atOnce) {
        const int game = first + lane() / kGroup;
        int p = 0, q = rank;
        if (game < n / 2)
          players_of(round, game, n, p, q);
        const bool plays = q < rank; // an odd one out has a bye
        float *above = second_half<M>(gram[plays ? p : 0]);
        float *below = second_half<M>(gram[plays ? q : 0]);
        float x[Row::steps * Row::width], y[Row::steps * Row::width];
        Row::load(x, above);
        Row::load(y, below);
        SweepMaximum pair = {0.0f, 0.0f};
        if (rotate(x, y, pair) && plays) {
          Row::store(above, x);
          Row::store(below, y);
          seen.cosine = pair.cosine > seen.cosine ? pair.cosine : seen.cosine;
          seen.mixing = pair.mixing > seen.mixing ? pair.mixing : seen.mixing;
        }
      }
      sync_warps<W>();
    }
    const double cosine = max_of_warps(double(max_lanes(seen.cosine)), exchange, 0);
    const double mixing = max_of_warps(double(max_lanes(seen.mixing)), exchange, 1);
    // After a pair is made orthogonal the rest of the sweep brings back at most so much.
    if (cosine * mixing * double(n) <= double(kNoise))
      return 0;
  }
  return kNotConverged;
}

/// Unit rows in descending order of their lengths, in double again; sigma their lengths, unscaled.
template <int W, int M, int LD>
__device__ __forceinline__ void store_sorted(int m, int rank, double unscale, double (&gram)[M][LD],
                                             double (&sigma)[M]) {
  using Row = Slice<M, LD>;
  constexpr int atOnce = W * (kLanes / kGroup), turns = (M + atOnce - 1) / atOnce;
  const int group = thread_of<W>() / kGroup;
  float length[turns];
  int place[turns];
#pragma unroll
  for (int turn = 0; turn < turns; ++turn) {
    const int s = turn * atOnce + group;
    float x[Row::steps * Row::width], square = 0.0f;
    Row::load(x, second_half<M>(gram[s < rank ? s : 0]));
#pragma unroll
    for (int e = 0; e < Row::steps * Row::width; ++e)
      square = fmaf(x[e], x[e], square);
    length[turn] = s < rank ? sqrtf(sum_group(square)) : (sum_group(square), 0.0f);
    if (s < m && lane() % kGroup == 0)
      sigma[s] = double(length[turn]);
  }
  sync_warps<W>();
#pragma unroll
  for (int turn = 0; turn < turns; ++turn) {
    const int s = turn * atOnce + group;
    int before = 0;
    for (int j = lane() % kGroup; j < m; j += kGroup) {
      const float other = float(sigma[j]);
      before += other > length[turn] || (other == length[turn] && j < s);
    }
#pragma unroll
    for (int offset = kGroup / 2; offset > 0; offset /= 2)
      before += __shfl_xor_sync(kWholeWarp, before, offset);
    place[turn] = before;
    if (s < rank) {
      float x[Row::steps * Row::width];
      Row::load(x, second_half<M>(gram[s]));
      const float inverse = length[turn] > 0.0f ? 1.0f / length[turn] : 0.0f;
#pragma unroll
      for (int e = 0; e < Row::steps * Row::width; ++e)
        x[e] *= inverse;
      Row::store(reinterpret_cast<float *>(&gram[before][0]), x);
    }
  }
  sync_warps<W>();
#pragma unroll
  for (int turn = 0; turn < turns; ++turn)
    if (turn * atOnce + group < m && lane() % kGroup == 0)
      sigma[place[turn]] = double(length[turn]) * unscale;
  constexpr int count = (M + kLanes - 1) / kLanes;
  for (int i = warp_of<W>(); i < m; i += W) {
    float x[count];
#pragma unroll
    for (int r = 0; r < count; ++r)
      x[r] = i < rank && lane() + r * kLanes < M
                 ? reinterpret_cast<const float *>(&gram[i][0])[lane() + r * kLanes]
                 : 0.0f;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < count; ++r)
      if (lane() + r * kLanes < m)
        gram[i][lane() + r * kLanes] = double(x[r]);
  }
  sync_warps<W>();
}

/// What the warps of a program share beside the matrix, in room for M + 64 doubles.
template <int W, int M> struct Room {
  Exchange<W> exchange;
  int order[M];
};

} // namespace gram

/// gram = A A^T (m x m, at most M) becomes the left vectors of A, a row each, and sigma its singular
/// values, descending. Those below share * sigma[0] may be missing (zero); the others are right to
/// 1e-3, relative, and their vectors are orthonormal to single precision. room: memory that the
/// warps need. All in memory that they all see; called by all of them; returns the same status.
///   const int status = ss::gram_svd<4>(80, gram, sigma, room, share);
template <int W, int M, int LD, int N>
__device__ int gram_svd(int m, double (&gram)[M][LD], double (&sigma)[M], double (&room)[N],
                        double share) {
  using namespace small_matrix;
  static_assert(M <= 128, "an index has 7 bits");
  static_assert(sizeof(gram::Room<W, M>) <= sizeof(room), "more room is needed");
  auto &shared = reinterpret_cast<gram::Room<W, M> &>(room);
  sync_warps<W>();
  const gram::Size size = gram::measure(m, gram, shared.exchange);
  int rank = 0;
  double unscale = 1.0;
  if (size.finite && size.least > 0.0) {
    const double limit = gram::kTail * share * share * size.least;
    rank = gram::factorize(m, gram, limit, shared.exchange, shared.order);
    const int exponent = binary_exponent(size.least) >> 1;
    unscale = power_of_two(exponent);
    sync_warps<W>();
    gram::narrow<W>(m, rank, power_of_two(-exponent), gram, shared.order);
  }
  const int status = rank > 1 ? gram::jacobi(rank, gram, shared.exchange) : 0;
  gram::store_sorted<W>(m, rank, unscale, gram, sigma);
  return size.finite ? status : kNotFinite;
}

} // namespace ss
