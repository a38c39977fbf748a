//===- InitCheck.h - Factors against known matrices -------------*- C++ -*-===//
#ifndef SS_BENCH_INITCHECK_H
#define SS_BENCH_INITCHECK_H

#include "InitBench.h"
#include "Spectra.h"

#include "package/Manifest.h"

#include <vector>

namespace ss_bench {

/// States whose factors are multiplied out again.
constexpr int64_t kMultiplied = 128;

/// What an init kernel wrote for `chunk` states, the first of which are those
/// of a Spectra.
struct FoundStates {
  int32_t chunk = 0, most = 0;        ///< components a state has room for
  std::vector<int32_t> ranks, status; ///< [chunk]
  std::vector<float> weights;         ///< [states of the Spectra, most]
  std::vector<float> rows; ///< [kMultiplied at least, or all; most, dk + dv]
};

/// Whether an init kernel may give a matrix of these singular values the rank
/// `found`: as many as are kept, give or take those within 1e-3 of the line, or
/// -1 where more than `most`, which it may keep, lie above the line
/// (sinkstate/routines.h).
bool isRightRank(const double *values, int32_t side, int32_t most, double eps,
                 int32_t found);

/// Counts what is right, and how far off weights and products are.
void checkInit(const Spectra &spectra,
               const sinkstate::runtime::LayerManifest &layer, double eps,
               const FoundStates &found, InitResult &result);

} // namespace ss_bench

#endif
