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

/// Left half: the Gram matrix scaled to a diagonal in [1, 4); right half:
/// identity. Rows whose diagonal is not positive stay zero and are not alive.
template <int M>
SS_INLINE void loadScaled(int m, const double *gram, RowMatrix<M> &work,
                          double *scale, double *inverseDiagonal) {
  for (int i = 0; i < M; ++i) {
    double d = i < m ? gram[i * m + i] : 0;
    scale[i] = d > 0 ? diagonalScale(d) : 0;
    inverseDiagonal[i] = d > 0 ? 1 / (d * scale[i] * scale[i]) : 0;
    for (int j = 0; j < work.width; ++j)
      work.row[i][j] = broadcast(0);
  }
  for (int i = 0; i < m; ++i) {
    if (scale[i] == 0)
      continue;
    double *row = work.left(i);
    for (int j = 0; j < m; ++j)
      row[j] = scale[j] == 0 ? 0 : gram[i * m + j] * scale[i] * scale[j];
    work.right(i)[i] = 1;
  }
}

/// row_i -= row_i[pivot] / |pivot row| * unit pivot row, for every other row
/// that is alive.
template <int M>
SS_INLINE void eliminate(int m, int pivot, const bool *alive,
                         RowMatrix<M> &work) {
  Vec *unit = work.row[pivot];
  double residual = work.left(pivot)[pivot];
  Vec inverse = broadcast(1 / __builtin_sqrt(residual));
  for (int j = 0; j < work.width; ++j)
    unit[j] *= inverse;
  const double *coefficient = work.left(pivot);
  for (int i = 0; i < m; ++i) {
    if (!alive[i])
      continue;
    Vec l = broadcast(coefficient[i]);
    for (int j = 0; j < work.width; ++j)
      work.row[i][j] -= l * unit[j];
  }
}

/// Copies the kept rows of the right half out, undoing the scaling.
template <int M>
SS_INLINE bool storeKept(int m, const bool *kept, const double *scale,
                         RowMatrix<M> &work, double *t) {
  double check = 0;
  for (int i = 0; i < m; ++i) {
    const double *row = work.right(i);
    for (int j = 0; j < m; ++j) {
      double x = kept[i] ? row[j] * scale[j] : 0;
      t[i * m + j] = x;
      check += x * 0;
    }
  }
  return check == 0;
}

template <int M> int32_t orthogonalizeFor(int m, double *gram, double *t) {
  double check = 0;
  for (int i = 0; i < m * m; ++i)
    check += gram[i] * 0;
  if (check != 0) {
    setZero(t, m * m);
    return SS_STATUS_NOT_FINITE;
  }
  RowMatrix<M> work;
  double scale[M], inverseDiagonal[M];
  bool alive[M], kept[M];
  loadScaled<M>(m, gram, work, scale, inverseDiagonal);
  for (int i = 0; i < M; ++i) {
    alive[i] = scale[i] != 0;
    kept[i] = false;
  }
  int32_t status = 0;
  for (int step = 0; step < m; ++step) {
    int pivot = -1;
    double best = dropBelow;
    for (int i = 0; i < m; ++i) {
      double residual = work.left(i)[i] * inverseDiagonal[i];
      if (alive[i] && residual >= best && (pivot < 0 || residual > best)) {
        best = residual;
        pivot = i;
      }
    }
    if (pivot < 0)
      break;
    if (best < illBelow)
      status |= SS_STATUS_ILL_CONDITIONED;
    alive[pivot] = false;
    kept[pivot] = true;
    eliminate<M>(m, pivot, alive, work);
  }
  if (storeKept<M>(m, kept, scale, work, t))
    return status;
  setZero(t, m * m);
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
