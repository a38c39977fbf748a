//===- BenchEngine.h - An engine to be measured -----------------*- C++ -*-===//
//
// What a benchmark needs of a device: states that come back, and times of the
// steps of a period. Two implementations: CudaBenchEngine replays captured
// graphs, CpuBenchEngine calls the engine.
//
//===----------------------------------------------------------------------===//
#ifndef SS_BENCH_BENCHENGINE_H
#define SS_BENCH_BENCHENGINE_H

#include "BenchOptions.h"
#include "Measured.h"
#include "SteadyState.h"

#include "engine/StateEngine.h"

#include <memory>
#include <span>
#include <vector>

namespace ss_bench {

using sinkstate::runtime::LayerManifest;
using sinkstate::runtime::Manifest;
using sinkstate::runtime::StateEngine;

/// What the layers of one shape share: the inputs of a period's steps.
struct Shape {
  std::unique_ptr<SteadyState> data;
  StepInputs inputs; ///< [period, distinct requests, ...]
  std::vector<float> aLog, dtBias;
};

/// Of a model: which layers have which shape.
struct Shapes {
  std::vector<Shape> all;
  std::vector<size_t> ofLayer;

  explicit Shapes(const Manifest &manifest);
  void makeInputs(DataKind kind, int32_t period, int32_t distinct);
  const Shape &of(size_t layer) const { return all[ofLayer[layer]]; }
};

/// Gives the heads of every layer of form sink their mean values; before slots are
/// handed out.
void setMeanValues(StateEngine &engine, const Manifest &manifest,
                   const Shapes &shapes);

/// Elements of one token's arrays in a layer.
struct TokenSizes {
  int64_t keys, values, gates, betas;
  explicit TokenSizes(const LayerManifest &layer);
};

/// An engine with a slot per request. Its states have the ranks of a profile
/// and come back with restore(); what buffers hold stays.
class BenchEngine {
public:
  virtual ~BenchEngine() = default;

  virtual StateEngine &engine() = 0;
  /// Takes the shapes' inputs over, for whole batches; steps of a period follow
  /// each other from then on with inputs of their own.
  virtual void useInputs() = 0;
  /// At which positions requests are from the next restore() on: each at its
  /// own modulo the period, or all at the same. `decoding`: with the buffers that
  /// a layer's decode finds, not those that a step does, which may be full.
  virtual void setStaggered(bool staggered, bool decoding) = 0;
  virtual void restore() = 0;
  /// Steps of two periods, so that every buffer has its rhythm and there is
  /// memory for what the steps take.
  virtual void warmUp(int32_t period);

  /// Runs steps [first, first + count) of a period: every layer's decode and
  /// compaction, and the bookkeeping. Milliseconds of each.
  virtual std::vector<double> runSteps(int32_t first, int32_t count) = 0;
  /// The same for the decode kernels of a period alone; states stay.
  virtual std::vector<double> runDecodes() = 0;
  /// `count` steps from the beginning of a period on, period after period, with
  /// what a host does between steps.
  virtual std::vector<double> serve(int32_t count, int32_t period);
  /// Waits until nothing is under way any more, consolidation included.
  virtual void finish() { engine().synchronize(nullptr); }

  /// When restored, of a layer, [slots * heads]; -1: dense. Empty for layers of
  /// dense form.
  virtual const std::vector<int32_t> &ranksOf(size_t layer) const = 0;
  /// The same, as the engine has them now.
  virtual std::vector<int32_t> ranksNow(size_t layer) = 0;
  /// Pairs in the buffers of a slot when restored, of a factored layer.
  virtual int32_t countOf(size_t layer, int32_t slot) const = 0;
  /// The last outputs of a slot in a layer, [heads, dv].
  virtual void output(size_t layer, int32_t slot, float *y) = 0;
};

/// A device, and what it says of itself.
class BenchMachine {
public:
  virtual ~BenchMachine() = default;
  virtual std::string description() const = 0;
  virtual MachineFacts facts() const = 0;
  /// Bytes read and written per second by copies of `bytes` bytes.
  virtual double copyBandwidth(size_t bytes) = 0;
  /// Whether engines that are measured beside each other, round by round, fit
  /// together; otherwise one is measured after the other.
  virtual bool measuresTogether() const = 0;
  virtual std::unique_ptr<BenchEngine>
  makeEngine(std::shared_ptr<const sinkstate::runtime::Package> package,
             const BenchOptions &options, const RankProfile &profile,
             int32_t batch, int32_t period, const Shapes &shapes) = 0;
};

std::unique_ptr<BenchMachine> openCpu(int32_t threads, bool processorTime);
/// Throws where there is no GPU.
std::unique_ptr<BenchMachine> openCuda(int32_t device);

/// Steps after which all layers' schedules repeat: the largest buffer, 1 where
/// no layer has one.
int32_t periodOf(const Manifest &manifest);

/// Where requests are when they are restored: far from the first token.
int64_t startingPosition(int32_t slot, bool staggered, int32_t period);
/// What `count` of a layer with a buffer is at that position.
int32_t startingCount(const LayerManifest &layer, int64_t position);
/// The same within a step, where a layer's decode begins.
int32_t decodingCount(const LayerManifest &layer, int64_t position);

} // namespace ss_bench

#endif
