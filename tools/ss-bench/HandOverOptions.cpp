//===- HandOverOptions.cpp - The command lines of init and hand-over ------===//

#include "HandOverOptions.h"

#include <charconv>
#include <functional>
#include <map>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;

namespace {

const std::string kInitUsage =
    "expected: ss-bench init --package FOLDER [--profile "
    "nemo4b|qwen9b|uniform:R|trace:FILE] [--eps E] [--states N] [--chunk N] "
    "[--solver-states N] [--repeats N] [--copy-mib N] [--device "
    "cpu|cuda|cuda:N] [--threads N] [--json FILE]";
const std::string kHandOverUsage =
    "expected: ss-bench hand-over --package FOLDER [--profile "
    "nemo4b|qwen9b|uniform:R|trace:FILE] [--device cpu|cuda|cuda:N] "
    "[--repeats N] [--json FILE]";

/// Takes an option's value; false where it is not understood.
using Taker = std::function<bool(const std::string &)>;

Taker text(std::string &to) {
  return [&to](const std::string &value) {
    to = value;
    return !value.empty();
  };
}

template <typename T> bool parse(const std::string &value, T &to) {
  const char *end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, to);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

Taker number(int32_t &to, int32_t least) {
  return [&to, least](const std::string &value) {
    return parse(value, to) && to >= least;
  };
}

/// "cpu", "cuda", "cuda:1"
Taker device(bool &cuda, int32_t &ordinal) {
  return [&](const std::string &value) {
    cuda = value != "cpu";
    if (!cuda || value == "cuda")
      return true;
    const std::string prefix = "cuda:";
    return value.starts_with(prefix) &&
           parse(value.substr(prefix.size()), ordinal) && ordinal >= 0;
  };
}

/// Empty, or what is wrong.
std::string take(const std::vector<std::string> &arguments,
                 const std::map<std::string, Taker> &takers,
                 const std::string &usage) {
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size())
      return "option " + arguments[i] + " has no value; " + usage;
    const auto taker = takers.find(arguments[i]);
    if (taker == takers.end() || !taker->second(arguments[i + 1]))
      return "found '" + arguments[i] + " " + arguments[i + 1] + "'; " + usage;
  }
  return "";
}

} // namespace

Result<InitOptions>
ss_bench::parseInitOptions(const std::vector<std::string> &arguments) {
  InitOptions options;
  const std::string wrong = take(
      arguments,
      {{"--package", text(options.package)},
       {"--profile", text(options.profile)},
       {"--eps",
        [&](const std::string &value) {
          return parse(value, options.eps) && options.eps > 0 &&
                 options.eps < 1;
        }},
       {"--states", number(options.states, 1)},
       {"--chunk", number(options.chunk, 0)},
       {"--solver-states", number(options.solverStates, 0)},
       {"--repeats", number(options.repeats, 1)},
       {"--copy-mib", number(options.copyMib, 1)},
       {"--device", device(options.cuda, options.device)},
       {"--threads", number(options.threads, 0)},
       {"--json", text(options.json)}},
      kInitUsage);
  if (!wrong.empty())
    return Error{wrong};
  if (options.package.empty())
    return Error{kInitUsage};
  return options;
}

Result<HandOverOptions>
ss_bench::parseHandOverOptions(const std::vector<std::string> &arguments) {
  HandOverOptions options;
  const std::string wrong =
      take(arguments,
           {{"--package", text(options.package)},
            {"--profile", text(options.profile)},
            {"--device", device(options.cuda, options.device)},
            {"--repeats", number(options.repeats, 1)},
            {"--json", text(options.json)}},
           kHandOverUsage);
  if (!wrong.empty())
    return Error{wrong};
  if (options.package.empty())
    return Error{kHandOverUsage};
  return options;
}
