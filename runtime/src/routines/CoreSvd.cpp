// Singular value decomposition of a small core: pivoted Householder QR, then
// one-sided Jacobi on the rows of the triangular factor. The CPU twin of
// codegen/cuda/device/core_svd.cuh.
//
// Every step is a row operation, recorded in the right half of the work rows:
// C = Q R, the rotations J make the rows of J R orthogonal, so C = (Q J^T)
// diag(sigma) Y^T with the left vectors in the right half, (Q J^T)^T = J Q^T,
// and sigma_i y_i in the left. Both sides are orthonormal to rounding whatever
// sigma is: one is a product of rotations, the other a normalisation of rows
// that the rotations made orthogonal relative to their own norms.
#include "Levels.h"
#include "RowMatrix.h"

#include "sinkstate/routines.h"

namespace {

/// Rows whose norm is below this share of the matrix's are rounding noise of
/// the QR and count as zero.
constexpr double rankTolerance = 0x1p-50;
constexpr int maxSweeps = 30;

/// Reads c scaled so that its largest element is in [0.5, 1) into the left
/// half, identity into the right. Returns false if c has NaN or inf. exponent:
/// what sigma has to be multiplied with, as a power of two.
template <int M>
SS_INLINE bool loadScaled(int m, const double *c, RowMatrix<M> &work,
                          int &exponent) {
  double check = 0, largest = 0;
  for (int i = 0; i < m * m; ++i) {
    check += c[i] * 0;
    double a = __builtin_fabs(c[i]);
    largest = a > largest ? a : largest;
  }
  if (check != 0)
    return false;
  (void)__builtin_frexp(largest, &exponent);
  // Two factors: the exponents of doubles span more than one can hold.
  int half = exponent / 2;
  double scale0 = powerOfTwo(-half), scale1 = powerOfTwo(half - exponent);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < work.width; ++j)
      work.row[i][j] = broadcast(0);
    double *row = work.left(i);
    for (int j = 0; j < m; ++j)
      row[j] = c[i * m + j] * scale0 * scale1;
    work.right(i)[i] = 1;
  }
  return true;
}

/// Squared norms of the columns of the left half.
template <int M>
SS_INLINE void columnNorms(int m, const RowMatrix<M> &work, Vec *norms) {
  for (int j = 0; j < work.half; ++j)
    norms[j] = broadcast(0);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < work.half; ++j)
      norms[j] += work.row[i][j] * work.row[i][j];
}

/// Applies the Householder reflection that clears column `pivot` below row k;
/// norms: what columnNorms would find in the rows below k.
template <int M>
SS_INLINE void reflect(int m, int k, int pivot, RowMatrix<M> &work,
                       Vec *norms) {
  constexpr int half = RowMatrix<M>::half, width = RowMatrix<M>::width;
  double v[M], square = 0;
  for (int i = k; i < m; ++i) {
    v[i] = work.left(i)[pivot];
    square += v[i] * v[i];
  }
  double norm = __builtin_sqrt(square);
  double diagonal = v[k] >= 0 ? -norm : norm;
  v[k] -= diagonal;
  Vec w[width];
  for (int j = 0; j < width; ++j)
    w[j] = broadcast(v[k]) * work.row[k][j];
  for (int i = k + 1; i < m; ++i)
    for (int j = 0; j < width; ++j)
      w[j] += broadcast(v[i]) * work.row[i][j];
  Vec factor = broadcast(1 / (-diagonal * v[k]));
  for (int j = 0; j < width; ++j) {
    w[j] *= factor;
    work.row[k][j] -= broadcast(v[k]) * w[j];
  }
  work.left(k)[pivot] = diagonal;
  for (int j = 0; j < half; ++j)
    norms[j] = broadcast(0);
  for (int i = k + 1; i < m; ++i) {
    for (int j = 0; j < width; ++j) {
      Vec x = work.row[i][j] - broadcast(v[i]) * w[j];
      work.row[i][j] = x;
      if (j < half)
        norms[j] += x * x;
    }
    work.left(i)[pivot] = 0;
  }
}

/// The first column of the largest norm.
template <int M> SS_INLINE int findPivot(const Vec *norms) {
  typedef int64_t Index __attribute__((vector_size(64)));
  Vec best = norms[0];
  Index block = {};
  for (int j = 1; j < RowMatrix<M>::half; ++j) {
    Index larger = norms[j] > best;
    block = larger ? Index{} + j : block;
    best = larger ? norms[j] : best;
  }
  int pivot = int(block[0]) * lanes;
  double largest = best[0];
  for (int i = 1; i < lanes; ++i) {
    bool larger = best[i] > largest;
    pivot = larger ? int(block[i]) * lanes + i : pivot;
    largest = larger ? best[i] : largest;
  }
  return pivot;
}

/// QR with column pivoting; columns stay where they are. Returns the numeric
/// rank: the left half of the rows from there on is to be taken as zero.
template <int M> SS_INLINE int pivotedQr(int m, RowMatrix<M> &work) {
  constexpr int half = RowMatrix<M>::half;
  Vec norms[half], free[half];
  for (int j = 0; j < half; ++j)
    free[j] = broadcast(1);
  columnNorms<M>(m, work, norms);
  double tolerance = 0;
  for (int k = 0; k < m; ++k) {
    Vec sum = broadcast(0);
    for (int j = 0; j < half; ++j) {
      norms[j] *= free[j];
      sum += norms[j];
    }
    double total = sumLanes(sum);
    if (k == 0)
      tolerance = total * rankTolerance * rankTolerance;
    if (total <= tolerance)
      return k;
    int pivot = findPivot<M>(norms);
    ((double *)free)[pivot] = 0;
    reflect<M>(m, k, pivot, work, norms);
  }
  return m;
}

/// Lane j of the result is the sum of the lanes of x[j].
SS_INLINE Vec sumEach(const Vec *x) {
  Vec a[4], b[2];
  for (int i = 0; i < 4; ++i)
    a[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 8, 2, 10, 4, 12,
                                   6, 14) +
           __builtin_shufflevector(x[2 * i], x[2 * i + 1], 1, 9, 3, 11, 5, 13,
                                   7, 15);
  for (int i = 0; i < 2; ++i)
    b[i] = __builtin_shufflevector(a[2 * i], a[2 * i + 1], 0, 1, 8, 9, 4, 5, 12,
                                   13) +
           __builtin_shufflevector(a[2 * i], a[2 * i + 1], 2, 3, 10, 11, 6, 7,
                                   14, 15);
  return __builtin_shufflevector(b[0], b[1], 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(b[0], b[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

/// What a sweep saw: the largest squared cosine between two rows, and the
/// largest squared share of one row that a rotation mixed into another,
/// relative to the other's norm.
struct SweepMaximum {
  double cosine[lanes];
  double mixing[lanes];
};

/// Eight disjoint pairs of rows: their dot products and squared norms in,
/// sines and cosines out (0 and 1 where the pair is orthogonal), norms updated.
struct Rotations {
  alignas(64) double dot[lanes];
  alignas(64) double normP[lanes];
  alignas(64) double normQ[lanes];
  alignas(64) double sine[lanes];
  alignas(64) double cosine[lanes];
};

SS_INLINE void findRotations(Rotations &r, double tolerance, SweepMaximum &seen) {
  for (int j = 0; j < lanes; ++j) {
    double d = r.dot[j], p = r.normP[j], q = r.normQ[j];
    double product = p * q;
    double inverse = product > 0 ? 1 / product : 0;
    double cosine = d * d * inverse;
    double delta = q - p;
    double h = __builtin_sqrt(delta * delta + 4 * d * d);
    double t = 2 * d / (delta + __builtin_copysign(h, delta));
    bool rotate = cosine > tolerance;
    t = rotate ? t : 0;
    double larger = p > q ? p : q;
    double mixing = t * t * larger * larger * inverse;
    seen.cosine[j] = cosine > seen.cosine[j] ? cosine : seen.cosine[j];
    seen.mixing[j] = mixing > seen.mixing[j] ? mixing : seen.mixing[j];
    double c = 1 / __builtin_sqrt(1 + t * t);
    r.cosine[j] = c;
    r.sine[j] = c * t;
    r.normP[j] = p - t * d;
    r.normQ[j] = q + t * d;
  }
}

template <int M>
SS_INLINE void rotate(RowMatrix<M> &work, int p, int q, double cosine,
                      double sine) {
  Vec c = broadcast(cosine), s = broadcast(sine);
  for (int j = 0; j < work.width; ++j) {
    Vec x = work.row[p][j], y = work.row[q][j];
    work.row[p][j] = c * x - s * y;
    work.row[q][j] = s * x + c * y;
  }
}

/// The players of game `pair` in round `round` of a round robin of n (even).
SS_INLINE void playersOf(int round, int pair, int n, int &p, int &q) {
  auto seat = [&](int i) {
    if (i == 0)
      return 0;
    int s = i - 1 + round;
    return 1 + (s >= n - 1 ? s - (n - 1) : s);
  };
  int a = seat(pair), b = seat(n - 1 - pair);
  p = a < b ? a : b;
  q = a < b ? b : a;
}

/// Rotates up to eight disjoint pairs of one round.
template <int M>
SS_INLINE void rotatePairs(RowMatrix<M> &work, double *norm, int round,
                           int first, int count, int n, double tolerance,
                           SweepMaximum &seen) {
  int p[lanes], q[lanes];
  Vec partial[lanes];
  Rotations r;
  for (int j = 0; j < lanes; ++j) {
    partial[j] = broadcast(0);
    r.normP[j] = r.normQ[j] = 0;
    if (j >= count)
      continue;
    playersOf(round, first + j, n, p[j], q[j]);
    r.normP[j] = norm[p[j]];
    r.normQ[j] = norm[q[j]];
    for (int k = 0; k < work.half; ++k)
      partial[j] += work.row[p[j]][k] * work.row[q[j]][k];
  }
  Vec dots = sumEach(partial);
  __builtin_memcpy(r.dot, &dots, sizeof dots);
  findRotations(r, tolerance, seen);
  for (int j = 0; j < count; ++j) {
    if (r.sine[j] == 0)
      continue;
    norm[p[j]] = r.normP[j];
    norm[q[j]] = r.normQ[j];
    rotate<M>(work, p[j], q[j], r.cosine[j], r.sine[j]);
  }
}

template <int M> SS_INLINE double rowNorm(const RowMatrix<M> &work, int i) {
  Vec sum = broadcast(0);
  for (int k = 0; k < work.half; ++k)
    sum += work.row[i][k] * work.row[i][k];
  return sumLanes(sum);
}

/// Makes the first n rows (n even) of the left half orthogonal to each other.
/// Returns status bits.
template <int M> SS_INLINE int32_t jacobi(RowMatrix<M> &work, int n) {
  // Cosines below a few roundings of a dot product are noise.
  constexpr double cosineBelow = 4e-16 * (M <= 16 ? 4 : M <= 36 ? 6 : 8);
  constexpr double tolerance = cosineBelow * cosineBelow;
  for (int sweep = 0; sweep < maxSweeps; ++sweep) {
    double norm[M];
    for (int i = 0; i < n; ++i)
      norm[i] = rowNorm<M>(work, i);
    SweepMaximum seen = {};
    for (int round = 0; round < n - 1; ++round)
      for (int first = 0; first < n / 2; first += lanes) {
        int count = n / 2 - first < lanes ? n / 2 - first : lanes;
        rotatePairs<M>(work, norm, round, first, count, n, tolerance, seen);
      }
    double cosine = 0, mixing = 0;
    for (int j = 0; j < lanes; ++j) {
      cosine = seen.cosine[j] > cosine ? seen.cosine[j] : cosine;
      mixing = seen.mixing[j] > mixing ? seen.mixing[j] : mixing;
    }
    if (cosine <= tolerance)
      return 0;
    // After a pair is made orthogonal, the rotations of the rest of the sweep
    // bring back at most n * mixing * cosine: often that is already nothing.
    if (cosine * mixing * n * n <= 1e-13 * 1e-13)
      return 0;
  }
  return SS_STATUS_NOT_CONVERGED;
}

/// Writes sigma, xt and yt in descending order of sigma; rows from `rank` on
/// and rows of norm zero are zero.
template <int M>
SS_INLINE void storeSorted(int m, int rank, int exponent, RowMatrix<M> &work,
                           double *xt, double *sigma, double *yt) {
  double norm[M];
  int order[M];
  int found = 0;
  for (int i = 0; i < rank; ++i) {
    double s = __builtin_sqrt(rowNorm<M>(work, i));
    if (!(s > 0))
      continue;
    int place = found++;
    for (; place > 0 && norm[place - 1] < s; --place) {
      norm[place] = norm[place - 1];
      order[place] = order[place - 1];
    }
    norm[place] = s;
    order[place] = i;
  }
  int half = exponent / 2;
  double scale0 = powerOfTwo(half), scale1 = powerOfTwo(exponent - half);
  for (int i = 0; i < m; ++i) {
    double *x = xt + i * m, *y = yt + i * m;
    if (i >= found) {
      sigma[i] = 0;
      setZero(x, m);
      setZero(y, m);
      continue;
    }
    const double *left = work.left(order[i]), *right = work.right(order[i]);
    double inverse = 1 / norm[i];
    sigma[i] = norm[i] * scale0 * scale1;
    for (int j = 0; j < m; ++j) {
      x[j] = right[j];
      y[j] = left[j] * inverse;
    }
  }
}

int32_t storeNothing(int m, double *xt, double *sigma, double *yt) {
  setZero(xt, m * m);
  setZero(sigma, m);
  setZero(yt, m * m);
  return SS_STATUS_NOT_FINITE;
}

template <int M>
int32_t coreSvdFor(int m, double *c, double *xt, double *sigma, double *yt) {
  RowMatrix<M> work;
  int exponent = 0;
  if (!loadScaled<M>(m, c, work, exponent))
    return storeNothing(m, xt, sigma, yt);
  int rank = pivotedQr<M>(m, work);
  // An odd number of rows plays against a row of zeros, never rotated.
  int players = rank;
  if (rank % 2 == 1)
    for (Vec &x : work.row[players++])
      x = broadcast(0);
  int32_t status = rank > 1 ? jacobi<M>(work, players) : 0;
  storeSorted<M>(m, rank, exponent, work, xt, sigma, yt);
  if (!isFinite(sigma[0]))
    return storeNothing(m, xt, sigma, yt);
  return status;
}

int32_t dispatch(int32_t m, double *c, double *xt, double *sigma, double *yt) {
  SS_DISPATCH_SIZE(m, coreSvdFor, c, xt, sigma, yt);
}

} // namespace

int32_t sinkstate::routines::SS_LEVEL::coreSvd(int32_t m, double *c, double *xt,
                                               double *sigma, double *yt) {
  return dispatch(m, c, xt, sigma, yt);
}
