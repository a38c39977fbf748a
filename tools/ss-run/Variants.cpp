//===- Variants.cpp - What --quality compares -----------------------------===//

#include "Options.h"

#include <algorithm>

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
  const struct {
    const char *name;
    bool given;
  } others[] = {{"policy", !texts.policy.empty()},
                {"storage", !texts.storage.empty()},
                {"rounding", !texts.rounding.empty()},
                {"package", !texts.package.empty()},
                {"generate", !texts.generate.empty()},
                {"timing", texts.timing},
                {"stats", texts.stats}};
  for (const auto &[name, given] : others)
    if (given)
      return Error{std::string("--quality: found it with --") + name +
                   ", expected one of the two: it runs policies and storages "
                   "of its own"};
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
    Result<RunOptions> options = checkOptions(one, compiler);
    if (!options)
      return Error{"--quality '" + entry + "': " + options.takeError().message};
    variants.push_back(std::move(*options));
  }
  return variants;
}

std::string ss_run::nameVariant(const RunOptions &options) {
  std::string name = toString(options.policy);
  if (options.storage != Storage::F32)
    name += std::string("/") + toString(options.storage);
  if (options.rounding != Rounding::Nearest)
    name += std::string("/") + toString(options.rounding);
  return name;
}
