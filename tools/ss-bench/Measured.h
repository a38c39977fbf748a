//===- Measured.h - What a measurement found --------------------*- C++ -*-===//
#ifndef SS_BENCH_MEASURED_H
#define SS_BENCH_MEASURED_H

#include "engine/MemoryParts.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ss_bench {

/// The kernels of one package at one batch size. Times are microseconds per
/// layer and step; bytes and operations are those of one layer and step.
struct Measured {
  int32_t batch = 0;
  std::string data; ///< "synthetic" or "random"
  bool staggered = false;

  double step = 0;       ///< decode and compaction, median of whole periods
  double decodeOnly = 0; ///< the decode kernels alone, same states
  double stepMedian = 0; ///< of single steps, all layers, microseconds
  double stepP99 = 0;
  int64_t timedSteps = 0;

  /// Steps of the dense forms that were measured with it; 0: none was.
  double denseStep = 0, deferredStep = 0;

  double heldDense = 0;          ///< share of the states, of factored layers
  double meanRank = 0;           ///< when a period begins, of the others
  double meanRankAfter = 0;      ///< when it has ended
  double keptRows = 0;           ///< by a compaction, of its block
  double blockRows = 0;          ///< that a compaction takes
  double compactionsPerState = 0; ///< in a period; 1 where all is well

  double decodeBytes = 0, compactBytes = 0, decodeFlops = 0;
  double stateBytes = 0, denseBytes = 0; ///< of all layers
  // Of the engine: held now, at most, and of that in rows, buffers and tables.
  double allocatedBytes = 0, peakBytes = 0, usedBytes = 0;
  /// What the allocated bytes are for, as the engine accounts for them.
  std::vector<sinkstate::runtime::MemoryPart> memory;
  int64_t tightened = 0; ///< compactions that had too little memory

  // Against float64: the exact chain of decodes, and compactions as a share of
  // what the policy allows them to drop.
  double outputError = 0, stateError = 0, compactionError = 0;
  int32_t checkedStates = 0, checkedCompactions = 0;
  /// What states may differ by more because their storage rounds them.
  double rounding = 0;

  double compaction() const { return step - decodeOnly; }
  double compactionShare() const { return step > 0 ? compaction() / step : 0; }
};

/// A decode must not be further from float64 than this, as a share of |H| |q|.
constexpr double kOutputTolerance = 2e-5;
/// A state after decodes, as a share of |H|.
constexpr double kStateTolerance = 2e-5;

/// Whether the kernels computed what they should.
inline bool isCorrect(const Measured &m) {
  return m.checkedStates > 0 &&
         m.outputError <= kOutputTolerance + m.rounding &&
         m.stateError <= kStateTolerance + m.rounding &&
         m.compactionError <= 1 && m.tightened == 0;
}

/// Steps of an engine that goes on, all layers, microseconds.
struct Served {
  int32_t batch = 0;
  std::string data, consolidation;
  bool staggered = false;
  int64_t steps = 0;
  double stepMedian = 0, stepP99 = 0, stepLongest = 0;
  double meanRank = 0, meanRankAfter = 0; ///< of states in factors
  int64_t landed = 0, dropped = 0;        ///< results of consolidation
  int64_t tightened = 0;
  double allocatedBytes = 0, peakBytes = 0, usedBytes = 0, liveBytes = 0,
         denseBytes = 0;
};

/// The layer shape that baselines are looked up by.
struct ShapeName {
  std::string type;
  int32_t heads = 0, keyHeads = 0, dv = 0, dk = 0;
  bool operator==(const ShapeName &) const = default;
};

/// Everything about one batch size: ours, and the dense forms that were timed.
struct BatchResult {
  int32_t batch = 0;
  std::vector<Measured> ours;
  std::optional<Measured> dense;    ///< reads and writes in every step
  std::optional<Measured> deferred; ///< writes once in K steps

  /// What was measured together: ours, then the dense forms there are.
  void add(const std::vector<Measured> &found, bool hasDense,
           bool hasDeferred) {
    Measured mine = found[0];
    size_t next = 1;
    auto take = [&](bool has, std::optional<Measured> &form, double &step) {
      if (!has)
        return;
      step = found[next].step;
      if (!form)
        form = found[next];
      ++next;
    };
    take(hasDense, dense, mine.denseStep);
    take(hasDeferred, deferred, mine.deferredStep);
    ours.push_back(mine);
  }
  /// The same dense forms for all of ours.
  void compareAll() {
    for (Measured &m : ours) {
      m.denseStep = dense ? dense->step : 0;
      m.deferredStep = deferred ? deferred->step : 0;
    }
  }
};

struct StartResult {
  int32_t layers = 0, kernels = 0;
  double compile = 0;          ///< seconds, in this process; 0: a package
  double cold = 0, cached = 0; ///< seconds, of an engine of one slot
};

/// All that one call of ss-bench found.
struct BenchResult {
  std::string model; ///< a package, a preset or a graph
  std::string storage; ///< of the first layer
  int32_t buffer = 0, active = 0;
  std::string profile, device;
  ShapeName shape; ///< of the first layer
  int32_t layers = 0;
  double copyBandwidth = 0; ///< bytes a second, read and written
  std::vector<BatchResult> batches;
  std::vector<Served> served;
  std::optional<StartResult> start;
};

} // namespace ss_bench

#endif
