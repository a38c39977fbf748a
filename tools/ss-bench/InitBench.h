//===- InitBench.h - Time of an init kernel ---------------------*- C++ -*-===//
#ifndef SS_BENCH_INITBENCH_H
#define SS_BENCH_INITBENCH_H

#include "CudaSession.h"
#include "HandOverOptions.h"
#include "Spectra.h"

#include "cuda/PackageKernels.h"

#include <string>

namespace ss_bench {

/// What an init kernel took for so many states, in chunks.
struct InitResult {
  std::string device, package, profile, layer;
  int32_t dv = 0, dk = 0;
  double eps = 0;
  int64_t states = 0, chunk = 0;
  double copyBandwidth = 0;      ///< bytes a second, read and written
  double milliseconds = 0;       ///< median
  double readBytes = 0, writtenBytes = 0;
  double meanRank = 0, denseShare = 0; ///< of those in factors; of all
  // Against the known matrices.
  int64_t checked = 0;
  int64_t wrongRanks = 0; ///< that the kernel may not give these matrices
  int64_t leftOver = 0;   ///< for exact SVDs: the kernel did not converge
  double weightError = 0; ///< largest, relative, of kept weights
  double boundShare = 0;  ///< largest error over what truncation may drop
  // cuSOLVER's gesvda for as many components as the kernel finds at most.
  int64_t solverStates = 0;
  int32_t solverRank = 0;
  double solverMilliseconds = 0, solverWeightError = 0;
  std::string noSolver; ///< why there is none

  bool isCorrect() const {
    return checked > 0 && wrongRanks == 0 && weightError <= 1e-3 &&
           boundShare <= 1.01;
  }
  /// Of a copy that reads the states and writes the factors.
  /// 0 where no copy was timed.
  double shareOfCopy() const {
    return copyBandwidth > 0 ? (readBytes + writtenBytes) / copyBandwidth /
                                   (milliseconds * 1e-3)
                             : 0;
  }
  /// gesvda's time for a state over the kernel's.
  double solverRatio() const {
    return solverMilliseconds / double(solverStates) /
           (milliseconds / double(states));
  }
};

/// The first layer of a package that has an init kernel. Throws where there is
/// none, or no memory for one chunk.
InitResult measureInit(const InitOptions &options, const RankProfile &profile);

std::string formatInit(const InitResult &result);
std::string formatInitJson(const InitResult &result);

} // namespace ss_bench

#endif
