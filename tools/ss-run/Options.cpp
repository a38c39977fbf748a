//===- Options.cpp - What the user asks of ss-run -------------------------===//

#include "CommandLine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

using namespace ss_run;

namespace {

/// The largest order of the small matrices that a compaction works on.
constexpr int maxCompaction = 64;
constexpr int maxCount = 1 << 30;

template <typename T> bool parseWhole(std::string_view text, T &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads the options one by one and remembers the first thing that is wrong.
class Checker {
public:
  Status status;

  void fail(const char *option, const std::string &found,
            const std::string &expected) {
    if (!status)
      status = Error{dashed(option) + ": found " + found + ", expected " +
                     expected};
  }

  int integer(const char *option, const std::string &text, int byDefault,
              int lowest, int highest, const char *otherwise = "") {
    if (text.empty())
      return byDefault;
    int value = 0;
    if (parseWhole(text, value) && value >= lowest && value <= highest)
      return value;
    fail(option, "'" + text + "'",
         "an integer from " + std::to_string(lowest) + " to " +
             std::to_string(highest) + otherwise);
    return byDefault;
  }

  bool onOff(const char *option, const std::string &text, bool byDefault) {
    if (text.empty())
      return byDefault;
    if (text != "on" && text != "off")
      fail(option, "'" + text + "'", "on or off");
    return text == "on";
  }

  void given(const char *option, const std::string &text,
             const char *expected) {
    if (text.empty())
      fail(option, "nothing", expected);
  }
};

/// fixed:R and sink:R keep R components, compact every R steps and have no frozen
/// part.
void applyPolicy(Checker &checker, const OptionTexts &texts,
                 RunOptions &options) {
  if (!texts.policy.empty()) {
    Result<Policy> policy = parsePolicy(texts.policy);
    if (!policy) {
      if (!checker.status)
        checker.status = policy.takeError();
      return;
    }
    options.policy = *policy;
  }
  const bool isSink = options.policy.kind == PolicyKind::Sink;
  if (isSink)
    checker.given("sink", texts.sink,
                  "a file of --calibrate-sink with --policy sink");
  else if (!texts.sink.empty() && texts.package.empty())
    checker.fail("sink", "a value with --policy " + toString(options.policy),
                 "it with --policy sink:R or a package of form sink");
  if (isSink || options.policy.kind == PolicyKind::Fixed) {
    const int rank = static_cast<int>(options.policy.value);
    const std::string expected = std::to_string(rank) +
                                 " or no such option with --policy " +
                                 toString(options.policy);
    if (options.activeGiven && options.active != rank)
      checker.fail("active", std::to_string(options.active), expected);
    if (options.bufferGiven && options.buffer != rank)
      checker.fail("buffer", std::to_string(options.buffer), expected);
    options.active = options.buffer = rank;
  }
  if (options.active + options.buffer > maxCompaction)
    checker.fail(isSink || options.policy.kind == PolicyKind::Fixed ? "policy"
                                                                  : "buffer",
                 std::to_string(options.active) + " active and " +
                     std::to_string(options.buffer) + " buffered rows",
                 "at most " + std::to_string(maxCompaction) + " together");
}

/// How often, and where; "off" in one of them is "off" in both. A GPU, which
/// consolidates only where it is asked to, is asked by the latter.
void applyConsolidation(Checker &checker, const OptionTexts &texts,
                        RunOptions &options) {
  const bool cuda = options.device == Device::Cuda;
  const std::string &text = texts.consolidation;
  if (!text.empty()) {
    const char *const modes[] = {"off", "inline", "asynchronous",
                                 "deterministic"};
    const auto *found = std::find(std::begin(modes), std::end(modes), text);
    options.consolidation = static_cast<int>(found - std::begin(modes));
    if (found == std::end(modes))
      checker.fail("consolidation", "'" + text + "'",
                   "off, inline, asynchronous or deterministic");
    else if (cuda && text == "inline")
      checker.fail("consolidation", "'inline'",
                   "off, asynchronous or deterministic on cuda, where no call "
                   "waits for the host");
  }
  if (cuda && (text.empty() || text == "off"))
    options.consolidateEvery = 0;
  if (texts.consolidate == "off")
    options.consolidateEvery = 0;
  else
    options.consolidateEvery =
        checker.integer("consolidate", texts.consolidate,
                        options.consolidateEvery, 1, maxCount, " or off");
  const bool never = texts.consolidate == "off";
  if (never && !texts.consolidation.empty() && texts.consolidation != "off")
    checker.fail("consolidation", "'" + texts.consolidation + "'",
                 "no such option with --consolidate off");
  if (texts.consolidation == "off" && !texts.consolidate.empty() && !never)
    checker.fail("consolidate", "'" + texts.consolidate + "'",
                 "no such option with --consolidation off");
}

/// As numbered in ss_log_level.
void applyLog(Checker &checker, const OptionTexts &texts, RunOptions &options) {
  const char *const levels[] = {"off", "error", "warning", "info", "debug"};
  const auto *found =
      std::find(std::begin(levels), std::end(levels), texts.log);
  if (found != std::end(levels))
    options.log = static_cast<int>(found - std::begin(levels));
  else if (!texts.log.empty())
    checker.fail("log", "'" + texts.log + "'",
                 "off, error, warning, info or debug");
}

/// "cpu", "cuda" or "cuda:1". What an engine does by itself depends on it: a
/// GPU consolidates only where it is asked to, and states with a fixed number of
/// rows do not go dense.
void applyDevice(Checker &checker, const OptionTexts &texts,
                 RunOptions &options) {
  const std::string &text = texts.device;
  const std::string_view cuda = "cuda";
  if (text.compare(0, cuda.size(), cuda) == 0) {
    options.device = Device::Cuda;
    options.denseFallback = options.rowCapacity == 0;
    const std::string_view rest = std::string_view(text).substr(cuda.size());
    const bool bare = rest.empty();
    if (!bare &&
        (rest[0] != ':' || !parseWhole(rest.substr(1), options.deviceOrdinal) ||
         options.deviceOrdinal < 0))
      checker.fail("device", "'" + text + "'", "cpu, cuda or cuda:N");
  } else if (!text.empty() && text != "cpu") {
    checker.fail("device", "'" + text + "'", "cpu, cuda or cuda:N");
  }
  if (!texts.rowCapacity.empty() && options.device == Device::Cpu)
    checker.fail("row-capacity", "'" + texts.rowCapacity + "'",
                 "no such option on the CPU, whose states grow by themselves");
}

/// What the dense run uses, and whether there is somebody to compile it.
void applyDenseRun(Checker &checker, const OptionTexts &texts,
                   CompilerHalf compiler, RunOptions &options) {
  const bool canCompile = compiler == CompilerHalf::Present;
  if (!canCompile && options.package.empty())
    checker.fail("package", "nothing",
                 "a folder that ss-compile made: this ss-run was built "
                 "without the compiler");
  const bool hasDense = canCompile || !options.densePackage.empty();
  if (texts.dense == "reference" || (texts.dense.empty() && !hasDense))
    options.dense = DenseRun::Reference;
  else if (!texts.dense.empty() && texts.dense != "compiled")
    checker.fail("dense", "'" + texts.dense + "'", "compiled or reference");
  else if (!hasDense)
    checker.fail("dense", "'compiled'",
                 "--dense-package with it, or reference: this ss-run was built "
                 "without the compiler");
  if (options.dense == DenseRun::Reference && !options.densePackage.empty())
    checker.fail("dense-package", "a value",
                 "none with --dense reference, which uses no kernels");
}

/// A package was compiled with its own policy and sizes.
void checkPackage(Checker &checker, const RunOptions &options) {
  if (options.package.empty())
    return;
  const struct {
    const char *option;
    bool given;
  } fixed[] = {{"policy", options.policyGiven},
               {"core", options.coreGiven},
               {"storage", options.storageGiven},
               {"rounding", options.roundingGiven},
               {"active", options.activeGiven},
               {"buffer", options.bufferGiven}};
  for (const auto &[option, given] : fixed)
    if (given)
      checker.fail(option, "a value",
                   "none with --package, whose kernels have their own");
}

/// Whether two paths name one file, by whatever way.
bool isSameFile(const std::string &one, const std::string &other) {
  std::error_code ignored;
  const auto whole = [&](const std::string &path) {
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(path, ignored), ignored);
  };
  return one == other || whole(one) == whole(other);
}

/// Each of them is a file of its own.
void checkOutputs(Checker &checker, const OptionTexts &texts) {
  const std::pair<const char *, const std::string *> outputs[] = {
      {"json", &texts.json}, {"svg", &texts.svg}, {"ranks", &texts.ranks}};
  for (const auto &later : outputs)
    for (const auto &earlier : outputs) {
      if (&earlier == &later)
        break;
      if (!earlier.second->empty() && !later.second->empty() &&
          isSameFile(*earlier.second, *later.second))
        checker.fail(later.first,
                     "'" + *later.second + "', which " +
                         dashed(earlier.first) + " names too",
                     "another file");
    }
  if (!texts.output.empty())
    checker.fail("o", "a value", "it with --calibrate-sink, whose file it is");
}

std::optional<Storage> storageByName(std::string_view name) {
  for (Storage storage :
       {Storage::F32, Storage::F16, Storage::BF16, Storage::FP8})
    if (name == toString(storage))
      return storage;
  return std::nullopt;
}

/// "fp8", "fp8+kda=f16". That a model has no layers of a type is said where it is
/// imported.
void applyStorage(Checker &checker, const std::string &text, Storages &to) {
  const char *const types[] = {"gdn", "mamba2", "kda"};
  size_t begin = 0;
  for (bool first = true; !text.empty() && begin <= text.size(); first = false) {
    const size_t end = std::min(text.find('+', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = first ? std::string::npos : part.find('=');
    const std::string type =
        equals == std::string::npos ? "" : part.substr(0, equals);
    const auto storage = storageByName(first ? part : part.substr(equals + 1));
    const auto isOf = [&](const auto &other) { return other.first == type; };
    const bool known =
        first || std::find(std::begin(types), std::end(types), type) !=
                     std::end(types);
    if (!storage || !known || std::any_of(to.named.begin(), to.named.end(), isOf))
      return checker.fail("storage", "'" + text + "'",
                          "f32, f16, bf16 or fp8, and behind it +TYPE=STORAGE "
                          "once for layers of type gdn, mamba2 or kda");
    if (first)
      to.others = *storage;
    else
      to.named.emplace_back(type, *storage);
  }
}

void applyKernelChoices(Checker &checker, const OptionTexts &texts,
                        RunOptions &options) {
  if (texts.core == "svd")
    options.core = Core::Svd;
  else if (texts.core == "qr")
    options.core = Core::Qr;
  else if (!texts.core.empty())
    checker.fail("core", "'" + texts.core + "'", "svd or qr");
  applyStorage(checker, texts.storage, options.storage);
  if (texts.rounding == "stochastic")
    options.rounding = Rounding::Stochastic;
  else if (!texts.rounding.empty() && texts.rounding != "nearest")
    checker.fail("rounding", "'" + texts.rounding + "'",
                 "nearest or stochastic");
  const Storages &storage = options.storage;
  if (options.rounding == Rounding::Stochastic && !storage.has(Storage::F16) &&
      !storage.has(Storage::BF16) && !storage.has(Storage::FP8))
    checker.fail("rounding", "'stochastic' with storage f32, which rounds nothing",
                 "a --storage of f16, bf16 or fp8");
}

} // namespace

Result<Policy> ss_run::parsePolicy(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto failed = [&](const char *expected) {
    return Error{"--policy: found '" + std::string(text) + "', expected " +
                 expected};
  };
  Policy policy;
  if (kind == "relative") {
    policy.kind = PolicyKind::Relative;
    if (!parseWhole(value, policy.value) ||
        !(policy.value >= 0 && policy.value < 1))
      return failed("relative:EPS with EPS from 0 to below 1");
  } else if (kind == "fixed" || kind == "sink") {
    policy.kind = kind == "sink" ? PolicyKind::Sink : PolicyKind::Fixed;
    int rank = 0;
    if (!parseWhole(value, rank) || rank < 1 || rank > maxCompaction / 2)
      return failed(kind == "sink" ? "sink:R with an integer R from 1 to 32"
                                   : "fixed:R with an integer R from 1 to 32");
    policy.value = rank;
  } else if (kind == "energy") {
    policy.kind = PolicyKind::Energy;
    if (!parseWhole(value, policy.value) ||
        !(policy.value > 0 && policy.value <= 1))
      return failed("energy:F with F above 0 and at most 1");
  } else if (kind == "budget") {
    policy.kind = PolicyKind::Budget;
    int bytes = 0;
    if (!parseWhole(value, bytes) || bytes < 1)
      return failed("budget:BYTES with an integer of at least 1");
    policy.value = bytes;
  } else {
    return failed("relative:EPS, fixed:R, energy:F, budget:BYTES or sink:R");
  }
  return policy;
}

std::string ss_run::deviceName(const RunOptions &options) {
  if (options.device == Device::Cpu)
    return "cpu";
  return "cuda:" + std::to_string(options.deviceOrdinal);
}

std::string ss_run::toString(const Policy &policy) {
  const char *names[] = {"relative", "fixed", "energy", "budget", "sink"};
  char text[64];
  std::snprintf(text, sizeof(text), "%s:%.10g",
                names[static_cast<int>(policy.kind)], policy.value);
  return text;
}

const char *ss_run::toString(Storage storage) {
  const char *names[] = {"f32", "f16", "bf16", "fp8"};
  return names[static_cast<int>(storage)];
}

bool Storages::has(Storage storage) const {
  return others == storage ||
         std::any_of(named.begin(), named.end(), [&](const auto &one) {
           return one.second == storage;
         });
}

std::string ss_run::toString(const Storages &storages) {
  std::string text = toString(storages.others);
  for (const auto &[type, storage] : storages.named)
    text += "+" + type + "=" + toString(storage);
  return text;
}

const char *ss_run::toString(Rounding rounding) {
  return rounding == Rounding::Nearest ? "nearest" : "stochastic";
}

const char *ss_run::toString(Core core) {
  const char *names[] = {"default", "svd", "qr"};
  return names[static_cast<int>(core)];
}

const char *ss_run::consolidationName(const RunOptions &options) {
  const char *const modes[] = {"off", "inline", "asynchronous",
                               "deterministic"};
  if (options.consolidateEvery == 0)
    return modes[0];
  return options.consolidation < 0 ? "default" : modes[options.consolidation];
}

std::string ss_run::describeEngine(const RunOptions &options) {
  std::string text = "no consolidation";
  if (options.consolidateEvery > 0)
    text = (options.consolidation < 0
                ? "consolidation"
                : consolidationName(options) + std::string(" consolidation")) +
           " every " + std::to_string(options.consolidateEvery) +
           " compactions";
  text += std::string(", dense fallback ") +
          (options.denseFallback ? "on" : "off");
  if (options.rowCapacity > 0)
    text += ", " + std::to_string(options.rowCapacity) + " rows a state";
  return text;
}

Result<RunOptions> ss_run::checkOptions(const OptionTexts &texts,
                                        CompilerHalf compiler) {
  Checker checker;
  RunOptions options;
  checker.given("model", texts.model,
                "a folder with config.json and model.safetensors");
  checker.given("text", texts.text,
                "a file to decode, or a .safetensors file with a tensor "
                "'tokens'");
  options.model = texts.model;
  options.text = texts.text;
  options.package = texts.package;
  options.densePackage = texts.densePackage;
  options.json = texts.json;
  options.sink = texts.sink;
  options.svg = texts.svg;
  options.ranks = texts.ranks;
  options.timing = texts.timing;
  options.stats = texts.stats;
  options.policyGiven = !texts.policy.empty();
  options.coreGiven = !texts.core.empty();
  options.storageGiven = !texts.storage.empty();
  options.roundingGiven = !texts.rounding.empty();
  options.activeGiven = !texts.active.empty();
  options.bufferGiven = !texts.buffer.empty();
  options.denseFallbackGiven = !texts.denseFallback.empty();

  auto integer = [&](const char *name, const std::string &text, int &value,
                     int lowest, int highest) {
    value = checker.integer(name, text, value, lowest, highest);
  };
  integer("tokens", texts.tokens, options.tokens, 1, maxCount);
  const std::string fewer = ": fewer than --tokens";
  options.prefill = checker.integer("prefill", texts.prefill, 0, 0,
                                    options.tokens - 1, fewer.c_str());
  options.from = checker.integer("from", texts.from, options.prefill, 0,
                                 options.tokens - 1, fewer.c_str());
  integer("active", texts.active, options.active, 1, maxCompaction);
  integer("buffer", texts.buffer, options.buffer, 1, maxCompaction);
  integer("batch", texts.batch, options.batch, 1, 1 << 16);
  integer("threads", texts.threads, options.threads, 1, 1024);
  integer("generate", texts.generate, options.generate, 0, maxCount);
  integer("row-capacity", texts.rowCapacity, options.rowCapacity, 0, maxCount);
  applyLog(checker, texts, options);
  applyDevice(checker, texts, options);
  applyConsolidation(checker, texts, options);
  options.denseFallback = checker.onOff("dense-fallback", texts.denseFallback,
                                        options.denseFallback);
  if (!texts.seed.empty() && !parseWhole(texts.seed, options.seed))
    checker.fail("seed", "'" + texts.seed + "'",
                 "an integer from 0 to 18446744073709551615");
  checkOutputs(checker, texts);
  applyDenseRun(checker, texts, compiler, options);
  applyPolicy(checker, texts, options);
  applyKernelChoices(checker, texts, options);
  // Of packages, and of models that have but some types, their layers say it.
  const bool bytesAlone = options.storage.others == Storage::FP8 &&
                          options.storage.named.empty();
  if (bytesAlone && texts.denseFallback == "on")
    checker.fail("dense-fallback", "'on' with storage fp8, whose rows have no "
                 "dense form", "off, or another --storage");
  if (bytesAlone)
    options.denseFallback = false;
  checkPackage(checker, options);
  if (checker.status)
    return std::move(*checker.status);
  return options;
}

Result<CalibrationOptions> ss_run::checkCalibration(const OptionTexts &texts) {
  Checker checker;
  CalibrationOptions options;
  checker.given("model", texts.model,
                "a folder with config.json and model.safetensors");
  checker.given("o", texts.output, "the file to write with --calibrate-sink");
  options.model = texts.model;
  options.text = texts.calibrateSink;
  options.output = texts.output;
  options.tokens = checker.integer("tokens", texts.tokens, options.tokens, 1,
                                   maxCount);
  options.threads =
      checker.integer("threads", texts.threads, options.threads, 1, 1024);
  const char *const own[] = {"calibrate-sink", "model", "o", "tokens",
                             "threads"};
  for (const std::string &name : givenOptions(texts))
    if (std::find(std::begin(own), std::end(own), name) == std::end(own))
      checker.fail(name.c_str(), "a value", "none with --calibrate-sink");
  if (checker.status)
    return std::move(*checker.status);
  return options;
}
