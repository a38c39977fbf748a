//===- CudaBenchEngine.h - Steps as replayed graphs -------------*- C++ -*-===//
#ifndef SS_BENCH_CUDABENCHENGINE_H
#define SS_BENCH_CUDABENCHENGINE_H

#include "BenchEngine.h"
#include "CudaSession.h"
#include "EngineStates.h"

#include "sinkstate/sinkstate.h"

namespace ss_bench {

/// An engine on a GPU. Every step of a period is a CUDA graph with all layers.
class CudaBenchEngine final : public BenchEngine {
public:
  CudaBenchEngine(CudaSession &session,
                  std::shared_ptr<const sinkstate::runtime::Package> package,
                  const BenchOptions &options, const RankProfile &profile,
                  int32_t batch, int32_t period, const Shapes &shapes);
  ~CudaBenchEngine() override;

  StateEngine &engine() override { return *states; }
  void useInputs() override;
  void setStaggered(bool staggered, bool decoding) override;
  void restore() override;
  void warmUp(int32_t period) override;
  std::vector<double> runSteps(int32_t first, int32_t count) override;
  std::vector<double> runDecodes() override;
  std::vector<double> serve(int32_t count, int32_t period) override;
  void finish() override { states->synchronize(session.stream()); }
  const std::vector<int32_t> &ranksOf(size_t layer) const override {
    return saved->ranksOf(layer);
  }
  std::vector<int32_t> ranksNow(size_t layer) override {
    return saved->ranksNow(layer);
  }
  int32_t countOf(size_t layer, int32_t slot) const override {
    return saved->countOf(layer, slot);
  }
  void output(size_t layer, int32_t slot, float *y) override;

private:
  using Engine = sinkstate::runtime::cuda::CudaEngine;

  /// On the device: [period, batch, ...] each, and the layers' parameters.
  struct DeviceShape {
    float *q = nullptr, *k = nullptr, *v = nullptr, *gate = nullptr,
          *beta = nullptr, *aLog = nullptr, *dtBias = nullptr;
  };

  const std::vector<LayerManifest> &layers() const;
  float *onDevice(const std::vector<float> &values);
  float *batchOf(const std::vector<float> &values, int32_t distinct);
  void freeInputs();
  ss_decode_args argsOf(size_t layer, int32_t set) const;
  void enqueueStep(int32_t set);
  void enqueueDecode(int32_t set);
  void makeGraphs();
  void freeGraphs();

  CudaSession &session;
  int32_t batch, period;
  const Shapes &shapes;
  std::shared_ptr<const sinkstate::runtime::Package> package;
  std::unique_ptr<Engine> states;
  std::vector<DeviceShape> deviceShapes;
  std::vector<float *> outputs; ///< by layer
  std::unique_ptr<EngineStates> saved;
  std::vector<CudaSession::Graph> steps, decodes; ///< one per step of a period
  int32_t *slots = nullptr;
};

} // namespace ss_bench

#endif
