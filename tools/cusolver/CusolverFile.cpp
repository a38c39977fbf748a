//===- CusolverFile.cpp - Finds and opens cuSOLVER ------------------------===//

#include "CusolverFile.h"

#include "environment/Environment.h"

#include <dlfcn.h>
#include <glob.h>

namespace sinkstate {
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

std::vector<std::string> foldersLike(const char *pattern) {
  std::vector<std::string> folders;
  glob_t found = {};
  if (glob(pattern, 0, nullptr, &found) == 0)
    folders.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return folders;
}

} // namespace

std::vector<std::string> cusolverCandidates() {
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

void *openCusolver(const std::vector<std::string> &paths,
                   std::string &reason) {
  // Never closed: CUDA's libraries register themselves for the process's end.
  std::string looked, why;
  reason.clear();
  for (const std::string &path : paths) {
    if (void *file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return file;
    looked += (looked.empty() ? "'" : ", '") + path + "'";
    // A file that is there but cannot be opened says more than one that is not.
    const std::string error = dlerror();
    if (why.empty() || error.find(path + ": cannot open") == std::string::npos)
      why = error;
  }
  reason = "no cuSOLVER: looked for " + looked + " (" + why +
           "), expected that of CUDA 12 or 13: set CUDA_HOME or "
           "LD_LIBRARY_PATH";
  return nullptr;
}

void *cusolverSymbol(void *library, const char *name, std::string &reason) {
  void *symbol = dlsym(library, name);
  if (!symbol && reason.empty())
    reason = std::string("cuSOLVER has no function '") + name +
             "', expected that of CUDA 12 or 13: update it";
  return symbol;
}

} // namespace sinkstate
