//===- CusolverOracle.cpp - Singular values by cuSOLVER -------------------===//

#include "CusolverOracle.h"

#include "capi/Failure.h"
#include "environment/Environment.h"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

using namespace sinkstate::runtime;
using namespace sinkstate::runtime::cuda;

namespace sinkstate::test {
namespace {

/// CUDA 13's and CUDA 12's.
constexpr const char *kNames[] = {"libcusolver.so.12", "libcusolver.so.11",
                                  "libcusolver.so"};
/// Python's packages: one folder for all of CUDA 13, one a library before.
constexpr const char *kPythonFolders[] = {
    "/usr/local/lib/python3*/*-packages/nvidia/cu13/lib/",
    "/usr/local/lib/python3*/*-packages/nvidia/cusolver/lib/",
    "/usr/lib/python3*/*-packages/nvidia/cu13/lib/",
    "/usr/lib/python3*/*-packages/nvidia/cusolver/lib/",
    "/opt/*/lib/python3*/site-packages/nvidia/cu13/lib/",
    "/opt/*/lib/python3*/site-packages/nvidia/cusolver/lib/"};
/// The largest matrix of the batched Jacobi.
constexpr int kLargestInBatch = 32;

void checkSolver(int result, const char *call) {
  if (result != 0)
    throw std::runtime_error(std::string(call) + " failed with status " +
                             std::to_string(result) +
                             ", expected 0: see cusolverStatus_t");
}

std::vector<std::string> foldersLike(const char *pattern) {
  std::vector<std::string> folders;
  glob_t found = {};
  if (glob(pattern, 0, nullptr, &found) == 0)
    folders.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return folders;
}

template <typename T> T *pointer(CUdeviceptr address) {
  return reinterpret_cast<T *>(address);
}

} // namespace

std::vector<std::string> CusolverLibrary::candidates() {
  std::vector<std::string> folders = {""};
  for (const auto *variable : {&environment::cudaHome, &environment::cudaPath})
    if (std::string home = environment::read(*variable); !home.empty())
      folders.push_back(home + "/lib64/");
  folders.push_back("/usr/local/cuda/lib64/");
  for (const char *pattern : kPythonFolders)
    for (std::string &folder : foldersLike(pattern))
      folders.push_back(std::move(folder));
  std::vector<std::string> paths;
  for (const std::string &folder : folders)
    for (const char *name : kNames)
      paths.push_back(folder + name);
  return paths;
}

std::unique_ptr<const CusolverLibrary>
CusolverLibrary::load(const std::vector<std::string> &paths,
                      std::string &reason) {
  // Never closed: CUDA's libraries register themselves for the process's end.
  void *file = nullptr;
  std::string looked, why;
  reason.clear();
  for (const std::string &path : paths) {
    if ((file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)))
      break;
    looked += (looked.empty() ? "'" : ", '") + path + "'";
    // A file that is there but cannot be opened says more than one that is not.
    const std::string error = dlerror();
    if (why.empty() || error.find(path + ": cannot open") == std::string::npos)
      why = error;
  }
  if (!file) {
    reason = "no cuSOLVER: looked for " + looked + " (" + why +
             "), expected that of CUDA 12 or 13: set CUDA_HOME or "
             "LD_LIBRARY_PATH";
    return nullptr;
  }
  auto library = std::make_unique<CusolverLibrary>();
  auto resolve = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(file, name));
    if (!function && reason.empty())
      reason = std::string("cuSOLVER has no function '") + name +
               "', expected that of CUDA 12 or 13: update it";
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
  auto library = CusolverLibrary::load(CusolverLibrary::candidates(), reason);
  if (!library)
    return nullptr;
  return std::make_unique<CusolverOracle>(std::move(library),
                                          Context::open(Driver::get(), 0));
}

} // namespace sinkstate::test
