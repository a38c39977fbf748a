//===- CusolverOracle.h - Singular values by cuSOLVER -----------*- C++ -*-===//
//
// NVIDIA's dense solvers, opened with dlopen: no header of the toolkit is
// needed, and only this test ever opens them. cuSOLVER works in the primary
// context, which is the engines' too.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DEVICE_CUSOLVERORACLE_H
#define SINKSTATE_DEVICE_CUSOLVERORACLE_H

#include "SvdOracle.h"

#include "cuda/Memory.h"

namespace sinkstate::test {

/// The functions of libcusolver, as its ABI fixes them. Every one returns 0 for
/// success.
struct CusolverLibrary {
  using Handle = struct cusolverDnContext *;
  using JacobiInfo = struct gesvdjInfo *;

  int (*cusolverDnCreate)(Handle *handle);
  int (*cusolverDnDestroy)(Handle handle);
  int (*cusolverDnCreateGesvdjInfo)(JacobiInfo *info);
  int (*cusolverDnDestroyGesvdjInfo)(JacobiInfo info);
  int (*cusolverDnDgesvdjBatched_bufferSize)(Handle handle, int vectors, int m,
                                             int n, const double *a, int lda,
                                             const double *s, const double *u,
                                             int ldu, const double *v, int ldv,
                                             int *work, JacobiInfo parameters,
                                             int batch);
  int (*cusolverDnDgesvdjBatched)(Handle handle, int vectors, int m, int n,
                                  double *a, int lda, double *s, double *u,
                                  int ldu, double *v, int ldv, double *work,
                                  int workCount, int *info,
                                  JacobiInfo parameters, int batch);
  int (*cusolverDnDgesvd_bufferSize)(Handle handle, int m, int n, int *work);
  int (*cusolverDnDgesvd)(Handle handle, signed char jobu, signed char jobvt,
                          int m, int n, double *a, int lda, double *s,
                          double *u, int ldu, double *vt, int ldvt,
                          double *work, int workCount, double *superdiagonal,
                          int *info);

  /// Opens the first of `paths` that can be; null and a reason where none can.
  static std::unique_ptr<const CusolverLibrary>
  load(const std::vector<std::string> &paths, std::string &reason);
};

class CusolverOracle final : public SvdOracle {
public:
  /// Throws where cuSOLVER does not start on this GPU.
  CusolverOracle(std::unique_ptr<const CusolverLibrary> library,
                 std::shared_ptr<const runtime::cuda::Context> context);
  ~CusolverOracle() override;
  CusolverOracle(const CusolverOracle &) = delete;
  CusolverOracle &operator=(const CusolverOracle &) = delete;

  std::vector<double> singularValues(std::vector<double> matrices, int rows,
                                     int columns) override;

private:
  /// One-sided Jacobi on all matrices at once, at most 32 x 32.
  void solveBatch(int m, int n, int count, runtime::cuda::CUdeviceptr a,
                  runtime::cuda::CUdeviceptr s,
                  runtime::cuda::CUdeviceptr info);
  /// QR iteration, matrix after matrix; m >= n.
  void solveEach(int m, int n, int count, runtime::cuda::CUdeviceptr a,
                 runtime::cuda::CUdeviceptr s,
                 runtime::cuda::CUdeviceptr info);
  /// Waits for cuSOLVER, which works on the default stream.
  void wait() const;

  std::unique_ptr<const CusolverLibrary> library;
  std::shared_ptr<const runtime::cuda::Context> context;
  CusolverLibrary::Handle handle = nullptr;
  CusolverLibrary::JacobiInfo jacobi = nullptr;
};

} // namespace sinkstate::test

#endif
