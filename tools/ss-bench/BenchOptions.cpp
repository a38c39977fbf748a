//===- BenchOptions.cpp - The command line of ss-bench --------------------===//

#include "BenchOptions.h"

#include <charconv>
#include <functional>
#include <map>
#include <optional>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;

const char *const ss_bench::kUsage =
    "expected: ss-bench --package FOLDER [--dense-package FOLDER] [--batch "
    "N,N,...] [--profile nemo4b|qwen9b|uniform:R|trace:FILE] [--data "
    "synthetic,random] [--stagger on,off] [--steps N] [--order "
    "drawn|descending|ascending] [--baselines FILE] [--json FILE] [--svg FILE] "
    "[--start on|off] [--compaction-streams N] [--copy-mib N] [--device N], or ss-bench start --package "
    "FOLDER [--device N]";

namespace {

std::vector<std::string> splitAtCommas(const std::string &text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos)
      return parts;
    begin = comma + 1;
  }
}

std::optional<int32_t> parseNumber(const std::string &text, int32_t least) {
  int32_t number = 0;
  const char *end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < least)
    return std::nullopt;
  return number;
}

std::optional<bool> parseSwitch(const std::string &text) {
  if (text == "on" || text == "off")
    return text == "on";
  return std::nullopt;
}

/// Takes an option's value; an Error with its own words, or nothing taken.
using Taker = std::function<Status(const std::string &)>;

const Error kNotUnderstood{""};

Taker text(std::string &to) {
  return [&to](const std::string &value) -> Status {
    if (value.empty())
      return kNotUnderstood;
    to = value;
    return std::nullopt;
  };
}

Taker number(int32_t &to, int32_t least) {
  return [&to, least](const std::string &value) -> Status {
    auto number = parseNumber(value, least);
    if (!number)
      return kNotUnderstood;
    to = *number;
    return std::nullopt;
  };
}

/// A list with commas whose parts `parse` reads as optional values.
template <typename T, typename Parse>
Taker list(std::vector<T> &to, Parse parse) {
  return [&to, parse](const std::string &value) -> Status {
    to.clear();
    for (const std::string &part : splitAtCommas(value)) {
      auto parsed = parse(part);
      if (!parsed)
        return kNotUnderstood;
      to.push_back(*parsed);
    }
    return std::nullopt;
  };
}

std::map<std::string, Taker> takersOf(BenchOptions &options) {
  std::map<std::string, Taker> takers = {
      {"--package", text(options.package)},
      {"--device", number(options.device, 0)}};
  if (options.startOnly)
    return takers;
  takers["--dense-package"] = text(options.densePackage);
  takers["--profile"] = text(options.profile);
  takers["--json"] = text(options.json);
  takers["--svg"] = text(options.svg);
  takers["--baselines"] = text(options.baselines);
  takers["--steps"] = number(options.steps, 1);
  takers["--compaction-streams"] = number(options.compactionStreams, -1);
  takers["--copy-mib"] = number(options.copyMib, 1);
  takers["--batch"] = list(options.batches, [](const std::string &part) {
    return parseNumber(part, 1);
  });
  takers["--stagger"] = list(options.staggered, parseSwitch);
  takers["--data"] = list(options.data, parseDataKind);
  takers["--start"] = [&](const std::string &value) -> Status {
    auto on = parseSwitch(value);
    options.start = on.value_or(false);
    return on ? Status() : Status(kNotUnderstood);
  };
  takers["--order"] = [&](const std::string &value) -> Status {
    Result<RankOrder> order = parseRankOrder(value);
    if (!order)
      return order.takeError();
    options.order = *order;
    return std::nullopt;
  };
  return takers;
}

} // namespace

Result<BenchOptions>
ss_bench::parseOptions(const std::vector<std::string> &arguments) {
  BenchOptions options;
  size_t i = 0;
  if (!arguments.empty() && !arguments[0].starts_with("-")) {
    options.startOnly = arguments[0] == "start";
    if (!options.startOnly && arguments[0] != "decode")
      return Error{"found '" + arguments[0] + "'; " + kUsage};
    i = 1;
  }
  std::map<std::string, Taker> takers = takersOf(options);
  for (; i < arguments.size(); i += 2) {
    const std::string &name = arguments[i];
    auto taker = takers.find(name);
    if (i + 1 == arguments.size())
      return Error{"option " + name + " has no value; " + kUsage};
    const std::string found = "found '" + name + " " + arguments[i + 1] + "'; ";
    if (taker == takers.end())
      return Error{found + kUsage};
    if (Status wrong = taker->second(arguments[i + 1]))
      return Error{wrong->message.empty() ? found + kUsage : wrong->message};
  }
  if (options.package.empty())
    return Error{kUsage};
  return options;
}
