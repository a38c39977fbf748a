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

/// Lanes that have a row together, in two halves.
constexpr int kGroup = 8, kHalfGroup = kGroup / 2;

/// Elements that a lane loads at a time: as many as leave no lane without.
__device__ constexpr int elements_at_once(int m, int ld) {
  for (int width = 4; width > 1; width /= 2)
    if (m % (width * kGroup) == 0 && ld % width == 0)
      return width;
  return 1;
}

/// Elements that are accessed as one.
template <int Width> struct alignas(Width * sizeof(float)) Elements {
  float of[Width];
};

/// The part of a row of M floats that a lane holds; a group of lanes has the
/// row.
template <int M, int LD> struct Slice {
  static constexpr int groups = kLanes / kGroup, width = elements_at_once(M, LD);
  static constexpr int steps = (M + kGroup * width - 1) / (kGroup * width), size = steps * width;

  /// The group of this lane in its warp, and the lane in it.
  static __device__ __forceinline__ int number() { return lane() / kGroup; }
  /// A game for each group of the warp. Of eight bytes, half a warp's lanes access memory at a
  /// time: the two rows of a game's block are so far from another's that they are in other banks.
  static __device__ __forceinline__ int game() {
    if constexpr (width == 2 && 4 * LD % 32 == 16)
      return number() % 2 * 2 + number() / 2;
    return number();
  }
  static __device__ __forceinline__ int place() { return lane() % kGroup; }
  static __device__ __forceinline__ bool is_second_half() { return place() >= kHalfGroup; }
  static __device__ __forceinline__ int first(int step) { return (step * kGroup + place()) * width; }
  /// Zeros where the row is not there. It is not read then: another warp may write in its place.
  static __device__ __forceinline__ void load(float (&x)[size], const float *row, bool isThere) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int at = first(step);
      Elements<width> some = {};
      if (isThere && (M % (kGroup * width) == 0 || at < M))
        some = *reinterpret_cast<const Elements<width> *>(row + at);
#pragma unroll
      for (int e = 0; e < width; ++e)
        x[width * step + e] = some.of[e];
    }
  }
  static __device__ __forceinline__ void store(float *row, const float (&x)[size]) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int at = first(step);
      if (M % (kGroup * width) != 0 && at >= M)
        continue;
      Elements<width> some;
#pragma unroll
      for (int e = 0; e < width; ++e)
        some.of[e] = x[width * step + e];
      *reinterpret_cast<Elements<width> *>(row + at) = some;
    }
  }
  template <typename T> static __device__ __forceinline__ T of_other_half(T x) {
    return __shfl_xor_sync(kWholeWarp, x, kHalfGroup);
  }
  template <typename T> static __device__ __forceinline__ T sum_of_half(T x) {
#pragma unroll
    for (int offset = kHalfGroup / 2; offset > 0; offset /= 2)
      x += __shfl_xor_sync(kWholeWarp, x, offset);
    return x;
  }
  template <typename T> static __device__ __forceinline__ T sum(T x) {
    return sum_of_half(x + of_other_half(x));
  }
  /// This lane's part of a dot product.
  static __device__ __forceinline__ float part_of_dot(const float (&x)[size],
                                                      const float (&y)[size]) {
    float sums[2] = {0.0f, 0.0f};
#pragma unroll
    for (int e = 0; e < size; ++e)
      sums[e % 2] = fmaf(x[e], y[e], sums[e % 2]);
    return sums[0] + sums[1];
  }
};

/// What the rotations of a sweep were like, squared: the largest cosine, and
/// the largest share of one row that was mixed into another, relative to the
/// other's length; between wanted rows, and between a wanted one (into it) and
/// another one.
struct SweepMaximum {
  float of[4] = {0.0f, 0.0f, 0.0f, 0.0f};

  /// Of wanted rows, or of one.
  __device__ __forceinline__ void see(bool both, bool one, float cosine, float mixing) {
    of[0] = fmaxf(of[0], both ? cosine : 0.0f);
    of[1] = fmaxf(of[1], both ? mixing : 0.0f);
    of[2] = fmaxf(of[2], one ? cosine : 0.0f);
    of[3] = fmaxf(of[3], one ? mixing : 0.0f);
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

/// A reciprocal that need not be exact, of a normal number: what is left of an
/// angle is for the next sweep.
__device__ __forceinline__ float rough_reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}

/// 1 / sqrt(x), as exact.
__device__ __forceinline__ float rough_rsqrt(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return rsqrtf(x);
#endif
}

/// The tangent of the rotation that makes rows of dot product d orthogonal, or
/// 0. Their squared lengths p and q become those behind it. Rows shorter than
/// `least` (squared) are not wanted.
__device__ __forceinline__ float find_rotation(float d, float &p, float &q, float least,
                                               SweepMaximum &seen) {
  const float shorter = fminf(p, q), longer = fmaxf(p, q), product = p * q, square = d * d;
  const bool both = shorter >= least, none = longer < least;
  const float cosine = both   ? kOfWanted * kOfWanted
                       : none ? kOfOthers * kOfOthers
                              : kOfOne * kOfOne;
  const float ofShorter = kOfShorter * shorter;
  const bool isLarge = square > cosine * product || (both && square > ofShorter * ofShorter);
  const float delta = q - p;
  constexpr float normal = 0x1p-126f; // the least: neither root nor quotient is of a smaller one
  const float root = fmaf(delta, delta, fmaf(4.0f, square, normal));
  const float quotient = rough_reciprocal(delta + copysignf(root * rough_rsqrt(root), delta));
  const float t = isLarge ? 2.0f * d * quotient : 0.0f;
  const float share = rough_reciprocal(product), mixed = t * (both ? longer : shorter);
  seen.see(both, !both && !none, square * share, mixed * mixed * share);
  p = fmaf(-t, d, p);
  q = fmaf(t, d, q);
  return t;
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
  using Row = Slice<M, LD>;
  for (int first = warp_of<W>() * Row::groups; first < rank; first += W * Row::groups) {
    const int s = first + Row::number();
    float x[Row::size];
    float *row = rows[s < rank ? s : 0];
    Row::load(x, row, s < rank);
    const float scale = isScaled && s < rank ? lengths.scale[s] : 1.0f;
#pragma unroll
    for (int e = 0; e < Row::size; ++e)
      x[e] *= scale;
    const float square = Row::sum(Row::part_of_dot(x, x));
    __syncwarp(); // all lanes of a row have its scale
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

/// What a half of a group knows of the two rows of its game.
template <typename Row> struct Game {
  float square[2], scale[2];

  /// A row that is not there is so long that no cosine is large enough for a rotation.
  template <int M>
  __device__ __forceinline__ void load(int first, int second, int rank, const Lengths<M> &lengths) {
    constexpr float endless = 3e38f;
    square[0] = first < rank ? lengths.square[first] : endless;
    square[1] = second < rank ? lengths.square[second] : endless;
    scale[0] = first < rank ? lengths.scale[first] : 1.0f;
    scale[1] = second < rank ? lengths.scale[second] : 1.0f;
  }
  template <int M>
  __device__ __forceinline__ void store(int first, int second, int rank,
                                        Lengths<M> &lengths) const {
    if (first < rank)
      lengths.square[first] = square[0], lengths.scale[first] = scale[0];
    if (second < rank)
      lengths.square[second] = square[1], lengths.scale[second] = scale[1];
  }
  /// Halves give each other a row: the first one, or the second.
  __device__ __forceinline__ void change(bool givesFirst) {
    const float newSquare = Row::of_other_half(givesFirst ? square[0] : square[1]);
    const float newScale = Row::of_other_half(givesFirst ? scale[0] : scale[1]);
    square[0] = givesFirst ? newSquare : square[0], scale[0] = givesFirst ? newScale : scale[0];
    square[1] = givesFirst ? square[1] : newSquare, scale[1] = givesFirst ? scale[1] : newScale;
  }
};

/// In place, without a copy: y += up x, then x -= down y. That is the rotation
/// but for a factor of x, which is left to its scale.
template <int Size>
__device__ __forceinline__ void rotate(float (&x)[Size], float (&y)[Size], float down, float up) {
#pragma unroll
  for (int e = 0; e < Size; ++e) {
    y[e] = fmaf(up, x[e], y[e]);
    x[e] = fmaf(-down, y[e], x[e]);
  }
}

/// Two games of a group at once: rows I and J, which its first half computes a
/// rotation for, and K and L. A rotation takes one product and sum an element,
/// as cosines are left to the rows' scales. Returns whether the warp has one.
template <typename Row, int I, int J, int K, int L>
__device__ __forceinline__ bool play_two(float (&x)[4][Row::size], Game<Row> &mine, float least,
                                         SweepMaximum &seen) {
  const float first = Row::part_of_dot(x[I], x[J]), second = Row::part_of_dot(x[K], x[L]);
  const bool isSecond = Row::is_second_half();
  const float theirs = Row::of_other_half(isSecond ? first : second);
  const float dot = Row::sum_of_half((isSecond ? second : first) + theirs);
  const float tangent = find_rotation(dot * (mine.scale[0] * mine.scale[1]), mine.square[0],
                                   mine.square[1], least, seen);
  if (!any_lane(tangent != 0.0f))
    return false;
  const float square = fmaf(tangent, tangent, 1.0f), cosine = rough_rsqrt(square);
  const float up = tangent * (mine.scale[0] * rough_reciprocal(mine.scale[1]));
  const float down = tangent * (mine.scale[1] * rough_reciprocal(mine.scale[0])) *
                     (cosine * cosine);
  mine.scale[0] *= square * cosine, mine.scale[1] *= cosine;
  const float otherDown = Row::of_other_half(down), otherUp = Row::of_other_half(up);
  rotate(x[I], x[J], isSecond ? otherDown : down, isSecond ? otherUp : up);
  rotate(x[K], x[L], isSecond ? down : otherDown, isSecond ? up : otherUp);
  return true;
}

/// A group of lanes makes the rows of two blocks, of two rows each, orthogonal:
/// those of different blocks, and (isFirst) those of one. Rows from `rank` on
/// are not there.
template <int M, int Rows, int LD>
__device__ __forceinline__ void play(int a, int b, bool isFirst, int rank, float least,
                                     float (&rows)[Rows][LD], Lengths<M> &lengths,
                                     SweepMaximum &seen) {
  using Row = Slice<M, LD>;
  const int numbers[4] = {2 * a, 2 * a + 1, 2 * b, 2 * b + 1};
  float x[4][Row::size];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    Row::load(x[i], rows[0] + numbers[i] * LD, numbers[i] < rank);
  const bool isSecond = Row::is_second_half();
  Game<Row> mine;
  bool changed = false;
  if (isFirst) {
    mine.load(isSecond ? numbers[2] : numbers[0], isSecond ? numbers[3] : numbers[1], rank, lengths);
    changed = play_two<Row, 0, 1, 2, 3>(x, mine, least, seen);
    mine.change(isSecond);
  } else {
    mine.load(isSecond ? numbers[1] : numbers[0], isSecond ? numbers[3] : numbers[2], rank, lengths);
  }
  changed |= play_two<Row, 0, 2, 1, 3>(x, mine, least, seen);
  mine.change(false);
  changed |= play_two<Row, 0, 3, 1, 2>(x, mine, least, seen);
  __syncwarp();
  if (!changed)
    return;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (numbers[i] < rank)
      Row::store(rows[0] + numbers[i] * LD, x[i]);
  if (Row::place() % kHalfGroup == 0)
    mine.store(isSecond ? numbers[1] : numbers[0], isSecond ? numbers[2] : numbers[3], rank,
               lengths);
}

/// Makes the rows orthogonal to each other, all pairs of blocks of a round at
/// once. Rows of a squared length below `least` are not wanted. Returns status
/// bits.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ int jacobi(int rank, float least, float share, float (&rows)[Rows][LD],
                                      Lengths<M> &lengths, Exchange<W> &exchange) {
  using Row = Slice<M, LD>;
  const int blocks = (rank + 3) / 4 * 2;
  int status = kNotConverged;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    find_lengths<W, M>(rank, sweep > 0, rows, lengths);
    SweepMaximum seen;
    for (int round = 0; round < blocks - 1; ++round) {
      for (int first = turn_of<W>() * Row::groups; first < blocks / 2; first += W * Row::groups) {
        const int game = first + Row::game();
        int a = rank, b = rank; // none
        if (game < blocks / 2)
          neighbours_of(round, game, blocks, a, b);
        play<M>(a, b, round == 0, rank, least, rows, lengths, seen);
      }
      sync_warps<W>();
    }
    max_of_threads(seen.of, exchange);
    if (seen.allows(rank, share)) {
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
  using Row = Slice<M, LD>;
  for (int first = warp_of<W>() * Row::groups; first < m; first += W * Row::groups) {
    const int s = first + Row::number();
    const float square = s < rank ? lengths.square[s] : 0.0f;
    int before = 0;
    for (int j = Row::place(); j < rank; j += kGroup)
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

/// Unit rows in descending order of their lengths, in place; zeros behind. A
/// slice of all rows is in registers at a time.
template <int W, int M, int Rows, int LD>
__device__ __forceinline__ void store_sorted(int m, int rank, double unscale,
                                             float (&rows)[Rows][LD], double (&sigma)[M],
                                             Lengths<M> &lengths) {
  constexpr int width = M % 4 == 0 && LD % 4 == 0 ? 4 : 1, across = 16 / width, threads = W * kLanes;
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
