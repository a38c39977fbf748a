//===- BenchOptions.cpp - The command line of ss-bench --------------------===//

#include "BenchOptions.h"

#include "CommandOptions.h"

#include <algorithm>
#include <optional>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;

namespace {

const char *const decodeOverview =
    R"(ss-bench: times of a model's kernels

Prints Markdown tables of a step, whose compactions are amortised over whole
periods, and of the decode kernels alone: microseconds per layer and step,
bytes, bandwidth, memory, and the error against float64.

Usage: ss-bench --package FOLDER [options]
       ss-bench --preset NAME|--model FOLDER|--graph FILE [options]
       ss-bench start|init|hand-over ...: see ss-bench start --help and so on
)";

const char *const startOverview =
    R"(ss-bench start: times how long an engine takes to be made

Prints the seconds with an empty kernel cache, with every kernel cached, and the
same beside another engine: without making the GPU's context.

Usage: ss-bench start --package FOLDER [options]
       ss-bench start --preset NAME|--model FOLDER|--graph FILE [options]
)";

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

/// A word and what it means.
template <typename T> using Words = std::vector<std::pair<std::string, T>>;

template <typename T>
std::string join(const Words<T> &words, const std::string &separator,
                 const std::string &last) {
  std::string text = words.front().first;
  for (size_t i = 1; i < words.size(); ++i)
    text += (i + 1 == words.size() ? last : separator) + words[i].first;
  return text;
}

template <typename T>
bool takeWord(const Words<T> &words, const std::string &text, T &to) {
  for (const auto &[word, meaning] : words)
    if (word == text) {
      to = meaning;
      return true;
    }
  return false;
}

template <typename T>
Option wordOption(std::string name, std::string help, Words<T> words, T &to) {
  return {std::move(name), join<T>(words, "|", "|"),
          join<T>(words, ", ", " or "), std::move(help),
          [words, &to](const std::string &text) {
            return takeWord(words, text, to);
          }};
}

/// A list with commas whose parts `parse` reads: something that is false where
/// it does not understand one.
template <typename T, typename Parse>
Option listOption(std::string name, std::string value, std::string expected,
                  std::string help, Parse parse, std::vector<T> &to) {
  return {std::move(name), std::move(value), std::move(expected),
          std::move(help), [parse, &to](const std::string &text) {
            to.clear();
            for (const std::string &part : splitAtCommas(text)) {
              const auto parsed = parse(part);
              if (!parsed)
                return false;
              to.push_back(*parsed);
            }
            return true;
          }};
}

/// Lists of words with commas between them.
template <typename T>
Option wordsOption(std::string name, std::string help, Words<T> words,
                   std::vector<T> &to) {
  const std::string all = join<T>(words, ",", ",");
  const std::string expected = join<T>(words, ", ", " or ") + ", or " + all;
  auto parse = [words](const std::string &text) -> std::optional<T> {
    T meaning{};
    return takeWord(words, text, meaning) ? std::optional(meaning)
                                          : std::nullopt;
  };
  return listOption(std::move(name), all, expected, std::move(help), parse, to);
}

const Words<bool> onOff = {{"on", true}, {"off", false}};

std::optional<int32_t> parseCount(const std::string &text) {
  int32_t count = 0;
  return parseWhole(text, count) && count >= 1 ? std::optional(count)
                                               : std::nullopt;
}

Option orderOption(RankOrder &to) {
  return {"--order", "drawn|descending|ascending",
          "drawn, descending or ascending",
          "how ranks follow each other in a batch (drawn)",
          [&to](const std::string &text) {
            const Result<RankOrder> order = parseRankOrder(text);
            to = order ? *order : to;
            return bool(order);
          }};
}

/// What is measured and where, of `ss-bench start` too.
std::vector<Option> sourceOptions(BenchOptions &options) {
  return {textOption("--package", "FOLDER", "a folder",
                     "kernels that ss-compile made", options.package),
          textOption("--preset", "NAME", "the name of a model",
                     "compile a published model, such as Kimi-Linear-48B-A3B",
                     options.preset),
          textOption("--model", "FOLDER", "a config.json or its folder",
                     "compile the model of a config.json", options.model),
          textOption("--graph", "FILE", "a file as ss-import writes it",
                     "compile a model state graph", options.graph),
          textOption("--storage", "f32|f16|bf16|fp8[+TYPE=STORAGE]",
                     "f32, f16, bf16 or fp8",
                     "of what is compiled: element type of stored rows (f32)",
                     options.storage),
          textOption("--policy", "KIND:VALUE",
                     "a policy such as relative:0.003, fixed:16 or sink:16",
                     "of a preset or model: what a compaction keeps",
                     options.policy),
          textOption("--core", "svd|qr", "svd or qr",
                     "of a preset or model: how a compaction decomposes (svd "
                     "for fixed and sink, else by layer type)",
                     options.core),
          numberOption("--active",
                       "of a preset or model: components that take part in a "
                       "compaction (8)",
                       options.active, 1),
          numberOption("--buffer",
                       "of a preset or model: tokens between two compactions "
                       "(8)",
                       options.buffer, 1),
          deviceOption("where the states are (cuda)",
                       [&](bool cuda, int32_t ordinal) {
                         options.device =
                             cuda ? DeviceKind::Cuda : DeviceKind::Cpu;
                         options.ordinal = ordinal;
                       }),
          threadsOption(options.threads)};
}

/// Which other forms and what of a state are measured.
std::vector<Option> stateOptions(BenchOptions &options) {
  return {
      wordOption("--dense",
                 "of what is compiled: measure the dense forms beside it (on)",
                 onOff, options.dense),
      wordOption("--explain",
                 "of what is compiled: say what the compiler chose for every "
                 "kernel, and why (off)",
                 onOff, options.explain),
      textOption("--dense-package", "FOLDER", "a folder",
                 "of a package: one of dense form beside it",
                 options.densePackage),
      textOption("--deferred-package", "FOLDER", "a folder",
                 "of a package: one of deferred form beside it",
                 options.deferredPackage),
      textOption("--dense-f32-package", "FOLDER", "a folder",
                 "of a package with narrow rows: one of dense form in f32 "
                 "beside it",
                 options.denseF32Package),
      listOption("--batch", "N,N,...",
                 "whole numbers from 1 to " + std::to_string(INT32_MAX) +
                     " with commas between them",
                 "requests of a step (1,8,32,128,512)", parseCount,
                 options.batches),
      profileOption("ranks of the states (nemo4b)", options.profile),
      orderOption(options.order),
      listOption("--data", "synthetic,random",
                 "synthetic or random, or synthetic,random",
                 "what states and tokens are made of (synthetic)",
                 parseDataKind, options.data),
      wordsOption("--stagger",
                  "whether requests compact at different steps (on,off)", onOff,
                  options.staggered)};
}

/// How it is measured, and what is written.
std::vector<Option> measureOptions(BenchOptions &options) {
  return {
      numberOption("--steps", "steps that are timed at least (1000)",
                   options.steps, 1),
      wordOption("--clock",
                 "wall: times as they pass; processor: those of one thread on a "
                 "busy CPU (wall)",
                 Words<bool>{{"wall", false}, {"processor", true}},
                 options.processorTime),
      copyOption(options.copyMib),
      numberOption("--compaction-streams",
                   "cuda: streams of compactions, 0: what the engine chooses, "
                   "-1: none (0)",
                   options.compactionStreams, -1),
      wordOption("--rows",
                 "cuda: rows from pools, or the same number for all states "
                 "(pools)",
                 Words<RowMemory>{{"pools", RowMemory::Pools},
                                  {"fixed", RowMemory::Fixed}},
                 options.rows),
      numberOption("--serve",
                   "cuda: steps timed without coming back in between, 0: none "
                   "(0)",
                   options.serve, 0),
      wordsOption("--consolidation",
                  "with --serve: exact SVDs beside decoding (off)",
                  Words<Consolidation>{{nameOf(Consolidation::Off),
                                        Consolidation::Off},
                                       {nameOf(Consolidation::Asynchronous),
                                        Consolidation::Asynchronous}},
                  options.consolidation),
      wordOption("--start", "also what ss-bench start prints (off)", onOff,
                 options.start),
      textOption("--baselines", "FILE", "a file of scripts/dense-baselines.py",
                 "times of other kernels to compare with", options.baselines),
      textOption("--json", "FILE", "a file", "write the figures to FILE",
                 options.json),
      textOption("--svg", "FILE", "a file", "draw the times into FILE",
                 options.svg)};
}

Command commandOf(BenchOptions &options) {
  if (options.startOnly)
    return {"ss-bench start", startOverview, sourceOptions(options)};
  Command command = {"ss-bench", decodeOverview, sourceOptions(options)};
  for (auto &more : {stateOptions(options), measureOptions(options)})
    command.options.insert(command.options.end(), more.begin(), more.end());
  return command;
}

/// What options say together.
Status check(const BenchOptions &options) {
  int sources = 0;
  for (const std::string *source :
       {&options.package, &options.preset, &options.model, &options.graph})
    sources += !source->empty();
  if (sources != 1)
    return Error{"found " + std::to_string(sources) +
                 " of --package, --preset, --model and --graph, expected one: "
                 "see ss-bench --help"};
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
      (options.rows == RowMemory::Fixed || options.serve > 0 ||
       options.compactionStreams != 0))
    return Error{"--rows fixed, --serve or --compaction-streams was given, "
                 "expected it with --device cuda"};
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
              "--deferred-package", compiledHere),
        needs(!options.denseF32Package.empty(), !compiled,
              "--dense-f32-package", compiledHere)})
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
  size_t first = 0;
  if (!arguments.empty() && !arguments[0].starts_with("-")) {
    options.startOnly = arguments[0] == "start";
    if (!options.startOnly && arguments[0] != "decode")
      return Error{"found '" + arguments[0] +
                   "'; expected decode, start, init, hand-over or an option: "
                   "see ss-bench --help"};
    first = 1;
  }
  const Command command = commandOf(options);
  Result<bool> help = takeOptions(command, arguments, first);
  if (!help)
    return help.takeError();
  if (*help) {
    options.help = helpText(command);
    return options;
  }
  if (Status wrong = check(options))
    return *wrong;
  return options;
}
