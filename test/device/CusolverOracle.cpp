//===- CusolverOracle.cpp - Singular values by cuSOLVER -------------------===//

#include "CusolverOracle.h"

#include "CusolverFile.h"

#include "capi/Failure.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;

namespace sinkstate::test {
namespace {

/// The largest matrix of the batched Jacobi.
constexpr int kLargestInBatch = 32;

void checkSolver(int result, const char *call) {
  if (result != 0)
    throw std::runtime_error(std::string(call) + " failed with status " +
                             std::to_string(result) +
                             ", expected 0: see cusolverStatus_t");
}

template <typename T> T *pointer(CUdeviceptr address) {
  return reinterpret_cast<T *>(address);
}

} // namespace

std::unique_ptr<const CusolverLibrary>
CusolverLibrary::load(const std::vector<std::string> &paths,
                      std::string &reason) {
  void *file = openCusolver(paths, reason);
  if (!file)
    return nullptr;
  auto library = std::make_unique<CusolverLibrary>();
  auto resolve = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        cusolverSymbol(file, name, reason));
  };
#define SS_RESOLVE(NAME) resolve(library->NAME, #NAME)
  SS_RESOLVE(cusolverDnCreate);
  SS_RESOLVE(cusolverDnDestroy);
  SS_RESOLVE(cusolverDnCreateGesvdjInfo);
  SS_RESOLVE(cusolverDnDestroyGesvdjInfo);
  SS_RESOLVE(cusolverDnDgesvdjBatched_bufferSize);
  SS_RESOLVE(cusolverDnDgesvdjBatched);
  SS_RESOLVE(cusolverDnDgesvd_bufferSize);
  SS_RESOLVE(cusolverDnDgesvd);
#undef SS_RESOLVE
  if (!reason.empty())
    return nullptr;
  return library;
}

CusolverOracle::CusolverOracle(std::unique_ptr<const CusolverLibrary> solver,
                               std::shared_ptr<const Context> gpu)
    : library(std::move(solver)), context(std::move(gpu)) {
  CurrentContext current(*context);
  checkSolver(library->cusolverDnCreate(&handle), "cusolverDnCreate");
  checkSolver(library->cusolverDnCreateGesvdjInfo(&jacobi),
              "cusolverDnCreateGesvdjInfo");
}

CusolverOracle::~CusolverOracle() {
  try {
    CurrentContext current(*context);
    (void)library->cusolverDnDestroyGesvdjInfo(jacobi);
    (void)library->cusolverDnDestroy(handle);
  } catch (const Failure &) {
    // The context is gone, and cuSOLVER's memory with it.
  }
}

void CusolverOracle::wait() const {
  SS_CUDA(context->driver(), cuCtxSynchronize());
}

void CusolverOracle::solveBatch(int m, int n, int count, CUdeviceptr a,
                                CUdeviceptr s, CUdeviceptr info) {
  // Vectors are not asked for, but their arrays belong to the call.
  DeviceMemory u(context, size_t(count) * size_t(m * m) * sizeof(double));
  DeviceMemory v(context, size_t(count) * size_t(n * n) * sizeof(double));
  int workCount = 0;
  checkSolver(library->cusolverDnDgesvdjBatched_bufferSize(
                  handle, 0, m, n, pointer<double>(a), m, pointer<double>(s),
                  u.at<double>(0), m, v.at<double>(0), n, &workCount, jacobi,
                  count),
              "cusolverDnDgesvdjBatched_bufferSize");
  DeviceMemory work(context, size_t(std::max(1, workCount)) * sizeof(double));
  checkSolver(library->cusolverDnDgesvdjBatched(
                  handle, 0, m, n, pointer<double>(a), m, pointer<double>(s),
                  u.at<double>(0), m, v.at<double>(0), n, work.at<double>(0),
                  workCount, pointer<int>(info), jacobi, count),
              "cusolverDnDgesvdjBatched");
  wait();
}

void CusolverOracle::solveEach(int m, int n, int count, CUdeviceptr a,
                               CUdeviceptr s, CUdeviceptr info) {
  int workCount = 0;
  checkSolver(library->cusolverDnDgesvd_bufferSize(handle, m, n, &workCount),
              "cusolverDnDgesvd_bufferSize");
  DeviceMemory work(context, size_t(std::max(1, workCount)) * sizeof(double));
  for (size_t i = 0; i < size_t(count); ++i)
    checkSolver(library->cusolverDnDgesvd(
                    handle, 'N', 'N', m, n,
                    pointer<double>(a) + i * size_t(m) * size_t(n), m,
                    pointer<double>(s) + i * size_t(n), nullptr, m, nullptr, n,
                    work.at<double>(0), workCount, nullptr,
                    pointer<int>(info) + i),
                "cusolverDnDgesvd");
  wait();
}

std::vector<double>
CusolverOracle::singularValues(std::vector<double> matrices, int rows,
                               int columns) {
  const size_t floats = size_t(rows) * size_t(columns);
  const int count = int(matrices.size() / floats);
  // A row-major matrix is the transpose of a column-major one, with the same
  // singular values; where that one would be wide, the transpose is made.
  const int m = std::max(rows, columns), n = std::min(rows, columns);
  if (rows > columns)
    for (size_t i = 0; i < size_t(count); ++i) {
      const std::vector<double> one(matrices.begin() + long(i * floats),
                                    matrices.begin() + long((i + 1) * floats));
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
          matrices[i * floats + size_t(c * rows + r)] =
              one[size_t(r * columns + c)];
    }
  std::vector<double> sigma(size_t(count) * size_t(n));
  std::vector<int> info(static_cast<size_t>(count), -1);

  CurrentContext current(*context);
  OwnStream stream(context);
  DeviceMemory a(context, matrices.size() * sizeof(double));
  DeviceMemory s(context, sigma.size() * sizeof(double));
  DeviceMemory infos(context, info.size() * sizeof(int));
  stream.copyIn(a.address(), matrices.data(), a.bytes());
  if (m <= kLargestInBatch)
    solveBatch(m, n, count, a.address(), s.address(), infos.address());
  else
    solveEach(m, n, count, a.address(), s.address(), infos.address());
  stream.copyOut(info.data(), infos.address(), info.size() * sizeof(int));
  // Jacobi may run out of sweeps where QR iteration converges.
  for (size_t i = 0; i < info.size() && m <= kLargestInBatch; ++i)
    if (info[i] > 0) {
      const CUdeviceptr at = a.address() + i * floats * sizeof(double);
      const CUdeviceptr place = infos.address() + i * sizeof(int);
      stream.copyIn(at, &matrices[i * floats], floats * sizeof(double));
      solveEach(m, n, 1, at, s.address() + i * size_t(n) * sizeof(double),
                place);
      stream.copyOut(&info[i], place, sizeof(int));
    }
  stream.copyOut(sigma.data(), s.address(), sigma.size() * sizeof(double));
  for (size_t i = 0; i < info.size(); ++i)
    if (info[i] != 0)
      throw std::runtime_error("cuSOLVER gives info " +
                               std::to_string(info[i]) + " for matrix " +
                               std::to_string(i) + ", expected 0 (converged)");
  return sigma;
}

std::unique_ptr<SvdOracle> SvdOracle::open(std::string &reason) {
  auto library = CusolverLibrary::load(cusolverCandidates(), reason);
  if (!library)
    return nullptr;
  return std::make_unique<CusolverOracle>(std::move(library),
                                          Context::open(Driver::get(), 0));
}

} // namespace sinkstate::test
