//===- Gesvda.cpp - cuSOLVER's batched SVD, to compare with ---------------===//

#include "Gesvda.h"

#include "CusolverFile.h"

#include "capi/Failure.h"
#include "sinkstate/sinkstate.h"

#include <algorithm>

using namespace ss_bench;
using sinkstate::runtime::fail;
using sinkstate::runtime::cuda::CUstream;

/// As the ABI fixes them; every one returns 0 for success.
struct Gesvda::Functions {
  int (*cusolverDnCreate)(void **handle);
  int (*cusolverDnDestroy)(void *handle);
  int (*cusolverDnSetStream)(void *handle, CUstream stream);
  int (*cusolverDnSgesvdaStridedBatched_bufferSize)(
      void *handle, int vectors, int rank, int m, int n, const float *a,
      int lda, long long strideA, const float *s, long long strideS,
      const float *u, int ldu, long long strideU, const float *v, int ldv,
      long long strideV, int *work, int batch);
  int (*cusolverDnSgesvdaStridedBatched)(
      void *handle, int vectors, int rank, int m, int n, const float *a,
      int lda, long long strideA, float *s, long long strideS, float *u,
      int ldu, long long strideU, float *v, int ldv, long long strideV,
      float *work, int workCount, int *info, double *residuals, int batch);
};

namespace {

constexpr int kWithVectors = 1;

void checkSolver(int result, const char *call) {
  if (result != 0)
    fail(SS_DEVICE_ERROR, call, " failed with status ", result,
         ", expected 0: see cusolverStatus_t");
}

} // namespace

Gesvda::Gesvda(CudaSession &session)
    : session(session), call(std::make_unique<Functions>()) {}

std::unique_ptr<Gesvda> Gesvda::open(CudaSession &session,
                                     std::string &reason) {
  void *library =
      sinkstate::openCusolver(sinkstate::cusolverCandidates(), reason);
  if (!library)
    return nullptr;
  std::unique_ptr<Gesvda> solver(new Gesvda(session));
  auto resolve = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        sinkstate::cusolverSymbol(library, name, reason));
  };
#define SS_RESOLVE(NAME) resolve(solver->call->NAME, #NAME)
  SS_RESOLVE(cusolverDnCreate);
  SS_RESOLVE(cusolverDnDestroy);
  SS_RESOLVE(cusolverDnSetStream);
  SS_RESOLVE(cusolverDnSgesvdaStridedBatched_bufferSize);
  SS_RESOLVE(cusolverDnSgesvdaStridedBatched);
#undef SS_RESOLVE
  if (!reason.empty())
    return nullptr;
  checkSolver(solver->call->cusolverDnCreate(&solver->handle),
              "cusolverDnCreate");
  checkSolver(
      solver->call->cusolverDnSetStream(solver->handle, session.stream()),
      "cusolverDnSetStream");
  return solver;
}

Gesvda::~Gesvda() {
  if (handle)
    (void)call->cusolverDnDestroy(handle);
}

/// Floats that a call for `count` matrices works on; returns a status.
int Gesvda::workspace(const float *matrices, int m, int n, int rank, int count,
                      int &floats) const {
  // Of the arrays only their shapes are looked at.
  return call->cusolverDnSgesvdaStridedBatched_bufferSize(
      handle, kWithVectors, rank, m, n, matrices, m, (long long)(m) * n,
      matrices, n, matrices, m, (long long)(m) * n, matrices, n,
      (long long)(n) * n, &floats, count);
}

int Gesvda::partOf(const float *matrices, int m, int n, int rank,
                   int count) const {
  for (int part = count;; part = (part + 1) / 2) {
    int floats = 0;
    const int status = workspace(matrices, m, n, rank, part, floats);
    if (status == 0 && floats >= 0 &&
        size_t(floats) * sizeof(float) <= session.freeBytes() / 2)
      return part;
    if (part == 1)
      fail(SS_DEVICE_ERROR,
           "cusolverDnSgesvdaStridedBatched_bufferSize gave status ", status,
           " and ", floats, " floats for one matrix of ", m, " x ", n,
           " and rank ", rank,
           ", expected 0 and a workspace that fits: see cusolverStatus_t");
  }
}

double Gesvda::time(const float *matrices, int m, int n, int rank, int count,
                    int repeats, std::vector<float> &largest) {
  std::vector<void *> owned;
  auto array = [&](size_t elements) {
    owned.push_back(session.allocate(elements * sizeof(float)));
    return static_cast<float *>(owned.back());
  };
  const auto states = size_t(count);
  // Room for all components, whatever `rank` asks for.
  float *s = array(states * size_t(n));
  float *u = array(states * size_t(m) * size_t(n));
  float *v = array(states * size_t(n) * size_t(n));
  auto *info = reinterpret_cast<int *>(array(states));
  const long long strideA = (long long)(m) * n,
                  strideU = (long long)(m) * n,
                  strideV = (long long)(n) * n;
  const int part = partOf(matrices, m, n, rank, count);
  int workCount = 0;
  checkSolver(workspace(matrices, m, n, rank, part, workCount),
              "cusolverDnSgesvdaStridedBatched_bufferSize");
  float *work = array(size_t(std::max(1, workCount)));
  auto decompose = [&] {
    for (int begin = 0; begin < count; begin += part)
      checkSolver(call->cusolverDnSgesvdaStridedBatched(
                      handle, kWithVectors, rank, m, n,
                      matrices + begin * strideA, m, strideA, s + begin * n,
                      n, u + begin * strideU, m, strideU, v + begin * strideV,
                      n, strideV, work, workCount, info + begin, nullptr,
                      std::min(part, count - begin)),
                  "cusolverDnSgesvdaStridedBatched");
  };
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i)
    times.push_back(session.timed(decompose));
  times.erase(times.begin()); // the first one sets up
  std::vector<float> all(states * size_t(n));
  session.download(all.data(), s, all.size() * sizeof(float));
  largest.clear();
  for (size_t i = 0; i < states; ++i)
    largest.push_back(all[i * size_t(n)]);
  for (void *memory : owned)
    session.free(memory);
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[size_t(repeats) / 2];
}
