//===- Measurement.h - Decodes a text with both kinds of states -*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_MEASUREMENT_H
#define SINKSTATE_TOOLS_SS_RUN_MEASUREMENT_H

#include "Decoder.h"
#include "Result.h"
#include "StateBackend.h"
#include "TokenSource.h"

#include "sinkstate/sinkstate.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ss_run {

/// A recurrent layer whose ranks are followed.
struct ProbedLayer {
  std::string type;
  int index = 0; ///< place in the whole model
  int heads = 0;
  int fullRank = 0; ///< min(dk, dv); a dense state counts as this rank
};

/// Looks at the compressed states between two steps.
class StateProbe {
public:
  virtual ~StateProbe() = default;
  virtual const std::vector<ProbedLayer> &layers() const = 0;
  /// Stored rank of every head of a layer; -1: dense.
  virtual tiny_hybrid::Result<std::vector<int32_t>> ranks(int layer,
                                                          int request) = 0;
  virtual tiny_hybrid::Result<ss_statistics> statistics() = 0;
  /// How many states have dropped components for lack of rows; an error where
  /// one is not sound.
  virtual tiny_hybrid::Result<int> check() = 0;
};

/// Ranks of all states of one layer type, over all steps and requests.
struct RankSummary {
  double mean = 0;
  int max = 0;
  double denseShare = 0; ///< share of the states that were held dense
};

/// Ranks of the first request, for the heat map.
struct RankHistory {
  std::vector<ProbedLayer> layers;
  /// [step][head], the heads of all layers in order; -1: dense.
  std::vector<std::vector<int32_t>> steps;
};

struct StateBytes {
  int64_t dense = 0;
  double liveMean = 0;
  int64_t livePeak = 0;
  int64_t allocatedPeak = 0;
  int64_t snapshots = 0; ///< of all requests, at the end; 0: not asked for
};

struct Measurement {
  double bitsPerByteDense = 0;
  double bitsPerByteCompressed = 0;
  double divergence = 0; ///< nats
  StateBytes bytes;
  tiny_hybrid::DecodeTimes dense, compressed;
  std::map<std::string, RankSummary> ranks; ///< by layer type
  ss_statistics statistics{};               ///< of the compressed engine
  int tightenedStates = 0; ///< dropped components for lack of rows
  RankHistory history;
  std::string generated;
};

struct MeasureOptions {
  int tokens = 1024;
  int from = 0; ///< tokens before this one are decoded and not measured
  int batch = 1;
  int threads = 1;
  int generate = 0;
  uint64_t seed = 0;
  /// Called after every step with the number of tokens done; may be empty.
  std::function<void(int)> progress;
};

/// Decodes the text with both backends, token by token and side by side, so
/// that both see the same machine.
tiny_hybrid::Result<Measurement>
measure(const tiny_hybrid::Model &model, const TokenSource &text,
        tiny_hybrid::StateBackend &dense, tiny_hybrid::StateBackend &compressed,
        StateProbe &probe, const MeasureOptions &options);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_MEASUREMENT_H
