//===- Gesvda.h - cuSOLVER's batched SVD, to compare with -------*- C++ -*-===//
#ifndef SS_BENCH_GESVDA_H
#define SS_BENCH_GESVDA_H

#include "CudaSession.h"

#include <memory>
#include <string>

namespace ss_bench {

/// cusolverDnSgesvdaStridedBatched: approximate SVDs of tall matrices. Its
/// workspace has an int for a size and grows by more than 60 n^2 floats a matrix:
/// where a call is for too many matrices at once, its bufferSize answers
/// CUSOLVER_STATUS_INVALID_VALUE (3). So they are taken in parts.
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
  int workspace(const float *matrices, int m, int n, int rank, int count,
                int &floats) const;
  /// Matrices that one call takes, of `count`: halves until cuSOLVER accepts
  /// them and their workspace fits.
  int partOf(const float *matrices, int m, int n, int rank, int count) const;

  CudaSession &session;
  std::unique_ptr<Functions> call;
  void *handle = nullptr;
};

} // namespace ss_bench

#endif
