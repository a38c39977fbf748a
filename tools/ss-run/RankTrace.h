//===- RankTrace.h - Stored ranks as a file for ss-bench --------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_RANKTRACE_H
#define SINKSTATE_TOOLS_SS_RUN_RANKTRACE_H

#include "Measurement.h"

#include <string>

namespace ss_run {

/// The ranks of the first request as `ss-bench --profile trace:FILE` takes
/// them: a line of a layer's type and its heads' ranks (-1: dense) for every
/// layer of every 16th step of the last half, when ranks have settled.
/// `source`, one line, says in a comment what the run was.
std::string formatRanks(const RankHistory &history, const std::string &source);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_RANKTRACE_H
