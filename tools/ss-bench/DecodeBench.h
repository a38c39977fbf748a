//===- DecodeBench.h - Time of decode steps on a GPU ------------*- C++ -*-===//
#ifndef SS_BENCH_DECODEBENCH_H
#define SS_BENCH_DECODEBENCH_H

#include "BenchOptions.h"
#include "CudaSession.h"
#include "EngineStates.h"
#include "Measured.h"
#include "Recurrence.h"

#include "sinkstate/sinkstate.h"

namespace ss_bench {

/// An engine of one package at one batch size, whose states have the ranks of
/// a profile. Its states come back before every timed period, outside the
/// timing; every step of a period has inputs of its own.
class DecodeBench {
public:
  DecodeBench(CudaSession &session, const BenchOptions &options,
              const std::string &package, const RankProfile &profile,
              int32_t batch);
  ~DecodeBench();

  /// With the inputs of this kind, at staggered positions or not.
  Measured run(DataKind kind, bool staggered);

private:
  using Engine = sinkstate::runtime::cuda::CudaEngine;
  using LayerManifest = sinkstate::runtime::LayerManifest;

  /// What layers of one shape share: inputs of `period` steps, on both sides.
  struct Shape {
    std::unique_ptr<SteadyState> data;
    StepInputs host;
    std::vector<float> hostALog, hostDtBias;
    float *q = nullptr, *k = nullptr, *v = nullptr, *gate = nullptr,
          *beta = nullptr, *aLog = nullptr, *dtBias = nullptr;
  };
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
  void makeShapes();
  float *batchOf(const std::vector<float> &values, int32_t parts);
  void makeInputs(DataKind kind);
  void freeInputs();
  ss_decode_args argsOf(size_t layer, int32_t set) const;
  void enqueueStep(int32_t set);
  void enqueueDecode(int32_t set);
  void makeGraphs();
  void freeGraphs();

  void timePeriods(Measured &result);
  void timeDecode(Measured &result);
  void countRows(Measured &result, int64_t compactionsBefore);
  void addSizes(Measured &result);

  // Check.cpp
  void check(Measured &result);
  std::vector<Followed> followedStates() const;
  TokenInputs tokenOf(const Followed &state, int32_t set) const;
  void chooseSemantics(Followed &state, const TokenInputs &token,
                       const std::vector<float> &y) const;
  void follow(Followed &state, int32_t set, bool compacts, Measured &result);
  void checkCompacted(Followed &state, const std::vector<float> &states,
                      Measured &result);

  CudaSession &session;
  BenchOptions options;
  int32_t batch, period = 1;
  std::shared_ptr<const sinkstate::runtime::Package> package;
  std::unique_ptr<Engine> engine;
  std::vector<Shape> shapes;
  std::vector<size_t> shapeOf; ///< by layer
  std::vector<float *> outputs; ///< by layer
  std::unique_ptr<EngineStates> states;
  std::vector<CudaSession::Graph> steps, decodes; ///< one per step of a period
  int32_t *slots = nullptr;
};

} // namespace ss_bench

#endif
