//===- Gesvda.h - cuSOLVER's batched SVD, to compare with -------*- C++ -*-===//
#ifndef SS_BENCH_GESVDA_H
#define SS_BENCH_GESVDA_H

#include "CudaSession.h"

#include <memory>
#include <string>

namespace ss_bench {

/// cusolverDnSgesvdaStridedBatched: approximate SVDs of tall matrices.
class Gesvda {
public:
  /// Null and a reason where there is no cuSOLVER.
  static std::unique_ptr<Gesvda> open(CudaSession &session,
                                      std::string &reason);
  ~Gesvda();
  Gesvda(const Gesvda &) = delete;
  Gesvda &operator=(const Gesvda &) = delete;

  /// Median milliseconds of `repeats` calls for the `rank` largest components of
  /// `count` matrices, columns of `m` floats, n of them, m >= n. Their first
  /// singular values, `count` of them, come back in `largest`. Throws where
  /// cuSOLVER fails.
  double time(const float *matrices, int m, int n, int rank, int count,
              int repeats, std::vector<float> &largest);

private:
  struct Functions;
  explicit Gesvda(CudaSession &session);

  CudaSession &session;
  std::unique_ptr<Functions> call;
  void *handle = nullptr;
};

} // namespace ss_bench

#endif
