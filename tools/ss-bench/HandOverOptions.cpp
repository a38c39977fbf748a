//===- HandOverOptions.cpp - The command lines of init and hand-over ------===//

#include "HandOverOptions.h"

#include "CommandOptions.h"

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;

namespace {

const char *const initOverview =
    R"(ss-bench init: times the init kernel of a package

Compresses many dense states of known spectra, beside cuSOLVER's singular
values on a GPU, and checks the factors.

Usage: ss-bench init --package FOLDER [options]
)";

const char *const handOverOverview =
    R"(ss-bench hand-over: times snapshots and forks of one request

Usage: ss-bench hand-over --package FOLDER [options]
)";

Option eps(float &to) {
  return {"--eps", "E", "a number above 0 and below 1",
          "drop weights below E times a state's largest (0.003)",
          [&to](const std::string &text) {
            return parseWhole(text, to) && to > 0 && to < 1;
          }};
}

template <typename Options>
Option device(std::string help, Options &options) {
  return deviceOption(std::move(help), [&](bool cuda, int32_t ordinal) {
    options.cuda = cuda;
    options.device = ordinal;
  });
}

Command initCommand(InitOptions &options) {
  return {
      "ss-bench init",
      initOverview,
      {textOption("--package", "FOLDER", "a folder",
                  "kernels that ss-compile --init made", options.package),
       textOption("--beside", "FOLDER", "a folder",
                  "a second package, such as one of other --init-warps: both "
                  "are timed",
                  options.beside),
       profileOption("ranks of the states (nemo4b)", options.profile),
       eps(options.eps),
       numberOption("--states",
                    "states that are initialised (cuda: 258048, cpu: 1024)",
                    options.states, 1),
       numberOption("--chunk", "states at a time, 0: as many as fit (0)",
                    options.chunk, 0),
       numberOption("--solver-states",
                    "states of those that cuSOLVER decomposes too (8192)",
                    options.solverStates, 0),
       numberOption("--repeats", "measurements, of which the median counts (5)",
                    options.repeats, 1),
       copyOption(options.copyMib),
       device("where the states are (cuda)", options),
       threadsOption(options.threads),
       textOption("--json", "FILE", "a file", "write the figures to FILE",
                  options.json)}};
}

Command handOverCommand(HandOverOptions &options) {
  return {"ss-bench hand-over",
          handOverOverview,
          {textOption("--package", "FOLDER", "a folder",
                      "kernels that ss-compile made", options.package),
           profileOption("ranks of the states (nemo4b)", options.profile),
           device("where the states are (cpu)", options),
           numberOption("--repeats",
                        "measurements, of which the median counts (25)",
                        options.repeats, 1),
           textOption("--json", "FILE", "a file", "write the figures to FILE",
                      options.json)}};
}

template <typename Options>
Result<Options> parse(const std::vector<std::string> &arguments,
                      Command (*commandOf)(Options &)) {
  Options options;
  const Command command = commandOf(options);
  Result<bool> help = takeOptions(command, arguments);
  if (!help)
    return help.takeError();
  if (*help)
    options.help = helpText(command);
  else if (options.package.empty())
    return Error{"found no --package; expected the folder of a package: see " +
                 command.name + " --help"};
  return options;
}

} // namespace

Result<InitOptions>
ss_bench::parseInitOptions(const std::vector<std::string> &arguments) {
  return parse(arguments, initCommand);
}

Result<HandOverOptions>
ss_bench::parseHandOverOptions(const std::vector<std::string> &arguments) {
  return parse(arguments, handOverCommand);
}
