//===- Measured.h - What a measurement found --------------------*- C++ -*-===//
#ifndef SS_BENCH_MEASURED_H
#define SS_BENCH_MEASURED_H

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

  double meanRank = 0;           ///< when a period begins
  double meanRankAfter = 0;      ///< when it has ended
  double keptRows = 0;           ///< by a compaction, of its block
  double blockRows = 0;          ///< that a compaction takes
  double compactionsPerState = 0; ///< in a period; 1 where all is well

  double decodeBytes = 0, compactBytes = 0, decodeFlops = 0;
  double stateBytes = 0, allocatedBytes = 0, denseBytes = 0; ///< of all layers

  // Against float64: the exact chain of decodes, and compactions as a share of
  // what the policy allows them to drop.
  double outputError = 0, stateError = 0, compactionError = 0;
  double roundingError = 0; ///< of dense states narrower than f32, at most
  int32_t checkedStates = 0, checkedCompactions = 0;

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
         m.outputError <= kOutputTolerance + m.roundingError &&
         m.stateError <= kStateTolerance + m.roundingError &&
         m.compactionError <= 1;
}

/// The layer shape that baselines are looked up by.
struct ShapeName {
  std::string type;
  int32_t heads = 0, keyHeads = 0, dv = 0, dk = 0;
  bool operator==(const ShapeName &) const = default;
};

/// Everything about one batch size: ours, and the dense form if it was timed.
struct BatchResult {
  int32_t batch = 0;
  std::vector<Measured> ours;
  std::optional<Measured> dense;
};

struct StartResult {
  int32_t layers = 0, kernels = 0;
  double cold = 0, cached = 0; ///< seconds
};

/// All that one call of ss-bench found.
struct BenchResult {
  std::string package, densePackage, profile, device;
  ShapeName shape; ///< of the first layer
  int32_t layers = 0;
  double copyBandwidth = 0; ///< bytes a second, read and written
  std::vector<BatchResult> batches;
  std::optional<StartResult> start;
};

} // namespace ss_bench

#endif
