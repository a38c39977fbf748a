//===- StandardOutput.h - Whether what was printed has arrived --*- C++ -*-===//
#ifndef TINY_HYBRID_STANDARDOUTPUT_H
#define TINY_HYBRID_STANDARDOUTPUT_H

#include "Result.h"

#include <cstdio>

namespace tiny_hybrid {

/// To be called at a program's end: a full disk is no success.
inline Status finishStandardOutput() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return std::nullopt;
  return Error{"standard output: cannot write, expected a place that has room"};
}

} // namespace tiny_hybrid

#endif // TINY_HYBRID_STANDARDOUTPUT_H
