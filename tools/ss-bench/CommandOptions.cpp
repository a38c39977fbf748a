//===- CommandOptions.cpp - Options of ss-bench's commands ----------------===//

#include "CommandOptions.h"

#include "HelpText.h"

#include <algorithm>
#include <set>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;

namespace {

bool takeDevice(const std::string &text,
                const std::function<void(bool, int32_t)> &set) {
  const std::string prefix = "cuda:";
  int32_t ordinal = 0;
  if (text.starts_with(prefix)) {
    if (!parseWhole(text.substr(prefix.size()), ordinal) || ordinal < 0)
      return false;
  } else if (text != "cpu" && text != "cuda") {
    return false;
  }
  set(text != "cpu", ordinal);
  return true;
}

} // namespace

Option ss_bench::textOption(std::string name, std::string value,
                            std::string expected, std::string help,
                            std::string &to) {
  return {std::move(name), std::move(value), std::move(expected),
          std::move(help), [&to](const std::string &text) {
            to = text;
            return !text.empty();
          }};
}

Option ss_bench::numberOption(std::string name, std::string help, int32_t &to,
                              int32_t least, int32_t most) {
  return {std::move(name), "N",
          "a whole number from " + std::to_string(least) + " to " +
              std::to_string(most),
          std::move(help), [&to, least, most](const std::string &text) {
            return parseWhole(text, to) && to >= least && to <= most;
          }};
}

Option ss_bench::threadsOption(int32_t &to) {
  constexpr int32_t kMostThreads = 1024; // as ss-run
  return numberOption("--threads", "cpu: threads, 0: one per processor (0)", to,
                      0, kMostThreads);
}

Option ss_bench::copyOption(int32_t &to) {
  constexpr int32_t kMostMib = 1 << 16;
  return numberOption("--copy-mib",
                      "MiB of the copy that measures the bandwidth (1280)", to,
                      1, kMostMib);
}

Option ss_bench::deviceOption(std::string help,
                              std::function<void(bool, int32_t)> set) {
  return {"--device", "cpu|cuda|cuda:N", "cpu, cuda or cuda:N", std::move(help),
          [set](const std::string &text) { return takeDevice(text, set); }};
}

Option ss_bench::profileOption(std::string help, std::string &to) {
  return textOption("--profile", "nemo4b|qwen9b|uniform:R|trace:FILE",
                    "nemo4b, qwen9b, uniform:R or trace:FILE", std::move(help),
                    to);
}

Result<bool> ss_bench::takeOptions(const Command &command,
                                   const std::vector<std::string> &arguments,
                                   size_t first) {
  std::set<std::string> given;
  for (size_t i = first; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--help")
      return true;
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto option = std::find_if(
        command.options.begin(), command.options.end(),
        [&](const Option &known) { return known.name == name; });
    if (option == command.options.end())
      return Error{"found '" + argument + "'; expected an option that " +
                   command.name + " --help lists"};
    if (!given.insert(name).second)
      return Error{"found " + name + " twice; expected it once"};
    if (equals == std::string::npos && i + 1 == arguments.size())
      return Error{"found no value of " + name + "; expected " +
                   option->expected};
    const std::string value = equals == std::string::npos
                                  ? arguments[++i]
                                  : argument.substr(equals + 1);
    if (!option->take(value))
      return Error{"found '" + name + " " + value + "'; expected " +
                   option->expected};
  }
  return false;
}

std::string ss_bench::helpText(const Command &command) {
  std::string text = command.overview + "\nOptions\n";
  for (const Option &option : command.options)
    text += ss_tools::helpEntry(option.name, option.value, option.help);
  return text + "  --help\n"
                "\n"
                "Exit codes\n"
                "  0  done\n"
                "  1  the command line or a file is wrong, or a kernel computed "
                "something else\n"
                "  3  the device, or its driver, is not on this machine\n";
}
