// Singular values and left vectors of A from its Gram matrix: the CPU twins of
// codegen/cuda/device/gram_svd.cuh and add_gram.cuh. The Gram matrix lies
// packed in the memory of its vectors-to-be, rows from the diagonal on.
#include "Levels.h"
#include "RowMatrix.h"

#include "sinkstate/routines.h"

namespace {

/// As on the device: the factor ends where what is left of the trace is below
/// this share of the smallest squared weight that is wanted.
constexpr double tail = 4e-3;
/// Cosines that rows may be left with: two that are wanted; one that is and one
/// that is not; two that are not.
constexpr float ofWanted = 2e-6f, ofOne = 1e-3f, ofOthers = 0.1f;
/// And what a wanted row may have of another, relative to the shorter of them:
/// the other side's vectors, which are the product with the matrix, show it so.
constexpr float ofShorter = 3e-4f;
/// When a sweep ends with less than this between wanted rows, and less than
/// that of the least wanted share, it was the last.
constexpr float done = 4e-6f, doneOfShare = 1e-3f;
constexpr float half =
    0.5f; // of the least wanted length: shorter is not wanted
constexpr int maxSweeps = 24;
constexpr int mostRows = SS_GRAM_MOST_ROWS;

typedef float Floats __attribute__((vector_size(64)));
constexpr int floatLanes = 16;
constexpr int mostVectors = mostRows / floatLanes;

/// Columns of A that are added up together.
constexpr int columnsTogether = 16;

/// Where row s of a packed symmetric matrix would begin, were it whole.
SS_INLINE double *rowOf(int m, double *packed, int s) {
  return packed + (s * m - s * (s + 1) / 2);
}

/// Rows of single precision, padded with zeros.
struct Rows {
  Floats row[mostRows][mostVectors];
  float *of(int i) { return (float *)row[i]; }
};

SS_INLINE float sumFloats(Floats x) {
  float sum[8];
  for (int i = 0; i < 8; ++i)
    sum[i] = x[i] + x[i + 8];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
         ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

SS_INLINE void setZero(Floats &x) {
  for (int i = 0; i < floatLanes; ++i)
    x[i] = 0;
}

/// A lower bound of the largest eigenvalue: the mean eigenvalue, weighted with
/// the eigenvalues, or the largest diagonal. `finite`: whether all elements
/// are.
SS_INLINE double leastLargest(int m, double *packed, bool &finite) {
  double squares = 0, diagonal = 0, trace = 0, largest = 0;
  for (int at = 0; at < m * (m + 1) / 2; ++at)
    squares += packed[at] * packed[at];
  for (int i = 0; i < m; ++i) {
    const double x = rowOf(m, packed, i)[i];
    trace += x;
    diagonal += x * x;
    largest = x > largest ? x : largest;
  }
  const double square = 2 * squares - diagonal;
  finite = isFinite(square) && isFinite(trace);
  const double mean = trace > 0 ? square / trace : 0;
  return mean > largest ? mean : largest;
}

/// The index of the largest residual, -1 if none is positive; and their sum.
SS_INLINE int findPivot(int m, const double *residual, double &trace) {
  int pivot = -1;
  trace = 0;
  for (int i = 0; i < m; ++i) {
    trace += residual[i] > 0 ? residual[i] : 0;
    if (residual[i] > 0 && (pivot < 0 || residual[i] > residual[pivot]))
      pivot = i;
  }
  return pivot;
}

SS_INLINE void swap(double &x, double &y) {
  const double before = x;
  x = y;
  y = before;
}

/// Columns in places `step` and p (behind it) change them: in the rows of the
/// factor above, and in what the matrix has behind.
SS_INLINE void exchangePlaces(int m, int step, int p, double *packed) {
  for (int s = 0; s < step; ++s)
    swap(rowOf(m, packed, s)[step], rowOf(m, packed, s)[p]);
  double *top = rowOf(m, packed, step);
  for (int q = step + 1; q < p; ++q)
    swap(top[q], rowOf(m, packed, q)[p]);
  for (int q = p + 1; q < m; ++q)
    swap(top[q], rowOf(m, packed, p)[q]);
}

/// The packed matrix becomes P^T L^T L P up to `limit` in the trace: L's rows
/// where its own were. places: which column is in each. Returns how many rows.
SS_INLINE int factorize(int m, double *packed, double limit, int *places) {
  double residual[mostRows]; // negative: has been the pivot
  for (int i = 0; i < m; ++i) {
    residual[i] = rowOf(m, packed, i)[i];
    places[i] = i;
  }
  for (int step = 0; step < m; ++step) {
    double trace;
    const int p = findPivot(m, residual, trace);
    if (p < 0 || trace <= limit)
      return step;
    const double pivot = residual[p], inverse = 1 / __builtin_sqrt(pivot);
    if (p != step) {
      exchangePlaces(m, step, p, packed);
      const int column = places[p];
      places[p] = places[step], places[step] = column;
      residual[p] = residual[step];
    }
    residual[step] = -1;
    double *row = rowOf(m, packed, step);
    for (int s = 0; s < step; ++s) {
      const double *above = rowOf(m, packed, s);
      const double factor = above[step];
      for (int q = step + 1; q < m; ++q)
        row[q] -= factor * above[q];
    }
    row[step] = pivot * inverse;
    for (int q = step + 1; q < m; ++q) {
      row[q] *= inverse;
      const double left = residual[q] - row[q] * row[q];
      residual[q] = left > 0 ? left : 0;
    }
  }
  return m;
}

/// The rows of the factor, scaled, with columns in their own places again.
SS_INLINE void narrowRows(int m, int rank, double scale, double *packed,
                          const int *places, Rows &rows) {
  for (int s = 0; s < rank; ++s) {
    for (int i = 0; i < mostVectors; ++i)
      setZero(rows.row[s][i]);
    for (int q = s; q < m; ++q)
      rows.of(s)[places[q]] = (float)(rowOf(m, packed, s)[q] * scale);
  }
}

/// What the rotations of a sweep were like, squared: the largest cosine, and
/// the largest share of one row that was mixed into another, relative to the
/// other's length; between wanted rows, and between a wanted one (into it) and
/// another.
struct SweepMaximum {
  float cosine = 0, mixing = 0, cosineOfOne = 0, mixingOfOne = 0;
};

SS_INLINE float smaller(float x, float y) { return x < y ? x : y; }
SS_INLINE float larger(float x, float y) { return x > y ? x : y; }

/// Makes two rows of squared lengths p and q orthogonal. Those shorter than
/// `least`, squared, are not wanted.
SS_INLINE void rotate(int vectors, Floats *x, Floats *y, float &p, float &q,
                      float least, SweepMaximum &seen) {
  Floats dots;
  setZero(dots);
  for (int i = 0; i < vectors; ++i)
    dots += x[i] * y[i];
  const float d = sumFloats(dots);
  const bool both = p >= least && q >= least, none = p < least && q < least;
  const float ofShort = ofShorter * (p < q ? p : q);
  const float allowed =
      both   ? smaller(ofWanted * ofWanted * p * q, ofShort * ofShort)
      : none ? ofOthers * ofOthers * p * q
             : ofOne * ofOne * p * q;
  if (!(d * d > allowed))
    return;
  const float delta = q - p, twice = 2 * d;
  const float root = __builtin_sqrtf(delta * delta + twice * twice);
  const float t = twice / (delta + __builtin_copysignf(root, delta));
  const float c = 1 / __builtin_sqrtf(1 + t * t), s = c * t;
  const float share = 1 / (p * q), cosine = d * d * share;
  const float from = (p > q) == both ? p : q;
  const float mixing = t * from * (t * from) * share;
  if (both) {
    seen.cosine = larger(cosine, seen.cosine);
    seen.mixing = larger(mixing, seen.mixing);
  } else if (!none) {
    seen.cosineOfOne = larger(cosine, seen.cosineOfOne);
    seen.mixingOfOne = larger(mixing, seen.mixingOfOne);
  }
  p -= t * d;
  q += t * d;
  for (int i = 0; i < vectors; ++i) {
    const Floats before = x[i];
    x[i] = c * before - s * y[i];
    y[i] = s * before + c * y[i];
  }
}

/// The players of a game in a round of a round robin of n (even), p < q.
SS_INLINE void playersOf(int round, int game, int n, int &p, int &q) {
  const int a = game == 0 ? 0 : 1 + (game - 1 + round) % (n - 1);
  const int b = 1 + (n - 2 - game + round) % (n - 1);
  p = a < b ? a : b;
  q = a < b ? b : a;
}

SS_INLINE float squaredLength(int vectors, const Floats *x) {
  Floats squares;
  setZero(squares);
  for (int i = 0; i < vectors; ++i)
    squares += x[i] * x[i];
  return sumFloats(squares);
}

/// Makes the rows orthogonal to each other; those of a squared length below
/// `least` are not wanted. Returns status bits. Games of one round depend on
/// nothing of each other: a processor overlaps them.
SS_INLINE int jacobi(int m, int rank, float least, float share, Rows &rows) {
  const int vectors = (m + floatLanes - 1) / floatLanes;
  const int n = (rank + 1) & ~1;
  const float ended = smaller(done, doneOfShare * share);
  float length[mostRows];
  for (int sweep = 0; sweep < maxSweeps; ++sweep) {
    for (int i = 0; i < rank; ++i)
      length[i] = squaredLength(vectors, rows.row[i]);
    SweepMaximum seen;
    for (int round = 0; round < n - 1; ++round)
      for (int game = 0; game < n / 2; ++game) {
        int p, q;
        playersOf(round, game, n, p, q);
        if (q < rank)
          rotate(vectors, rows.row[p], rows.row[q], length[p], length[q], least,
                 seen);
      }
    // After a pair is made orthogonal the rest of the sweep brings back at most
    // so much: in all between wanted rows, by one other row at a time.
    const float one = larger(seen.cosineOfOne, ofOne * ofOne);
    if (seen.cosine * seen.mixing * (float)(n * n) <= ended * ended &&
        seen.mixingOfOne * one <= ended * ended)
      return 0;
  }
  return SS_STATUS_NOT_CONVERGED;
}

/// Unit rows in descending order of their lengths; sigma their lengths,
/// unscaled.
SS_INLINE void storeSorted(int m, int rank, double unscale, Rows &rows,
                           float *vectors, double *sigma) {
  float length[mostRows];
  for (int i = 0; i < rank; ++i)
    length[i] = __builtin_sqrtf(squaredLength(mostVectors, rows.row[i]));
  for (int at = 0; at < m * m; ++at)
    vectors[at] = 0;
  setZero(sigma, m);
  for (int i = 0; i < rank; ++i) {
    int place = 0;
    for (int j = 0; j < rank; ++j)
      place += length[j] > length[i] || (length[j] == length[i] && j < i);
    sigma[place] = length[i] * unscale;
    for (int j = 0; j < m; ++j)
      vectors[place * m + j] = rows.of(i)[j] / length[i];
  }
}

/// e with x = f 2^e, f in [0.5, 1), of a positive number that is not a
/// denormal.
SS_INLINE int binaryExponent(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return (int)((bits >> 52) & 0x7ff) - 1022;
}

} // namespace

int32_t sinkstate::routines::SS_LEVEL::addGram(int32_t m, int32_t width,
                                               int32_t columnsAreRows,
                                               int32_t isFirst, float *chunk,
                                               float *vectors) {
  double *packed = (double *)vectors;
  double columns[columnsTogether][mostRows];
  for (int first = 0; first < width; first += columnsTogether) {
    for (int k = 0; k < columnsTogether; ++k)
      for (int i = 0; i < m; ++i)
        columns[k][i] = first + k >= width ? 0
                        : columnsAreRows   ? chunk[(first + k) * m + i]
                                           : chunk[i * width + first + k];
    const bool isEmpty = isFirst && first == 0;
    for (int i = 0; i < m; ++i) {
      double *row = rowOf(m, packed, i);
      for (int j = i; j < m; ++j) {
        double sum = isEmpty ? 0 : row[j];
        for (int k = 0; k < columnsTogether; ++k)
          sum += columns[k][i] * columns[k][j];
        row[j] = sum;
      }
    }
  }
  return 0;
}

int32_t sinkstate::routines::SS_LEVEL::gramSvd(int32_t m, float *vectors,
                                               double *sigma, double *,
                                               double share) {
  double *packed = (double *)vectors;
  bool finite;
  const double least = leastLargest(m, packed, finite);
  Rows rows;
  if (!finite || !(least > 0)) {
    storeSorted(m, 0, 1, rows, vectors, sigma);
    return finite ? 0 : SS_STATUS_NOT_FINITE;
  }
  int places[mostRows];
  const int rank = factorize(m, packed, tail * share * share * least, places);
  const int exponent = binaryExponent(least) >> 1;
  const double scale = powerOfTwo(-exponent);
  narrowRows(m, rank, scale, packed, places, rows);
  const double wanted = half * share * scale;
  const int status = rank > 1
                         ? jacobi(m, rank, (float)(wanted * wanted * least),
                                  (float)share, rows)
                         : 0;
  storeSorted(m, rank, powerOfTwo(exponent), rows, vectors, sigma);
  return status;
}
