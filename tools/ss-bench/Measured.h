//===- Measured.h - What a measurement found --------------------*- C++ -*-===//
#ifndef SS_BENCH_MEASURED_H
#define SS_BENCH_MEASURED_H

#include "PackageLayers.h"

#include "engine/MemoryParts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace ss_bench {

/// The dense forms of the same model that are measured beside it.
enum class DenseForm : size_t {
  Dense,    ///< reads and writes in every step
  Deferred, ///< writes once in K steps
  DenseF32, ///< beside narrow rows: the first of them in f32
};
constexpr DenseForm kDenseForms[] = {DenseForm::Dense, DenseForm::Deferred,
                                     DenseForm::DenseF32};
/// Something of each of them.
template <typename T> class OfForms {
public:
  T &operator[](DenseForm form) { return all[size_t(form)]; }
  const T &operator[](DenseForm form) const { return all[size_t(form)]; }

private:
  std::array<T, std::size(kDenseForms)> all{};
};
/// "own_dense", as the JSON's keys begin.
const char *keyOf(DenseForm form);

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
  OfForms<double> denseSteps;

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
  /// Of those compactions, the ones whose policy says what they may drop.
  int32_t judgedCompactions = 0;
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
  OfForms<std::optional<Measured>> dense;

  /// What was measured together: ours, then the given dense forms.
  void add(const std::vector<Measured> &found,
           const std::vector<DenseForm> &forms) {
    Measured mine = found[0];
    for (size_t i = 0; i < forms.size(); ++i) {
      mine.denseSteps[forms[i]] = found[i + 1].step;
      if (!dense[forms[i]])
        dense[forms[i]] = found[i + 1];
    }
    ours.push_back(mine);
  }
  /// The same dense forms for all of ours.
  void compareAll() {
    for (Measured &m : ours)
      for (DenseForm form : kDenseForms)
        m.denseSteps[form] = dense[form] ? dense[form]->step : 0;
  }
};

struct StartResult {
  int32_t layers = 0, kernels = 0;
  double compile = 0; ///< seconds, in this process; 0: a package
  /// Seconds, of an engine of one slot; the last one beside another engine.
  double cold = 0, cached = 0, beside = 0;
};

/// What ran the kernels, for programs; empty where nothing says so.
struct MachineFacts {
  std::string name;   ///< of the GPU or the processor
  std::string cuda;   ///< the newest CUDA that the driver serves: "13.0"
  std::string driver; ///< the driver's own version: "580.95.05"
};

/// All that one call of ss-bench found.
struct BenchResult {
  std::string model; ///< a package, a preset or a graph
  std::string storage; ///< of all layers: "f16"; "fp8 and f16"
  OfForms<std::string> denseStorage; ///< the same of the dense forms there are
  /// How the states of every layer are kept, as the manifest says.
  std::vector<ss_tools::PackageLayer> states;
  MachineFacts machine;
  std::string profile, device;
  std::vector<std::string> notes; ///< what a reader must know, in lines
  ShapeName shape; ///< of the first layer
  int32_t layers = 0;
  double copyBandwidth = 0; ///< bytes a second, read and written
  std::vector<BatchResult> batches;
  std::vector<Served> served;
  std::optional<StartResult> start;

  /// "own dense"; where rows are narrow "own dense f16".
  std::string nameOf(DenseForm form) const;
};

} // namespace ss_bench

#endif
