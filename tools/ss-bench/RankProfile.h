//===- RankProfile.h - Ranks as real requests have them ---------*- C++ -*-===//
#ifndef SS_BENCH_RANKPROFILE_H
#define SS_BENCH_RANKPROFILE_H

#include "result/Result.h"

#include <cstdint>
#include <map>
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
  /// a dense state; from a layer type's name on they are those of its layers. A
  /// line that begins with '#' is a comment. All ranks of a layer's type, or of
  /// the file where it has none of that type, are drawn with the same
  /// probability. `ss-run --ranks` writes such files.
  static sinkstate::Result<RankProfile> parse(const std::string &text);

  const std::string &name() const { return text; }
  /// A rank of at most `most` for a state of a layer of that type; -1: dense.
  int32_t draw(std::mt19937_64 &random, int32_t most,
               const std::string &layerType = "") const;

  /// The largest rank that draw() may give where nothing bounds it; -1: all are
  /// dense.
  int32_t largest(const std::string &layerType) const;

private:
  struct Part {
    double share;
    int32_t low, high; ///< -1: dense
  };
  using Parts = std::vector<Part>;
  /// How often each rank occurs.
  using Occurrences = std::map<int32_t, int64_t>;

  static Parts partsOf(const Occurrences &times);
  static sinkstate::Result<RankProfile> parseTrace(const std::string &file);

  std::string text;
  Parts parts;                          ///< of layers of any type
  std::map<std::string, Parts> ofTypes; ///< of those of one
};

} // namespace ss_bench

#endif
