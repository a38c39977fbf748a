//===- HandOverMain.cpp - ss-bench init and ss-bench hand-over ------------===//

#include "HandOverMain.h"

#include "HandOverBench.h"
#include "InitBench.h"
#include "Outputs.h"

#include <cstdio>

using namespace ss_bench;
using sinkstate::Result;
using sinkstate::Status;

namespace {

std::string runInit(const std::vector<std::string> &arguments) {
  Result<InitOptions> options = parseInitOptions(arguments);
  if (!options)
    return options.error();
  if (!options->help.empty()) {
    std::fputs(options->help.c_str(), stdout);
    return "";
  }
  Result<RankProfile> profile = RankProfile::parse(options->profile);
  if (!profile)
    return profile.error();
  Result<Outputs> outputs = Outputs::open({options->json});
  if (!outputs)
    return outputs.error();
  InitResult result = measureInit(*options, *profile);
  std::fputs(formatInit(result).c_str(), stdout);
  std::string figures = formatInitJson(result);
  bool isCorrect = result.isCorrect();
  if (!options->beside.empty()) {
    options->package = options->beside;
    options->solverStates = 0; // once is enough
    result = measureInit(*options, *profile);
    std::fputs(("\n" + formatInit(result)).c_str(), stdout);
    figures = "[" + figures + ", " + formatInitJson(result) + "]";
    isCorrect = isCorrect && result.isCorrect();
  }
  if (const Status failed = outputs->write({figures}))
    return failed->message;
  return isCorrect ? ""
                   : "the kernel's factors are not the matrices': see the last "
                     "columns of the table";
}

std::string runSnapshots(const std::vector<std::string> &arguments) {
  Result<HandOverOptions> options = parseHandOverOptions(arguments);
  if (!options)
    return options.error();
  if (!options->help.empty()) {
    std::fputs(options->help.c_str(), stdout);
    return "";
  }
  Result<RankProfile> profile = RankProfile::parse(options->profile);
  if (!profile)
    return profile.error();
  Result<Outputs> outputs = Outputs::open({options->json});
  if (!outputs)
    return outputs.error();
  const HandOverResult result = measureHandOver(*options, *profile);
  std::fputs(formatHandOver(result).c_str(), stdout);
  if (const Status failed = outputs->write({formatHandOverJson(result)}))
    return failed->message;
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
