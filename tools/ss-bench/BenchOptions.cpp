//===- BenchOptions.cpp - The command line of ss-bench --------------------===//

#include "BenchOptions.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;

const char *const ss_bench::kUsage =
    "expected: ss-bench --package FOLDER [--dense-package FOLDER] "
    "[--deferred-package FOLDER], or ss-bench --preset NAME|--model "
    "FOLDER|--graph FILE [--storage f32|f16|bf16] [--policy KIND:VALUE] "
    "[--active N] [--buffer N] [--core svd|qr] [--dense on|off] [--explain on|off]; and [--device "
    "cpu|cuda|cuda:N] [--threads N] [--clock wall|processor] [--batch N,N,...] [--profile "
    "nemo4b|qwen9b|uniform:R|trace:FILE] [--data synthetic,random] [--stagger "
    "on,off] [--steps N] [--order drawn|descending|ascending] [--baselines "
    "FILE] [--json FILE] [--svg FILE] [--start on|off] [--compaction-streams N] [--copy-mib N] "
    "[--rows pools|fixed] [--serve STEPS] [--consolidation off,async]; or "
    "ss-bench start with what is to be started and the device";

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

std::optional<Consolidation> parseConsolidation(const std::string &text) {
  for (Consolidation kind : {Consolidation::Off, Consolidation::Asynchronous})
    if (text == nameOf(kind))
      return kind;
  return std::nullopt;
}

/// "cpu", "cuda", "cuda:1"
Taker device(BenchOptions &options) {
  return [&options](const std::string &value) -> Status {
    if (value == "cpu" || value == "cuda") {
      options.device = value == "cpu" ? DeviceKind::Cpu : DeviceKind::Cuda;
      return std::nullopt;
    }
    const std::string prefix = "cuda:";
    auto ordinal = value.starts_with(prefix)
                       ? parseNumber(value.substr(prefix.size()), 0)
                       : std::nullopt;
    if (!ordinal)
      return kNotUnderstood;
    options.device = DeviceKind::Cuda;
    options.ordinal = *ordinal;
    return std::nullopt;
  };
}

Taker onOff(bool &to) {
  return [&to](const std::string &value) -> Status {
    auto on = parseSwitch(value);
    to = on.value_or(to);
    return on ? Status() : Status(kNotUnderstood);
  };
}

std::map<std::string, Taker> takersOf(BenchOptions &options) {
  std::map<std::string, Taker> takers = {
      {"--package", text(options.package)},
      {"--preset", text(options.preset)},
      {"--model", text(options.model)},
      {"--graph", text(options.graph)},
      {"--storage", text(options.storage)},
      {"--policy", text(options.policy)},
      {"--core", text(options.core)},
      {"--active", number(options.active, 1)},
      {"--buffer", number(options.buffer, 1)},
      {"--device", device(options)},
      {"--threads", number(options.threads, 0)}};
  if (options.startOnly)
    return takers;
  takers["--clock"] = [&](const std::string &value) -> Status {
    options.processorTime = value == "processor";
    return options.processorTime || value == "wall" ? Status()
                                                    : Status(kNotUnderstood);
  };
  takers["--explain"] = onOff(options.explain);
  takers["--dense"] = onOff(options.dense);
  takers["--dense-package"] = text(options.densePackage);
  takers["--deferred-package"] = text(options.deferredPackage);
  takers["--profile"] = text(options.profile);
  takers["--json"] = text(options.json);
  takers["--svg"] = text(options.svg);
  takers["--baselines"] = text(options.baselines);
  takers["--steps"] = number(options.steps, 1);
  takers["--compaction-streams"] = number(options.compactionStreams, -1);
  takers["--rows"] = [&](const std::string &value) -> Status {
    options.rows = value == "fixed" ? RowMemory::Fixed : RowMemory::Pools;
    return options.rows == RowMemory::Fixed || value == "pools"
               ? Status()
               : Status(kNotUnderstood);
  };
  takers["--serve"] = number(options.serve, 0);
  takers["--consolidation"] = list(options.consolidation, parseConsolidation);
  takers["--copy-mib"] = number(options.copyMib, 1);
  takers["--batch"] = list(options.batches, [](const std::string &part) {
    return parseNumber(part, 1);
  });
  takers["--stagger"] = list(options.staggered, parseSwitch);
  takers["--data"] = list(options.data, parseDataKind);
  takers["--start"] = onOff(options.start);
  takers["--order"] = [&](const std::string &value) -> Status {
    Result<RankOrder> order = parseRankOrder(value);
    if (!order)
      return order.takeError();
    options.order = *order;
    return std::nullopt;
  };
  return takers;
}

/// What options say together.
Status check(const BenchOptions &options) {
  int sources = 0;
  for (const std::string *source :
       {&options.package, &options.preset, &options.model, &options.graph})
    sources += !source->empty();
  if (sources != 1)
    return Error{"found " + std::to_string(sources) +
                 " of --package, --preset, --model and --graph, expected one; " +
                 kUsage};
  if (options.processorTime &&
      (options.device != DeviceKind::Cpu || options.threads != 1))
    return Error{"--clock processor was given, expected it with --device cpu "
                 "--threads 1: threads that wait count too"};
  const bool consolidates =
      std::find(options.consolidation.begin(), options.consolidation.end(),
                Consolidation::Asynchronous) != options.consolidation.end();
  if (consolidates && options.serve == 0)
    return Error{"--consolidation async was given, expected it with --serve "
                 "STEPS: no state is consolidated within the one period after "
                 "which others come back"};
  if (options.device == DeviceKind::Cpu &&
      (options.rows == RowMemory::Fixed || options.serve > 0))
    return Error{"--rows fixed or --serve was given, expected it with --device "
                 "cuda"};
  const bool compiled = options.package.empty();
  const bool imported = compiled && options.graph.empty();
  auto needs = [](bool given, bool allowed, const char *name,
                  const char *because) -> Status {
    if (!given || allowed)
      return std::nullopt;
    return Error{std::string(name) + " was given, but " + because +
                 ", expected it left out"};
  };
  const char *const fromGraph = "a package or a graph brings its own";
  const char *const fromPackage = "a package brings its own";
  const char *const compiledHere = "dense forms are compiled here";
  for (const Status &wrong :
       {needs(!options.storage.empty(), compiled, "--storage", fromPackage),
        needs(!options.policy.empty(), imported, "--policy", fromGraph),
        needs(!options.core.empty(), imported, "--core", fromGraph),
        needs(options.active > 0, imported, "--active", fromGraph),
        needs(options.buffer > 0, imported, "--buffer", fromGraph),
        needs(options.explain, compiled, "--explain", fromPackage),
        needs(!options.densePackage.empty(), !compiled, "--dense-package",
              compiledHere),
        needs(!options.deferredPackage.empty(), !compiled,
              "--deferred-package", compiledHere)})
    if (wrong)
      return wrong;
  return std::nullopt;
}

} // namespace

const char *ss_bench::nameOf(Consolidation kind) {
  return kind == Consolidation::Off ? "off" : "async";
}

const std::string &BenchOptions::source() const {
  for (const std::string *source : {&package, &preset, &model})
    if (!source->empty())
      return *source;
  return graph;
}

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
  if (Status wrong = check(options))
    return *wrong;
  return options;
}
