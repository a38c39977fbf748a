//===- CpuBenchEngine.h - Steps on the processor ----------------*- C++ -*-===//
#ifndef SS_BENCH_CPUBENCHENGINE_H
#define SS_BENCH_CPUBENCHENGINE_H

#include "BenchEngine.h"

#include "engine/Engine.h"

#include "sinkstate/sinkstate.h"

#include <map>

namespace ss_bench {

/// An engine on the CPU. States that a profile calls dense are held dense.
class CpuBenchEngine final : public BenchEngine {
public:
  CpuBenchEngine(std::shared_ptr<const sinkstate::runtime::Package> package,
                 const BenchOptions &options, const RankProfile &profile,
                 int32_t batch, int32_t period, const Shapes &shapes);

  StateEngine &engine() override { return *states; }
  void useInputs() override;
  void setStaggered(bool staggered, bool decoding) override;
  void restore() override;
  std::vector<double> runSteps(int32_t first, int32_t count) override;
  std::vector<double> runDecodes() override;
  const std::vector<int32_t> &ranksOf(size_t layer) const override {
    return ranks[layer];
  }
  std::vector<int32_t> ranksNow(size_t layer) override;
  int32_t countOf(size_t layer, int32_t slot) const override;
  void output(size_t layer, int32_t slot, float *y) override;

private:
  /// Rows of some requests' states, which all requests share; for states held
  /// dense a matrix each.
  struct Pattern {
    int32_t requests = 0;
    int64_t capacity = 0; ///< rows of a state
    std::vector<float> rows, matrices;
  };
  /// [period, batch, ...] each.
  struct BatchInputs {
    std::vector<float> q, k, v, gate, beta;
  };

  const std::vector<LayerManifest> &layers() const;
  void drawRanks(const RankProfile &profile, RankOrder order);
  const Pattern &patternOf(size_t layer);
  std::vector<float> batchOf(const std::vector<float> &values,
                             int32_t distinct) const;
  int32_t pairsOf(size_t layer, int32_t slot) const;
  void restoreState(size_t layer, int64_t state, const Pattern &pattern);
  ss_decode_args argsOf(size_t layer, int32_t set);

  int32_t batch, period;
  bool processorTime;
  const Shapes &shapes;
  std::shared_ptr<const sinkstate::runtime::Package> package;
  std::unique_ptr<sinkstate::runtime::Engine> states;
  std::vector<int32_t> slots;
  std::vector<std::vector<int32_t>> ranks; ///< by layer
  std::vector<BatchInputs> inputs;         ///< by shape
  std::vector<std::vector<float>> outputs; ///< by layer, [batch, heads, dv]
  std::vector<int64_t> positions;          ///< by slot, when restored
  bool decoding = false; ///< restored as decodes find states, not steps
  std::map<std::pair<size_t, int64_t>, Pattern> patterns; ///< shape, capacity
};

} // namespace ss_bench

#endif
