//===- HandOverMain.cpp - ss-bench init and ss-bench hand-over ------------===//

#include "HandOverMain.h"

#include "HandOverBench.h"
#include "InitBench.h"

#include <cstdio>
#include <fstream>

using namespace ss_bench;
using sinkstate::Result;

namespace {

/// Empty where it is written.
std::string write(const std::string &file, const std::string &content) {
  if (file.empty())
    return "";
  std::ofstream stream(file, std::ios::trunc);
  stream << content;
  stream.close();
  return stream ? "" : file + ": cannot be written, expected a path to a file";
}

std::string runInit(const std::vector<std::string> &arguments) {
  Result<InitOptions> options = parseInitOptions(arguments);
  if (!options)
    return options.error();
  Result<RankProfile> profile = RankProfile::parse(options->profile);
  if (!profile)
    return profile.error();
  const InitResult result = measureInit(*options, *profile);
  std::fputs(formatInit(result).c_str(), stdout);
  if (std::string wrong = write(options->json, formatInitJson(result));
      !wrong.empty())
    return wrong;
  return result.isCorrect() ? ""
                            : "the kernel's factors are not the matrices': see "
                              "the last columns of the table";
}

std::string runSnapshots(const std::vector<std::string> &arguments) {
  Result<HandOverOptions> options = parseHandOverOptions(arguments);
  if (!options)
    return options.error();
  Result<RankProfile> profile = RankProfile::parse(options->profile);
  if (!profile)
    return profile.error();
  const HandOverResult result = measureHandOver(*options, *profile);
  std::fputs(formatHandOver(result).c_str(), stdout);
  if (std::string wrong = write(options->json, formatHandOverJson(result));
      !wrong.empty())
    return wrong;
  return result.same ? "" : "a copy of a slot is not the slot";
}

} // namespace

std::optional<std::string>
ss_bench::runHandOver(const std::vector<std::string> &arguments) {
  if (arguments.empty())
    return std::nullopt;
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "init")
    return runInit(rest);
  if (arguments[0] == "hand-over")
    return runSnapshots(rest);
  return std::nullopt;
}
