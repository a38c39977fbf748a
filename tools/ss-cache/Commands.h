//===- Commands.h - What ss-cache does --------------------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_CACHE_COMMANDS_H
#define SINKSTATE_TOOLS_SS_CACHE_COMMANDS_H

#include "Options.h"

#include <ostream>

namespace ss_cache {

/// Exit codes.
inline constexpr int kDone = 0;
inline constexpr int kFound = 1; ///< verify, show, prune: not as it should be
inline constexpr int kWrongUse = 2;

/// Runs a command; returns the exit code. Errors are one line on `errors`.
int run(const Options &options, std::ostream &out, std::ostream &errors);

} // namespace ss_cache

#endif
