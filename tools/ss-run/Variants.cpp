//===- Variants.cpp - What --quality compares -----------------------------===//

#include "CommandLine.h"

#include <algorithm>
#include <iterator>

using namespace ss_run;

namespace {

/// The parts of a text between separators, empty ones too.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// What belongs to one run alone.
Status checkAlone(const OptionTexts &texts) {
  const char *const ofVariants[] = {"policy", "storage", "rounding", "package"};
  const char *const ofOne[] = {"generate", "seed",   "ranks",
                               "o",        "timing", "stats"};
  const auto isIn = [](const auto &names, const std::string &name) {
    return std::find(std::begin(names), std::end(names), name) !=
           std::end(names);
  };
  for (const std::string &name : givenOptions(texts)) {
    const std::string found = "--quality: found it with " + dashed(name) +
                              ", expected one of the two";
    if (isIn(ofVariants, name))
      return Error{found + ": it runs policies and storages of its own"};
    if (isIn(ofOne, name))
      return Error{found};
  }
  return std::nullopt;
}

/// Every quarter of what is measured has a token, and a sink is of use.
Status checkTogether(const OptionTexts &texts,
                     const std::vector<RunOptions> &variants) {
  const RunOptions &common = variants.front();
  if (common.tokens - common.from < 4)
    return Error{"--quality: found " +
                 std::to_string(common.tokens - common.from) +
                 " tokens to measure, expected at least 4, one for each "
                 "quarter: see --tokens and --from"};
  const auto isSink = [](const RunOptions &options) {
    return options.policy.kind == PolicyKind::Sink;
  };
  if (!texts.sink.empty() &&
      std::none_of(variants.begin(), variants.end(), isSink))
    return Error{"--sink: found a value, expected it with a policy sink:R in "
                 "--quality"};
  return std::nullopt;
}

} // namespace

Result<std::vector<RunOptions>>
ss_run::checkVariants(const OptionTexts &texts, CompilerHalf compiler) {
  if (Status status = checkAlone(texts))
    return std::move(*status);
  if (compiler == CompilerHalf::Absent)
    return Error{"--quality: found it without a compiler, expected an ss-run "
                 "that can compile the kernels of every policy"};
  std::vector<RunOptions> variants;
  for (const std::string &entry : split(texts.quality, ',')) {
    const std::vector<std::string> parts = split(entry, '/');
    if (parts.size() > 3 ||
        std::any_of(parts.begin(), parts.end(),
                    [](const std::string &part) { return part.empty(); }))
      return Error{"--quality: found '" + entry +
                   "', expected POLICY, POLICY/STORAGE or "
                   "POLICY/STORAGE/ROUNDING, separated by commas"};
    OptionTexts one = texts;
    one.quality.clear();
    one.policy = parts[0];
    one.storage = parts.size() > 1 ? parts[1] : "";
    one.rounding = parts.size() > 2 ? parts[2] : "";
    if (!parts[0].starts_with("sink"))
      one.sink.clear();
    Result<RunOptions> options = checkOptions(one, compiler);
    if (!options)
      return Error{"--quality '" + entry + "': " + options.takeError().message};
    variants.push_back(std::move(*options));
  }
  if (Status status = checkTogether(texts, variants))
    return std::move(*status);
  return variants;
}

std::string ss_run::nameVariant(const RunOptions &options) {
  std::string name = toString(options.policy);
  const bool isPlain = options.storage.others == Storage::F32 &&
                       options.storage.named.empty();
  if (!isPlain)
    name += "/" + toString(options.storage);
  if (options.rounding != Rounding::Nearest)
    name += std::string("/") + toString(options.rounding);
  return name;
}
