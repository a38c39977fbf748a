// Singular values and left vectors of A from its packed Gram matrix A A^T
// (add_gram.cuh), by all warps of a program: pivoted Cholesky of it in double
// (packed_gram.cuh), then one-sided Jacobi on the rows of its factor in single
// precision. The contract is that of the CPU twin in
// runtime/src/routines/GramSvd.cpp.
//
// The rows of the pivoted factor are the singular vectors already, up to
// rotations that are small where weights are far apart, so few sweeps are
// needed; and as Jacobi is exact relative to each row's own length, single
// precision does for rows of any length.
#pragma once
#include "ss/packed_gram.cuh"
#include "ss/warps.cuh"

namespace ss {
namespace gram {
/// The factor ends where what is left of the trace is below this share of the
/// smallest squared weight that is wanted. That moves a wanted weight by a
/// quarter of it at most, relative.
constexpr double kTail = 4e-3;
/// Cosines that rows may be left with: two that are wanted; one that is and one
/// that is not, whose weight and vector change by the square; two that are not,
/// whose lengths cannot add up to more than what is wanted as long as they are
/// half as long.
constexpr float kOfWanted = 2e-6f, kOfOne = 1e-3f, kOfOthers = 0.1f;
/// And what a wanted row may have of another, relative to the shorter of them.
/// The other side's vectors, products with the matrix, show it so: a cosine of
/// 2e-6 between rows of lengths 1 and 2e-4 is one of 1e-2 there.
constexpr float kOfShorter = 3e-4f;
/// When a sweep ends with less than this between rows that are wanted, and less
/// than that of the least wanted share, none is needed any more.
constexpr float kDone = 4e-6f, kDoneOfShare = 1e-3f;
constexpr float kHalf = 0.5f; // of the least wanted length: shorter rows are not wanted
constexpr int kMaxSweeps = 24;

/// Lanes that have a row together: as many as the warps have for M / 2 pairs,
/// but four at least, as fewer would each hold too much of two rows for the
/// registers of many warps.
__device__ constexpr int lanes_of_row(int rows, int warps) {
  return 64 * warps >= 8 * rows ? 8 : 4;
}

/// The part of a row of M floats that a lane holds; a group of lanes has the
/// row.
template <int W, int M, int LD> struct Slice {
  static constexpr int group = lanes_of_row(M, W), groups = kLanes / group;
  static constexpr int width = M % 4 == 0 && LD % 4 == 0 ? 4 : 1;
  static constexpr int steps = (M + group * width - 1) / (group * width), size = steps * width;

  /// The group of this lane in its warp, and the lane in it.
  static __device__ __forceinline__ int number() { return lane() / group; }
  /// A game for each group of the warp. Eight lanes access memory at a time:
  /// their rows are so far apart that they are in different banks.
  static __device__ __forceinline__ int game() {
    constexpr int atOnce = 8 / group, block = atOnce * rows_apart();
    if constexpr (block == 1 || groups % block != 0)
      return number();
    const int inBlock = number() % block;
    return number() - inBlock + inBlock % atOnce * rows_apart() + inBlock / atOnce;
  }
  static __device__ constexpr int rows_apart() {
    for (int apart = 1; apart <= 8 && width == 4 && group < 8; ++apart)
      if (apart * LD % 32 == 4 * group || apart * LD % 32 == 32 - 4 * group)
        return apart;
    return 1;
  }
  static __device__ __forceinline__ int place() { return lane() % group; }
  static __device__ __forceinline__ int first(int step) { return (step * group + place()) * width; }
  /// Zeros where the row is not there. It is not read then: another warp may write in its place.
  static __device__ __forceinline__ void load(float (&x)[size], const float *row, bool isThere) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int at = first(step);
      if constexpr (width == 4) {
        const float4 four = isThere && at < M ? *reinterpret_cast<const float4 *>(row + at)
                                              : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        x[4 * step] = four.x, x[4 * step + 1] = four.y;
        x[4 * step + 2] = four.z, x[4 * step + 3] = four.w;
      } else {
        x[step] = isThere && at < M ? row[at] : 0.0f;
      }
    }
  }
  static __device__ __forceinline__ void store(float *row, const float (&x)[size]) {
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
  template <typename T> static __device__ __forceinline__ T sum(T x) {
#pragma unroll
    for (int offset = group / 2; offset > 0; offset /= 2)
      x += __shfl_xor_sync(kWholeWarp, x, offset);
    return x;
  }
  static __device__ __forceinline__ float dot(const float (&x)[size], const float (&y)[size]) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int e = 0; e < size; ++e)
      sums[e % 4] = fmaf(x[e], y[e], sums[e % 4]);
    return sum((sums[0] + sums[2]) + (sums[1] + sums[3]));
  }
};

/// What the rotations of a sweep were like, squared: the largest cosine, and
/// the largest share of one row that was mixed into another, relative to the
/// other's length; between wanted rows, and between a wanted one (into it) and
/// another one.
struct SweepMaximum {
  float of[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  __device__ __forceinline__ void see(bool both, float cosine, float mixing) {
    of[0] = both && cosine > of[0] ? cosine : of[0];
    of[1] = both && mixing > of[1] ? mixing : of[1];
    of[2] = !both && cosine > of[2] ? cosine : of[2];
    of[3] = !both && mixing > of[3] ? mixing : of[3];
  }
  /// After a pair is made orthogonal the rest of the sweep brings back at most
  /// so much: in all between wanted rows, by one other row at a time.
  __device__ __forceinline__ bool allows(int n, float share) const {
    constexpr float one = kOfOne * kOfOne;
    const float ended = kDoneOfShare * share < kDone ? kDoneOfShare * share : kDone;
    const float done = ended * ended;
    return of[0] * of[1] * float(n * n) <= done && of[3] * (of[2] > one ? of[2] : one) <= done;
  }
};

/// A quotient that need not be exact: what is left of an angle is for the next
/// sweep.
__device__ __forceinline__ float rough_quotient(float x, float y) {
#ifdef __CUDA_ARCH__
  return __fdividef(x, y);
#else
  return x / y;
#endif
}

struct Rotation {
  float cosine, tangent;
};

/// The rotation that makes rows of dot product d orthogonal, or none (of
/// tangent 0). Their squared lengths p and q become those behind it. Rows
/// shorter than `least` (squared) are not wanted.
__device__ __forceinline__ Rotation find_rotation(float d, float &p, float &q, float least,
                                                  SweepMaximum &seen) {
  const bool both = p >= least && q >= least, none = p < least && q < least;
  const float cosine = both   ? kOfWanted * kOfWanted
                       : none ? kOfOthers * kOfOthers
                              : kOfOne * kOfOne;
  const float ofShorter = kOfShorter * (p < q ? p : q), allowed = cosine * p * q;
  const bool isLarge = d * d > allowed || (both && d * d > ofShorter * ofShorter);
  const float delta = q - p, twice = 2.0f * d;
  const float square = fmaf(delta, delta, twice * twice);
  const float angle = rough_quotient(twice, delta + copysignf(square * rsqrtf(square), delta));
  const float t = isLarge ? angle : 0.0f;
  const float share = rough_quotient(1.0f, p * q), from = (p > q) == both ? p : q;
  if (isLarge && !none)
    seen.see(both, d * d * share, t * from * (t * from) * share);
  p = isLarge ? fmaf(-t, d, p) : p;
  q = isLarge ? fmaf(t, d, q) : q;
  return {rsqrtf(fmaf(t, t, 1.0f)), t};
}

/// What is known of the rows beside their elements: the squares of their
/// lengths, and what the elements are still to be multiplied by.
template <int M> struct Lengths {
  float square[M];
  union {
    float scale[M];
    int place[M]; // in the order of lengths, once rows are multiplied out
  };
};

/// Multiplies the rows out, and finds their lengths anew.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ void find_lengths(int rank, bool isScaled, float (&rows)[Rows][LD],
                                             Lengths<M> &lengths) {
  using Row = Slice<W, M, LD>;
  for (int first = warp_of<W>() * Row::groups; first < rank; first += W * Row::groups) {
    const int s = first + Row::number();
    float x[Row::size];
    float *row = rows[s < rank ? s : 0];
    Row::load(x, row, s < rank);
    const float scale = isScaled && s < rank ? lengths.scale[s] : 1.0f;
#pragma unroll
    for (int e = 0; e < Row::size; ++e)
      x[e] *= scale;
    const float square = Row::dot(x, x);
    if (s >= rank)
      continue;
    if (isScaled)
      Row::store(row, x);
    if (Row::place() == 0) {
      lengths.square[s] = square;
      lengths.scale[s] = 1.0f;
    }
  }
  sync_warps<W>();
}

/// The players of a game in a round of a round robin of n (even). Those of
/// neighbouring games are neighbours on either side, and so in different banks.
__device__ __forceinline__ void neighbours_of(int round, int game, int n, int &a, int &b) {
  a = game - 1 + round, b = n - 2 - game + round;
  a = game == 0 ? 0 : 1 + (a >= n - 1 ? a - (n - 1) : a);
  b = 1 + (b >= n - 1 ? b - (n - 1) : b);
}

/// A game of a round: the lanes of a group make rows a and b orthogonal, if it
/// plays. A rotation takes one product and sum an element, as cosines are left
/// to the rows' scales.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ void play(int a, int b, bool plays, float least, float (&rows)[Rows][LD],
                                     Lengths<M> &lengths, SweepMaximum &seen) {
  using Row = Slice<W, M, LD>;
  constexpr float endless = 3e38f; // no cosine is large enough for a rotation
  float *first = rows[a], *second = rows[b];
  float x[Row::size], y[Row::size];
  Row::load(x, first, plays);
  Row::load(y, second, plays);
  float p = plays ? lengths.square[a] : endless, q = plays ? lengths.square[b] : endless;
  const float scale = plays ? lengths.scale[a] : 1.0f, other = plays ? lengths.scale[b] : 1.0f;
  __syncwarp();
  const Rotation r = find_rotation(Row::dot(x, y) * (scale * other), p, q, least, seen);
  if (!plays || r.tangent == 0.0f)
    return;
  const float down = r.tangent * rough_quotient(other, scale);
  const float up = r.tangent * rough_quotient(scale, other);
#pragma unroll
  for (int e = 0; e < Row::size; ++e) {
    const float before = x[e];
    x[e] = fmaf(-down, y[e], before);
    y[e] = fmaf(up, before, y[e]);
  }
  Row::store(first, x);
  Row::store(second, y);
  if (Row::place() == 0) {
    lengths.square[a] = p, lengths.square[b] = q;
    lengths.scale[a] = scale * r.cosine, lengths.scale[b] = other * r.cosine;
  }
}

/// Makes the rows orthogonal to each other, all pairs of a round at once. Rows
/// of a squared length below `least` are not wanted. Returns status bits.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ int jacobi(int rank, float least, float share, float (&rows)[Rows][LD],
                                      Lengths<M> &lengths, Exchange<W> &exchange) {
  using Row = Slice<W, M, LD>;
  const int n = (rank + 1) & ~1;
  int status = kNotConverged;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    find_lengths<W, M>(rank, sweep > 0, rows, lengths);
    SweepMaximum seen;
    for (int round = 0; round < n - 1; ++round) {
      for (int first = turn_of<W>() * Row::groups; first < n / 2; first += W * Row::groups) {
        const int game = first + Row::game();
        int a = 0, b = 0;
        if (game < n / 2)
          neighbours_of(round, game, n, a, b);
        // An odd one out has a bye.
        const bool plays = game < n / 2 && a < rank && b < rank;
        play<W, M>(plays ? a : 0, plays ? b : 0, plays, least, rows, lengths, seen);
      }
      sync_warps<W>();
    }
    max_of_threads(seen.of, exchange);
    if (seen.allows(n, share)) {
      status = 0;
      break;
    }
  }
  find_lengths<W, M>(rank, true, rows, lengths);
  return status;
}

/// The places of rows in descending order of their lengths; sigma: these,
/// unscaled.
template <int W, int M, int LD>
__device__ __forceinline__ void find_places(int m, int rank, double unscale, double (&sigma)[M],
                                            Lengths<M> &lengths) {
  using Row = Slice<W, M, LD>;
  for (int first = warp_of<W>() * Row::groups; first < m; first += W * Row::groups) {
    const int s = first + Row::number();
    const float square = s < rank ? lengths.square[s] : 0.0f;
    int before = 0;
    for (int j = Row::place(); j < rank; j += Row::group)
      before += lengths.square[j] > square || (lengths.square[j] == square && j < s);
    before = Row::sum(before);
    if (s >= m || Row::place() != 0)
      continue;
    const int place = s < rank ? before : s;
    lengths.place[s] = place;
    sigma[place] = s < rank ? double(sqrtf(square)) * unscale : 0.0;
  }
  sync_warps<W>();
}

/// So many neighbouring elements of a row are moved by one access.
template <int Width> struct Elements { float of[Width]; };
template <> struct alignas(16) Elements<4> { float of[4]; };

/// Unit rows in descending order of their lengths, in place; zeros behind. A
/// slice of all rows is in registers at a time.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ void store_sorted(int m, int rank, double unscale,
                                             float (&rows)[Rows][LD], double (&sigma)[M],
                                             Lengths<M> &lengths) {
  constexpr int width = Slice<W, M, LD>::width, across = 16 / width, threads = W * kLanes;
  constexpr int turns = (M * across + threads - 1) / threads;
  find_places<W, M, LD>(m, rank, unscale, sigma, lengths);
  for (int first = 0; first < M; first += 16) {
    Elements<width> x[turns];
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int at = thread_of<W>() + turn * threads, s = at / across;
      const int column = first + at % across * width;
      const bool isThere = s < rank && column < M;
      const float square = isThere ? lengths.square[s] : 0.0f;
      const float inverse = square > 0.0f ? 1.0f / sqrtf(square) : 0.0f;
      if (isThere)
        x[turn] = *reinterpret_cast<const Elements<width> *>(&rows[s][column]);
#pragma unroll
      for (int e = 0; e < width; ++e)
        x[turn].of[e] = isThere ? x[turn].of[e] * inverse : 0.0f;
    }
    sync_warps<W>();
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int at = thread_of<W>() + turn * threads, s = at / across;
      const int column = first + at % across * width;
      if (s < m && column < M)
        *reinterpret_cast<Elements<width> *>(&rows[lengths.place[s]][column]) = x[turn];
    }
  }
  sync_warps<W>();
}

/// What the warps of a program share beside the matrix, in room for M + 64
/// doubles.
template <int W, int M> struct Room {
  Exchange<W> exchange;
  union {
    Places<M> places;
    Lengths<M> lengths;
  };
};

} // namespace gram

/// The packed Gram matrix of A (m rows), in the place of its vectors, becomes
/// the left vectors of A, a row each, and sigma its singular values,
/// descending. Those below share * sigma[0] may be missing (zero); the others
/// are right to 1e-3, relative, and their vectors are orthonormal to single
/// precision. room: memory that the warps need. All in memory that they all
/// see; called by all of them; returns the same status.
///   const int status = ss::gram_svd<4>(80, vectors, sigma, room, share);
template <int W, int Rows, int LD, int M, int N>
__device__ int gram_svd(int m, float (&vectors)[Rows][LD], double (&sigma)[M], double (&room)[N],
                        double share) {
  using namespace small_matrix;
  static_assert(M <= 128, "a place has 7 bits");
  static_assert(Rows == M + 1, "memory for a row more than there are vectors");
  static_assert(sizeof(gram::Room<W, M>) <= sizeof(room), "more room is needed");
  auto &shared = reinterpret_cast<gram::Room<W, M> &>(room);
  double *packed = gram::packed_of(m, vectors);
  sync_warps<W>();
  const gram::Size size = gram::measure(m, packed, shared.exchange);
  int rank = 0, status = 0;
  double unscale = 1.0;
  if (size.finite && size.least > 0.0) {
    const double limit = gram::kTail * share * share * size.least;
    rank = gram::factorize(m, packed, limit, shared.exchange, shared.places);
    const int exponent = binary_exponent(size.least) >> 1;
    unscale = power_of_two(exponent);
    sync_warps<W>();
    gram::narrow<W>(m, rank, power_of_two(-exponent), vectors, shared.places);
    const double least = gram::kHalf * share / unscale;
    status = gram::jacobi(rank, float(least * least * size.least), float(share), vectors,
                          shared.lengths, shared.exchange);
  }
  gram::store_sorted<W>(m, rank, unscale, vectors, sigma, shared.lengths);
  return size.finite ? status : kNotFinite;
}

} // namespace ss
