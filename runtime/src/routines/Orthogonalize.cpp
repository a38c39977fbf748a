// Pivoted Cholesky of a Gram matrix, with the inverse of its factor: the CPU
// twin of codegen/cuda/device/orthogonalize.cuh.
#include "Levels.h"
#include "RowMatrix.h"

#include "sinkstate/routines.h"

namespace {

/// Residual of a row, relative to its own diagonal, below which the row is
/// dropped, and below which its orthogonality is no longer certain.
constexpr double dropBelow = 1e-13;
constexpr double illBelow = 1e-8;

/// The power of two s with s * s * x in [1, 4) for x > 0, so that scaling is
/// exact.
SS_INLINE double diagonalScale(double x) {
  // Numbers below the normal ones have their exponent in the fraction.
  const bool tiny = x < 0x1p-1022;
  double normal = tiny ? x * 0x1p54 : x;
  uint64_t bits;
  __builtin_memcpy(&bits, &normal, sizeof bits);
  int exponent = (int)(bits >> 52) - 1023 - (tiny ? 54 : 0);
  return powerOfTwo(-(exponent >> 1)); // rounded down, by arithmetic shift
}

typedef int64_t Integers __attribute__((vector_size(64)));
constexpr int64_t never = INT64_MAX;

SS_INLINE Integers broadcastInteger(int64_t x) {
  return Integers{x, x, x, x, x, x, x, x};
}

/// Elements [0, count) of an array, and zeros.
SS_INLINE Vec loadPart(const double *x, int count) {
  Vec part = broadcast(0);
  if (count >= lanes)
    __builtin_memcpy(&part, x, sizeof part);
  else
    for (int i = 0; i < count; ++i)
      part[i] = x[i];
  return part;
}

SS_INLINE void storePart(double *x, Vec part, int count) {
  if (count >= lanes)
    __builtin_memcpy(x, &part, sizeof part);
  else
    for (int i = 0; i < count; ++i)
      x[i] = part[i];
}

/// The scaled Gram matrix, whose columns give way to those of the inverse: once
/// a row has been a pivot, its column of the other rows holds what the inverse
/// has there. A row that was a pivot stays as it was then: the inverse where
/// columns were pivots before it and in its own, the factor elsewhere.
template <int M> struct Elimination {
  static constexpr int width = M / lanes;
  Vec row[M][width];
  Vec residual[width];        ///< what is left of the scaled diagonal
  Vec inverseDiagonal[width]; ///< of the scaled diagonal
  Vec unscale[width];         ///< 1 / scale^2, -1 once the row is used up
  Vec scale[width];           ///< 0: no such row
  Integers index[width];      ///< the columns' numbers
  Integers order[width];      ///< step at which the column became a pivot
  double pivotOf[M];          ///< diagonal of the factor
  int left[M];                ///< rows that are not used up, in any order
  int placeOf[M];             ///< of the row in that list
  int count;                  ///< of these rows
};

/// The scaled matrix, its diagonal in [1, 4). Rows whose diagonal is not
/// positive are zero and used up. Returns whether all elements are finite.
template <int M>
SS_INLINE bool loadScaled(int m, const double *gram, Elimination<M> &e) {
  double *scale = (double *)e.scale, *diagonal = (double *)e.residual;
  int64_t *index = (int64_t *)e.index;
  e.count = 0;
  for (int i = 0; i < M; ++i) {
    diagonal[i] = i < m ? gram[i * m + i] : 0;
    scale[i] = diagonal[i] > 0 ? diagonalScale(diagonal[i]) : 0;
    index[i] = i;
    if (scale[i] != 0) {
      e.placeOf[i] = e.count;
      e.left[e.count++] = i;
    }
  }
  const Vec zero = broadcast(0), one = broadcast(1);
  Vec check[Elimination<M>::width];
  for (int j = 0; j < e.width; ++j) {
    const Vec s = e.scale[j];
    e.residual[j] = e.residual[j] * s * s;
    e.inverseDiagonal[j] = s > zero ? one / e.residual[j] : zero;
    e.unscale[j] = s > zero ? one / s / s : broadcast(-1);
    e.order[j] = broadcastInteger(never);
    check[j] = zero;
  }
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < e.width; ++j) {
      Vec part = loadPart(gram + i * m + j * lanes, m - j * lanes);
      check[j] += part * zero;
      const Vec scaled = part * broadcast(scale[i]) * e.scale[j];
      e.row[i][j] = e.scale[j] > zero ? scaled : zero;
    }
  Vec all = zero;
  for (int j = 0; j < e.width; ++j)
    all += check[j];
  return sumLanes(all) == 0;
}

/// Keys and where they are; of equal ones the first counts.
struct Keyed {
  Vec key;
  Integers index;
};

SS_INLINE Keyed larger(Keyed a, Keyed b) {
  Integers other = (b.key > a.key) | ((b.key == a.key) & (b.index < a.index));
  return {other ? b.key : a.key, other ? b.index : a.index};
}

/// The row with the largest residual of those that are left and independent
/// enough; the first of equal ones, -1 if there is none.
template <int M> SS_INLINE int findPivot(const Elimination<M> &e) {
  Keyed best = {broadcast(-1), e.index[0]};
  for (int j = 0; j < e.width; ++j) {
    Vec size = e.residual[j] * e.unscale[j];
    Vec share = e.residual[j] * e.inverseDiagonal[j];
    Vec key = share >= broadcast(dropBelow) ? size : broadcast(-1);
    Integers other = key > best.key;
    best = {other ? key : best.key, other ? e.index[j] : best.index};
  }
#define SS_FOLD(...)                                                           \
  best = larger(best,                                                          \
                {__builtin_shufflevector(best.key, best.key, __VA_ARGS__),     \
                 __builtin_shufflevector(best.index, best.index, __VA_ARGS__)})
  SS_FOLD(4, 5, 6, 7, 0, 1, 2, 3);
  SS_FOLD(2, 3, 0, 1, 6, 7, 4, 5);
  SS_FOLD(1, 0, 3, 2, 5, 4, 7, 6);
#undef SS_FOLD
  return best.key[0] >= 0 ? (int)best.index[0] : -1;
}

/// Makes the pivot row a unit row and takes its part out of every other row
/// that is left.
template <int M>
SS_INLINE void eliminate(int pivot, int step, Elimination<M> &e) {
  double *pivotRow = (double *)e.row[pivot];
  const double root = 1 / __builtin_sqrt(((double *)e.residual)[pivot]);
  e.pivotOf[pivot] = pivotRow[pivot] * root;
  Vec unit[Elimination<M>::width];
  Integers own[Elimination<M>::width];
  for (int j = 0; j < e.width; ++j) {
    own[j] = e.index[j] == broadcastInteger(pivot);
    unit[j] = e.row[pivot][j] * broadcast(root);
    e.residual[j] -= unit[j] * unit[j];
    e.unscale[j] = own[j] ? broadcast(-1) : e.unscale[j];
    e.order[j] = own[j] ? broadcastInteger(step) : e.order[j];
    unit[j] = own[j] ? broadcast(root) : unit[j];
    e.row[pivot][j] = unit[j];
  }
  const int last = e.left[--e.count], place = e.placeOf[pivot];
  e.left[place] = last;
  e.placeOf[last] = place;
  for (int n = 0; n < e.count; ++n) {
    Vec *row = e.row[e.left[n]];
    Vec l = broadcast(pivotRow[e.left[n]]);
    for (int j = 0; j < e.width; ++j)
      row[j] = (own[j] ? broadcast(0) : row[j]) - l * unit[j];
  }
}

/// Copies T and R out, undoing the scaling. A row has no part in the rows that
/// were pivots before it. Returns whether all elements are finite.
template <int M>
SS_INLINE bool store(int m, const Elimination<M> &e, double *t, double *r) {
  const Vec zero = broadcast(0);
  Vec inverseScale[Elimination<M>::width], check[Elimination<M>::width];
  for (int j = 0; j < e.width; ++j) {
    inverseScale[j] =
        e.scale[j] > zero ? broadcast(1) / e.scale[j] : zero;
    check[j] = zero;
  }
  const int64_t *order = (const int64_t *)e.order;
  for (int i = 0; i < m; ++i) {
    const bool isPivot = order[i] != never;
    const Integers own = broadcastInteger(order[i]);
    for (int j = 0; j < e.width; ++j) {
      const Integers before = e.order[j] <= own;
      Vec x = e.row[i][j] * e.scale[j], y = e.row[i][j] * inverseScale[j];
      x = isPivot ? before ? x : zero : zero;
      y = isPivot ? before ? zero : y : zero;
      check[j] += (x + y) * zero;
      storePart(t + i * m + j * lanes, x, m - j * lanes);
      storePart(r + i * m + j * lanes, y, m - j * lanes);
    }
    const double diagonal =
        isPivot ? e.pivotOf[i] * ((const double *)inverseScale)[i] : 0;
    r[i * m + i] = diagonal;
    check[0][0] += diagonal * 0;
  }
  Vec all = zero;
  for (int j = 0; j < e.width; ++j)
    all += check[j];
  return sumLanes(all) == 0;
}

template <int M> int32_t orthogonalizeFor(int m, double *gram, double *t) {
  int32_t status = 0;
  Elimination<M> e;
  if (loadScaled<M>(m, gram, e)) {
    for (int step = 0; step < m; ++step) {
      int pivot = findPivot<M>(e);
      if (pivot < 0)
        break;
      if (((double *)e.residual)[pivot] *
              ((double *)e.inverseDiagonal)[pivot] <
          illBelow)
        status |= SS_STATUS_ILL_CONDITIONED;
      eliminate<M>(pivot, step, e);
    }
    if (store<M>(m, e, t, gram))
      return status;
  }
  setZero(t, m * m);
  setZero(gram, m * m);
  return SS_STATUS_NOT_FINITE;
}

int32_t dispatch(int32_t m, double *gram, double *t) {
  SS_DISPATCH_SIZE(m, orthogonalizeFor, gram, t);
}

} // namespace

int32_t sinkstate::routines::SS_LEVEL::orthogonalize(int32_t m, double *gram,
                                                     double *t) {
  return dispatch(m, gram, t);
}
