// What both routines share: a matrix whose rows are padded to a compile-time
// number of 8-wide vectors, so that every loop over a row has a fixed trip
// count. Included by sources that are compiled once per instruction-set level;
// everything lives in an unnamed namespace so that the linker cannot mix them.
#ifndef SINKSTATE_RUNTIME_ROUTINES_ROWMATRIX_H
#define SINKSTATE_RUNTIME_ROUTINES_ROWMATRIX_H

#include <stdint.h>

#define SS_INLINE inline __attribute__((always_inline))

namespace {

typedef double Vec __attribute__((vector_size(64)));
constexpr int lanes = 8;

/// Up to M rows of two halves of M columns each: the matrix that is worked on
/// and the one that the same row operations are recorded in.
template <int M> struct RowMatrix {
  static constexpr int half = M / lanes;
  static constexpr int width = 2 * half;
  Vec row[M][width];

  SS_INLINE double *left(int i) { return (double *)row[i]; }
  SS_INLINE double *right(int i) { return (double *)(row[i] + half); }
};

SS_INLINE Vec broadcast(double x) { return Vec{x, x, x, x, x, x, x, x}; }

/// Sum of the lanes, in a fixed tree.
SS_INLINE double sumLanes(Vec x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

SS_INLINE bool isFinite(double x) { return x - x == 0; }

/// 2^e for -1022 <= e <= 1023.
SS_INLINE double powerOfTwo(int e) {
  uint64_t bits = (uint64_t)(e + 1023) << 52;
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

SS_INLINE void setZero(double *x, int n) {
  for (int i = 0; i < n; ++i)
    x[i] = 0;
}

} // namespace

/// Calls FUNCTION<size>(m, ...) with the smallest compiled size that holds m;
/// nothing is to be done for an empty matrix.
#define SS_DISPATCH_SIZE(m, FUNCTION, ...)                                     \
  do {                                                                         \
    if ((m) < 1)                                                               \
      return 0;                                                                \
    if ((m) <= 8)                                                              \
      return FUNCTION<8>(m, __VA_ARGS__);                                      \
    if ((m) <= 16)                                                             \
      return FUNCTION<16>(m, __VA_ARGS__);                                     \
    if ((m) <= 24)                                                             \
      return FUNCTION<24>(m, __VA_ARGS__);                                     \
    if ((m) <= 32)                                                             \
      return FUNCTION<32>(m, __VA_ARGS__);                                     \
    if ((m) <= 48)                                                             \
      return FUNCTION<48>(m, __VA_ARGS__);                                     \
    return FUNCTION<64>(m, __VA_ARGS__);                                       \
  } while (false)

#endif
