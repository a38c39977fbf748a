//===- CommandLine.h - The options as they are typed ------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H
#define SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H

#include "Options.h"

#include <span>
#include <string>
#include <vector>

namespace ss_run {

/// What was typed, not yet checked.
struct CommandLine {
  OptionTexts texts;
  bool help = false, version = false;
};

/// Reads `--name value` and `--name=value`; the program's name is no part of
/// `arguments`.
///
///   readCommandLine({"--tokens=3", "--timing"}) -> texts.tokens == "3"
Result<CommandLine> readCommandLine(std::span<const char *const> arguments);

/// "-o", "--model".
std::string dashed(const std::string &name);

/// The names of all options that were given, without dashes.
std::vector<std::string> givenOptions(const OptionTexts &texts);

/// What --help prints.
std::string helpText();

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_COMMANDLINE_H
