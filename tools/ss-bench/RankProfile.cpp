//===- RankProfile.cpp - Ranks as real requests have them -----------------===//

#include "RankProfile.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

using namespace ss_bench;
using sinkstate::Error;

/// The rank of a part whose states are dense.
constexpr int32_t kDense = -1;

/// As ss_layer_info::type has them.
constexpr const char *kLayerTypes[] = {"mamba2", "gdn", "kda"};

sinkstate::Result<RankProfile> RankProfile::parse(const std::string &text) {
  RankProfile profile;
  profile.text = text;
  if (text == "nemo4b") {
    profile.parts = {{0.22, 2, 8},
                     {0.33, 9, 16},
                     {0.32, 17, 32},
                     {0.11, 33, 48},
                     {0.02, kDense, kDense}};
    return profile;
  }
  if (text == "qwen9b") {
    profile.parts = {{0.15, 4, 8},
                     {0.20, 9, 16},
                     {0.30, 17, 32},
                     {0.25, 33, 56},
                     {0.10, kDense, kDense}};
    return profile;
  }
  const std::string uniform = "uniform:";
  int32_t rank = 0;
  if (text.rfind(uniform, 0) == 0) {
    const char *end = text.data() + text.size();
    auto parsed = std::from_chars(text.data() + uniform.size(), end, rank);
    if (parsed.ec == std::errc() && parsed.ptr == end && rank >= 1) {
      profile.parts = {{1, rank, rank}};
      return profile;
    }
  }
  const std::string trace = "trace:";
  if (text.rfind(trace, 0) == 0) {
    auto traced = parseTrace(text.substr(trace.size()));
    if (traced)
      traced->text = text;
    return traced;
  }
  return Error{"rank profile '" + text +
               "', expected nemo4b, qwen9b, uniform:R with R at least 1, or "
               "trace:FILE"};
}

RankProfile::Parts RankProfile::partsOf(const Occurrences &times) {
  int64_t count = 0;
  for (const auto &[rank, occurrences] : times)
    count += occurrences;
  Parts parts;
  for (const auto &[rank, occurrences] : times)
    parts.push_back({double(occurrences) / double(count), rank, rank});
  return parts;
}

/// Of a trace, which may be a file without an end.
static constexpr size_t kMostBytes = size_t(64) << 20;

static sinkstate::Result<std::string> readSome(std::istream &stream,
                                               const std::string &file) {
  constexpr size_t kPiece = size_t(1) << 16;
  std::string text;
  while (stream && text.size() <= kMostBytes) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    stream.read(text.data() + before, std::streamsize(kPiece));
    text.resize(before + size_t(stream.gcount()));
  }
  if (text.size() > kMostBytes)
    return Error{file + ": has more than " + std::to_string(kMostBytes) +
                 " bytes, expected a file of ranks"};
  return text;
}

/// The words of a text without comments: between spaces, commas and lines.
static std::vector<std::string> wordsOf(std::istream &stream) {
  std::vector<std::string> words;
  std::string line;
  while (std::getline(stream, line)) {
    if (line.starts_with("#"))
      continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream parts(line);
    words.insert(words.end(), std::istream_iterator<std::string>(parts), {});
  }
  return words;
}

sinkstate::Result<RankProfile>
RankProfile::parseTrace(const std::string &file) {
  std::ifstream stream(file);
  if (!stream)
    return Error{file + ": cannot be read, expected a file of ranks"};
  sinkstate::Result<std::string> read = readSome(stream, file);
  if (!read)
    return Error{read.error()};
  std::map<std::string, Occurrences> ofTypes;
  Occurrences all;
  std::string type;
  int64_t count = 0;
  std::istringstream text(*read);
  for (const std::string &word : wordsOf(text)) {
    if (std::find(std::begin(kLayerTypes), std::end(kLayerTypes), word) !=
        std::end(kLayerTypes)) {
      type = word;
      continue;
    }
    int32_t rank = 0;
    const char *end = word.data() + word.size();
    auto parsed = std::from_chars(word.data(), end, rank);
    if (parsed.ec != std::errc() || parsed.ptr != end || rank < kDense)
      return Error{file + ": rank " + std::to_string(count + 1) + " is '" +
                   word +
                   "', expected whole numbers of at least -1, and the layer "
                   "types mamba2, gdn and kda, with spaces, commas or lines "
                   "between them"};
    ++all[rank], ++count;
    if (!type.empty())
      ++ofTypes[type][rank];
  }
  if (count == 0)
    return Error{file + ": has no ranks, expected at least one"};
  RankProfile profile;
  profile.parts = partsOf(all);
  for (const auto &[name, times] : ofTypes)
    profile.ofTypes[name] = partsOf(times);
  return profile;
}

int32_t RankProfile::draw(std::mt19937_64 &random, int32_t most,
                          const std::string &layerType) const {
  const auto ofType = ofTypes.find(layerType);
  const Parts &from = ofType == ofTypes.end() ? parts : ofType->second;
  double place = std::uniform_real_distribution<double>()(random);
  for (const Part &part : from) {
    if (place >= part.share && &part != &from.back()) {
      place -= part.share;
      continue;
    }
    if (part.high == kDense)
      return kDense;
    return std::min(most, std::uniform_int_distribution<int32_t>(
                              part.low, part.high)(random));
  }
  return most;
}

int32_t RankProfile::largest(const std::string &layerType) const {
  const auto ofType = ofTypes.find(layerType);
  int32_t most = kDense;
  for (const Part &part : ofType == ofTypes.end() ? parts : ofType->second)
    most = std::max(most, part.high);
  return most;
}

sinkstate::Result<RankOrder> ss_bench::parseRankOrder(const std::string &text) {
  if (text == "drawn")
    return RankOrder::Drawn;
  if (text == "descending")
    return RankOrder::Descending;
  if (text == "ascending")
    return RankOrder::Ascending;
  return Error{"order of ranks '" + text +
               "', expected drawn, descending or ascending"};
}

void ss_bench::sortRanks(std::vector<int32_t> &ranks, RankOrder order) {
  if (order == RankOrder::Drawn)
    return;
  std::sort(ranks.begin(), ranks.end());
  if (order == RankOrder::Descending)
    std::reverse(ranks.begin(), ranks.end());
}
