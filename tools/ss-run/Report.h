//===- Report.h - What ss-run says about a measurement ----------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_REPORT_H
#define SINKSTATE_TOOLS_SS_RUN_REPORT_H

#include "Measurement.h"
#include "Options.h"
#include "PackageLayers.h"
#include "StartUp.h"

#include <optional>
#include <string>

namespace ss_run {

/// The table on the terminal. `policy` is what the kernels were made with, in
/// words.
std::string formatTable(const Measurement &measurement,
                        const RunOptions &options, const std::string &policy);

/// Where the time went, for --timing.
struct PhaseTimes {
  double load = 0;
  double compile = 0;
  double engines = 0;
  double decode = 0;
  double init = 0; ///< part of `decode`: dense states to compressed ones
  /// Of the compressed engine; part of `engines`.
  std::optional<ss_start_up::StartTimes> start{};
};
std::string formatTiming(const Measurement &measurement,
                         const PhaseTimes &phases);

/// The same facts for programs, and how the states of every layer are kept; ends
/// with a line break.
std::string formatJson(const Measurement &measurement,
                       const RunOptions &options, const std::string &policy,
                       const std::vector<ss_tools::PackageLayer> &layers,
                       const PhaseTimes &phases, const std::string &version);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_REPORT_H
