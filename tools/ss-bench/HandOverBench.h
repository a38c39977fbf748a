//===- HandOverBench.h - Sizes and times of hand-over -----------*- C++ -*-===//
#ifndef SS_BENCH_HANDOVERBENCH_H
#define SS_BENCH_HANDOVERBENCH_H

#include "HandOverOptions.h"
#include "RankProfile.h"

#include <string>

namespace ss_bench {

/// One request whose states have the ranks of a profile and half-full buffers.
struct HandOverResult {
  std::string package, profile, device;
  int32_t layers = 0;
  double meanRank = 0, denseShare = 0; ///< of those in factors; of all
  int64_t snapshotBytes = 0;
  int64_t denseBytes = 0; ///< all states dense in f32; f16 is half of that
  // Medians, milliseconds, wall clock.
  double fork = 0, write = 0, restore = 0;
  bool same = false; ///< the restored slot's snapshot is the original's
};

/// Throws Failure.
HandOverResult measureHandOver(const HandOverOptions &options,
                               const RankProfile &profile);

std::string formatHandOver(const HandOverResult &result);
std::string formatHandOverJson(const HandOverResult &result);

} // namespace ss_bench

#endif
