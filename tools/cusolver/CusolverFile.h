//===- CusolverFile.h - Finds and opens cuSOLVER ----------------*- C++ -*-===//
//
// NVIDIA's dense solvers are opened with dlopen: no header of the toolkit is
// needed, and nothing but what compares with them ever opens them.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TOOLS_CUSOLVERFILE_H
#define SINKSTATE_TOOLS_CUSOLVERFILE_H

#include <string>
#include <vector>

namespace sinkstate {

/// Where the loader, a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda) and
/// Python's packages have it, newest first.
std::vector<std::string> cusolverCandidates();

/// Opens the first of `paths` that can be, for as long as the process lives;
/// null and a reason where none can.
void *openCusolver(const std::vector<std::string> &paths, std::string &reason);

/// A function of it; null, and a reason where there is none yet.
void *cusolverSymbol(void *library, const char *name, std::string &reason);

} // namespace sinkstate

#endif
