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

/// The power of two s with s * s * x in [1, 4), so that scaling is exact.
SS_INLINE double diagonalScale(double x) {
  int e;
  (void)__builtin_frexp(x, &e);
  // x = f * 2^e with f in [0.5, 1); floor((e - 1) / 2) by arithmetic shift.
  return powerOfTwo(-((e - 1) >> 1));
}

/// What is known about every row, which is also a column.
template <int M> struct Rows {
  static constexpr int width = M / lanes;
  union {
    Vec residualVec[width];
    double residual[M]; ///< what is left of the scaled diagonal
  };
  union {
    Vec inverseDiagonalVec[width];
    double inverseDiagonal[M]; ///< of the scaled diagonal
  };
  union {
    Vec unscaleVec[width];
    double unscale[M]; ///< 1 / scale^2, -1 once the row is used up
  };
  double scale[M];  ///< 0: no such row
  int64_t order[M]; ///< step at which the row became a pivot
};

constexpr int64_t never = INT64_MAX;

/// Left half: the Gram matrix scaled to a diagonal in [1, 4); right half:
/// identity. Rows whose diagonal is not positive are zero and used up.
template <int M>
SS_INLINE void loadScaled(int m, const double *gram, RowMatrix<M> &work,
                          Rows<M> &rows) {
  for (int i = 0; i < M; ++i) {
    double d = i < m ? gram[i * m + i] : 0;
    double s = d > 0 ? diagonalScale(d) : 0;
    rows.scale[i] = s;
    rows.residual[i] = d * s * s;
    rows.inverseDiagonal[i] = d > 0 ? 1 / (d * s * s) : 0;
    rows.unscale[i] = d > 0 ? 1 / s / s : -1;
    rows.order[i] = never;
    for (int j = 0; j < work.width; ++j)
      work.row[i][j] = broadcast(0);
  }
  for (int i = 0; i < m; ++i) {
    if (rows.scale[i] == 0)
      continue;
    double *row = work.left(i);
    for (int j = 0; j < m; ++j)
      row[j] = rows.scale[j] == 0
                   ? 0
                   : gram[i * m + j] * rows.scale[i] * rows.scale[j];
    work.right(i)[i] = 1;
  }
}

/// The row with the largest residual of those that are left and independent
/// enough; the first of equal ones, -1 if there is none.
template <int M> SS_INLINE int findPivot(const Rows<M> &rows) {
  union {
    Vec vec[Rows<M>::width];
    double element[M];
  } key;
  Vec best = broadcast(-1);
  for (int j = 0; j < Rows<M>::width; ++j) {
    Vec size = rows.residualVec[j] * rows.unscaleVec[j];
    Vec share = rows.residualVec[j] * rows.inverseDiagonalVec[j];
    key.vec[j] = share >= broadcast(dropBelow) ? size : broadcast(-1);
    best = key.vec[j] > best ? key.vec[j] : best;
  }
  double largest = best[0];
  for (int l = 1; l < lanes; ++l)
    largest = best[l] > largest ? best[l] : largest;
  if (!(largest >= 0))
    return -1;
  int pivot = 0;
  while (key.element[pivot] != largest)
    ++pivot;
  return pivot;
}

/// Makes the pivot row a unit row and takes its part out of every other row
/// that is left.
template <int M>
SS_INLINE void eliminate(int m, int pivot, RowMatrix<M> &work, Rows<M> &rows) {
  Vec unit[RowMatrix<M>::width];
  Vec inverse = broadcast(1 / __builtin_sqrt(rows.residual[pivot]));
  for (int j = 0; j < work.width; ++j)
    work.row[pivot][j] = unit[j] = work.row[pivot][j] * inverse;
  for (int j = 0; j < rows.width; ++j)
    rows.residualVec[j] -= unit[j] * unit[j];
  const double *coefficient = work.left(pivot);
  for (int i = 0; i < m; ++i) {
    if (!(rows.unscale[i] > 0))
      continue;
    Vec l = broadcast(coefficient[i]);
    for (int j = 0; j < work.width; ++j)
      work.row[i][j] -= l * unit[j];
  }
}

/// Copies T and R out, undoing the scaling. A row has no part in the rows that
/// were pivots before it.
template <int M>
SS_INLINE bool store(int m, const Rows<M> &rows, RowMatrix<M> &work, double *t,
                     double *r) {
  double check = 0;
  double inverseScale[M];
  for (int j = 0; j < m; ++j)
    inverseScale[j] = rows.scale[j] == 0 ? 0 : 1 / rows.scale[j];
  for (int i = 0; i < m; ++i) {
    const double *left = work.left(i), *right = work.right(i);
    int64_t order = rows.order[i];
    for (int j = 0; j < m; ++j) {
      double x = order == never ? 0 : right[j] * rows.scale[j];
      double y = order == never || rows.order[j] < order
                     ? 0
                     : left[j] * inverseScale[j];
      t[i * m + j] = x;
      r[i * m + j] = y;
      check += (x + y) * 0;
    }
  }
  return check == 0;
}

template <int M> int32_t orthogonalizeFor(int m, double *gram, double *t) {
  double check = 0;
  for (int i = 0; i < m * m; ++i)
    check += gram[i] * 0;
  int32_t status = 0;
  if (check == 0) {
    RowMatrix<M> work;
    Rows<M> rows;
    loadScaled<M>(m, gram, work, rows);
    for (int step = 0; step < m; ++step) {
      int pivot = findPivot<M>(rows);
      if (pivot < 0)
        break;
      if (rows.residual[pivot] * rows.inverseDiagonal[pivot] < illBelow)
        status |= SS_STATUS_ILL_CONDITIONED;
      rows.unscale[pivot] = -1;
      rows.order[pivot] = step;
      eliminate<M>(m, pivot, work, rows);
    }
    if (store<M>(m, rows, work, t, gram))
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
