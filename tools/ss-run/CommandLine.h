//===- CommandLine.h - The options as they are typed ------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H
#define SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H

#include "Options.h"

#include <optional>

namespace ss_run {

/// Reads and checks the command line. `--help` and `--version` print and end
/// the program.
Result<RunOptions> readCommandLine(int argc, const char *const *argv);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H
