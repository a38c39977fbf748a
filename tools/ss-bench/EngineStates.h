//===- EngineStates.h - States of an engine that come back ------*- C++ -*-===//
#ifndef SS_BENCH_ENGINESTATES_H
#define SS_BENCH_ENGINESTATES_H

#include "CudaSession.h"
#include "RankProfile.h"
#include "SteadyState.h"

#include "cuda/CudaEngine.h"

#include <map>

namespace ss_bench {

/// The largest rank of a state: what takes the bytes of a dense one, and the
/// same in every storage.
int64_t largestRank(const sinkstate::runtime::LayerLayout &layer);

/// Sets all states of an engine, and sets them again as often as wanted with
/// copies on the device: rows, weights, ranks, buffered pairs' counts and
/// positions. What buffers hold stays.
class EngineStates {
public:
  using Engine = sinkstate::runtime::cuda::CudaEngine;
  using Manifest = sinkstate::runtime::Manifest;

  /// Ranks drawn per state and sorted as `order` says; one SteadyState per
  /// layer.
  EngineStates(CudaSession &session, Engine &engine, const Manifest &manifest,
               int32_t batch, const RankProfile &profile, RankOrder order,
               const std::vector<SteadyState *> &data);
  ~EngineStates();
  EngineStates(const EngineStates &) = delete;
  EngineStates &operator=(const EngineStates &) = delete;

  /// At which positions requests are from the next restore() on: each at its
  /// own modulo the period, or all at the same.
  void setStaggered(bool staggered, int32_t period);
  /// Queues the copies.
  void restore();

  /// Of a layer, [slots * heads]; empty for dense layers.
  const std::vector<int32_t> &ranksOf(size_t layer) const {
    return ranks[layer];
  }
  /// The same, as the engine has them now.
  std::vector<int32_t> ranksNow(size_t layer);
  /// Pairs in the buffers of a slot when restored, of a layer.
  int32_t countOf(size_t layer, int32_t slot) const;

private:
  struct Copy {
    void *to;
    const void *from;
    size_t bytes;
  };
  void *place(int64_t offset) const;
  void *saved(const void *data, size_t bytes);
  void keepTables(size_t layer);
  void keepRows(size_t layer);

  CudaSession &session;
  Engine &engine;
  const Manifest &manifest;
  int32_t batch;
  const std::vector<SteadyState *> data;
  std::vector<std::vector<int32_t>> ranks;  ///< by layer
  std::vector<std::vector<int32_t>> counts; ///< by layer, [slots]
  std::vector<void *> owned, savedCounts;
  void *savedPositions = nullptr;
  struct Pattern {
    void *rows;
    size_t bytes;
  };
  std::map<std::pair<SteadyState *, int64_t>, Pattern> patterns;
  std::vector<std::pair<Copy, size_t>> rowCopies; ///< and the bytes to fill
  std::vector<Copy> tableCopies;
};

} // namespace ss_bench

#endif
