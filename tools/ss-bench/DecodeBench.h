//===- DecodeBench.h - Time of decode steps ---------------------*- C++ -*-===//
#ifndef SS_BENCH_DECODEBENCH_H
#define SS_BENCH_DECODEBENCH_H

#include "BenchEngine.h"
#include "Measured.h"
#include "Recurrence.h"

namespace ss_bench {

/// An engine of one package at one batch size, whose states have the ranks of
/// a profile. Its states come back before every timed period, outside the
/// timing; every step of a period has inputs of its own.
class DecodeBench {
public:
  DecodeBench(BenchMachine &machine, const BenchOptions &options,
              std::shared_ptr<const sinkstate::runtime::Package> package,
              const RankProfile &profile, int32_t batch);

  /// With the inputs of this kind, at staggered positions or not; what else was
  /// measured is forgotten.
  void prepare(DataKind kind, bool staggered);
  /// One period more: its steps, then its decodes alone.
  void timeRound();
  int64_t timedSteps() const { return int64_t(single.size()); }
  /// Checks the kernels, and says what was found.
  Measured result();
  /// Steps as a server has them: states go on for many periods, and the host
  /// looks after memory between steps.
  Served serve(DataKind kind, bool staggered, int32_t steps);

private:
  /// A state that is followed in float64.
  struct Followed {
    size_t layer;
    int32_t slot;
    Recurrence recurrence;
    Semantics semantics;
    bool chosen = false; ///< the semantics
    std::vector<int32_t> ranks; ///< after its last compaction, [heads]
  };

  const std::vector<LayerManifest> &layers() const;
  void countRows(int64_t compactionsBefore);
  void addSizes();
  double meanRankNow();

  // Check.cpp
  void check();
  std::vector<Followed> followedStates() const;
  TokenInputs tokenOf(const Followed &state, int32_t set) const;
  void chooseSemantics(Followed &state, const TokenInputs &token,
                       const std::vector<float> &y) const;
  void follow(Followed &state, int32_t set, bool compacts);
  std::vector<double> allowedLosses(const Followed &state,
                                    const std::vector<int32_t> &after) const;
  static double allowedRounding(const LayerManifest &layer);
  std::span<const float> meansOf(const Followed &state) const;
  std::vector<double> lossesOf(const Followed &state,
                               const std::vector<float> &now,
                               const std::vector<double> &allowed) const;
  void checkCompacted(Followed &state, const std::vector<float> &states);

  int32_t batch, period;
  std::shared_ptr<const sinkstate::runtime::Package> package;
  Shapes shapes;
  std::unique_ptr<BenchEngine> states;
  bool staggered = false;
  Measured found;
  /// Milliseconds: of a step over each period, of single steps, of a step's
  /// decode kernels over each period.
  std::vector<double> whole, single, decodes;
};

/// The smallest of the values that are not below this share of them.
double percentile(std::vector<double> values, double share);

/// Measures them with the same data: where the machine allows it round by
/// round, so that all see the same machine, otherwise one after the other.
/// `steps`: timed of each, at least.
std::vector<Measured> measureTogether(BenchMachine &machine,
                                      std::vector<DecodeBench *> benches,
                                      DataKind kind, bool staggered,
                                      int32_t steps);

} // namespace ss_bench

#endif
