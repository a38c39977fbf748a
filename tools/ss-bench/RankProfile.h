//===- RankProfile.h - Ranks as real requests have them ---------*- C++ -*-===//
#ifndef SS_BENCH_RANKPROFILE_H
#define SS_BENCH_RANKPROFILE_H

#include "result/Result.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ss_bench {

/// In which order a launch meets the ranks: as they were drawn, or sorted,
/// which is what a work list by rank would give. Programs are states in their
/// order.
enum class RankOrder { Drawn, Descending, Ascending };

/// "drawn", "descending" or "ascending".
sinkstate::Result<RankOrder> parseRankOrder(const std::string &text);
void sortRanks(std::vector<int32_t> &ranks, RankOrder order);

/// A distribution of stored ranks over heads.
class RankProfile {
public:
  /// "nemo4b", "qwen9b", "uniform:R", or "trace:FILE", a file of the ranks of
  /// a real run: whole numbers with spaces, commas or lines between them, -1 for
  /// a dense state. All are drawn with the same probability.
  static sinkstate::Result<RankProfile> parse(const std::string &text);

  const std::string &name() const { return text; }
  /// A rank of at most `most`; where the profile says dense, `most`.
  int32_t draw(std::mt19937_64 &random, int32_t most) const;

private:
  struct Part {
    double share;
    int32_t low, high; ///< -1: dense
  };
  std::string text;
  std::vector<Part> parts;

  static sinkstate::Result<RankProfile> parseTrace(const std::string &file);
};

} // namespace ss_bench

#endif
