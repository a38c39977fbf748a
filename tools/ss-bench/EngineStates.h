//===- EngineStates.h - States of an engine that come back ------*- C++ -*-===//
#ifndef SS_BENCH_ENGINESTATES_H
#define SS_BENCH_ENGINESTATES_H

#include "BenchEngine.h"
#include "CudaSession.h"
#include "RankProfile.h"
#include "SteadyState.h"

#include "cuda/CudaEngine.h"

#include <map>
#include <span>
#include <tuple>

namespace ss_bench {

/// Sets all states of an engine, and sets them again as often as wanted with
/// copies on the device: rows, weights, ranks, buffered pairs' counts and
/// positions, and where rows are in pools, their blocks and what is free. What
/// buffers hold stays.
class EngineStates {
public:
  using Engine = sinkstate::runtime::cuda::CudaEngine;

  /// Ranks drawn per state and sorted as `order` says; one SteadyState per
  /// layer.
  EngineStates(CudaSession &session, Engine &engine, const Manifest &manifest,
               int32_t batch, const RankProfile &profile, RankOrder order,
               const std::vector<SteadyState *> &data);
  ~EngineStates();
  EngineStates(const EngineStates &) = delete;
  EngineStates &operator=(const EngineStates &) = delete;

  /// At which positions requests are from the next restore() on: each at its
  /// own modulo the period, or all at the same. `decoding`: see BenchEngine.
  void setStaggered(bool staggered, bool decoding, int32_t period);
  /// Queues the copies.
  void restore();

  /// Of a layer, [slots * heads], -1: dense; empty for layers of dense form.
  const std::vector<int32_t> &ranksOf(size_t layer) const {
    return ranks[layer];
  }
  /// The same, as the engine has them now.
  std::vector<int32_t> ranksNow(size_t layer);
  /// Pairs in the buffers of a slot when restored, of a layer.
  int32_t countOf(size_t layer, int32_t slot) const;

private:
  using Piece = ss::Piece;
  struct Copy {
    void *to;
    const void *from;
    size_t bytes;
  };
  /// Rows of so many requests, every state with `capacity` of them, and the
  /// weights of a state of any rank, [rank, capacity].
  struct Pattern {
    std::byte *rows = nullptr;
    float *weights = nullptr;
    int32_t slots = 0;
    int64_t capacity = 0;
  };

  void *place(int64_t offset) const;
  void *saved(const void *data, size_t bytes);
  void drawRanks(size_t layer, const RankProfile &profile, RankOrder order,
                 std::mt19937_64 &random);
  const Pattern &patternOf(size_t layer, int64_t capacity);
  std::vector<int64_t> basesOf(size_t layer);
  void addPieces(size_t layer, std::vector<Piece> &pieces);
  void keepTables();

  CudaSession &session;
  Engine &engine;
  const Manifest &manifest;
  int32_t batch;
  const std::vector<SteadyState *> data;
  std::vector<std::vector<int32_t>> ranks;  ///< by layer
  std::vector<std::vector<int32_t>> counts; ///< by layer, [slots]
  std::vector<int64_t> positions;           ///< [slots]
  std::vector<void *> owned;
  using PatternKey =
      std::tuple<SteadyState *, int64_t, sinkstate::runtime::Storage>;
  std::map<PatternKey, Pattern> patterns;
  const Piece *pieces = nullptr; ///< rows and weights of all states
  int64_t pieceCount = 0;
  std::vector<Copy> tables;
  /// Where counts and positions are kept: by layer, null without a buffer.
  std::vector<void *> savedCounts;
  void *savedPositions = nullptr;
};

} // namespace ss_bench

#endif
