//===- RankProfile.cpp - Ranks as real requests have them -----------------===//

#include "RankProfile.h"

#include <algorithm>
#include <charconv>

using namespace ss_bench;
using sinkstate::Error;

sinkstate::Result<RankProfile> RankProfile::parse(const std::string &text) {
  RankProfile profile;
  profile.text = text;
  if (text == "nemo4b") {
    profile.parts = {{0.22, 2, 8},
                     {0.33, 9, 16},
                     {0.32, 17, 32},
                     {0.11, 33, 48},
                     {0.02, 0, 0}};
    return profile;
  }
  if (text == "qwen9b") {
    profile.parts = {{0.15, 4, 8},
                     {0.20, 9, 16},
                     {0.30, 17, 32},
                     {0.25, 33, 56},
                     {0.10, 0, 0}};
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
  return Error{"rank profile '" + text +
               "', expected nemo4b, qwen9b or uniform:R with R at least 1"};
}

int32_t RankProfile::draw(std::mt19937_64 &random, int32_t most) const {
  double place = std::uniform_real_distribution<double>()(random);
  for (const Part &part : parts) {
    if (place >= part.share && &part != &parts.back()) {
      place -= part.share;
      continue;
    }
    if (part.high == 0)
      return most;
    return std::min(most, std::uniform_int_distribution<int32_t>(
                              part.low, part.high)(random));
  }
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
