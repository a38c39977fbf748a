//===- Spectra.h - Matrices with the ranks of a profile ---------*- C++ -*-===//
#ifndef SS_BENCH_SPECTRA_H
#define SS_BENCH_SPECTRA_H

#include "RankProfile.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ss_bench {

/// Matrices of known singular values, as states have them: geometric from 1 on,
/// so that as many as a rank drawn from the profile are at least eps, and on
/// below it down to 1e-6. A dense state has all of them above eps.
struct Spectra {
  Spectra(int32_t dv, int32_t dk, int32_t count, double eps,
          const RankProfile &profile, uint64_t seed);

  int32_t dv, dk, count;
  std::vector<float> columns;         ///< [count, dk, dv], columns of H
  std::vector<float> rows;            ///< [count, dv, dk], the same matrices
  std::vector<double> values;         ///< [count, min(dv, dk)], descending
  std::vector<int32_t> rank;          ///< [count], values of at least eps
  const double *valuesOf(int64_t i) const {
    return values.data() + i * std::min(dv, dk);
  }
};

} // namespace ss_bench

#endif
