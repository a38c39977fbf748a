//===- SteadyState.h - Data as a request has it after many steps -*- C++ -*-===//
//
// States and inputs for which a compaction keeps about as many rows as it took,
// so that ranks stay where a profile puts them: the directions that come again
// are in the states already, and what is new is below the policy's threshold.
// The other end, new directions in every token, is DataKind::Random.
//
//===----------------------------------------------------------------------===//
#ifndef SS_BENCH_STEADYSTATE_H
#define SS_BENCH_STEADYSTATE_H

#include "result/Result.h"

#include "package/Manifest.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ss_bench {

enum class DataKind {
  Synthetic, ///< keys and values of a window are one direction and some noise
  Random     ///< independent keys and values: a compaction keeps all its rows
};
const char *nameOf(DataKind kind);
/// "synthetic" or "random".
sinkstate::Result<DataKind> parseDataKind(const std::string &text);

/// Inputs of some requests for a number of steps: [sets, requests, ...], each
/// as ss_decode_args has it. Keys and queries have unit length.
struct StepInputs {
  int32_t sets = 0, requests = 0;
  std::vector<float> q, k, v, gate, beta;
};

/// The data of all layers that have one shape.
class SteadyState {
public:
  using Layer = sinkstate::runtime::LayerManifest;

  explicit SteadyState(const Layer &layer);

  /// Whether another layer can use the same data.
  bool serves(const Layer &other) const;

  StepInputs inputs(DataKind kind, int32_t sets, int32_t requests);
  /// [heads] and [heads] or [heads, dk]: a token decays a state by about 1.2 %.
  std::vector<float> aLog() const;
  std::vector<float> dtBias() const;
  /// Rows [v | u] of unit vectors for `slots` requests whose states have
  /// `capacity` rows each. Row 0 is the direction that the inputs come back to.
  std::vector<float> rows(int32_t slots, int64_t capacity);
  /// [heads, dv], of a layer of form sink: the unit vector that values come back
  /// to, and of row 0. The other rows are orthogonal to it.
  const std::vector<float> &meanValues() const { return values; }
  /// Falls geometrically from 1 to just above what the policy drops.
  void weights(int32_t rank, float *out) const;

  /// The share of a state's largest weight below which the policy drops; where
  /// it says so in another way, 1e-2.
  double threshold() const { return eps; }

private:
  void randomUnit(float *out, int64_t size);
  /// A unit vector orthogonal to `axis`.
  void unitAside(float *out, const float *axis, int64_t size);
  /// A unit vector at `distance` from `axis`.
  void unitNear(float *out, const float *axis, double distance, int64_t size);
  const float *keyOf(int32_t keyHead) const;
  const float *valueOf(int32_t head) const;

  Layer layer;
  double eps;
  std::mt19937_64 random{1};
  std::vector<float> normals; ///< drawn once, used from any place on
  size_t nextNormal = 0;
  std::vector<float> keys, values; ///< [key_heads, dk], [heads, dv]
};

} // namespace ss_bench

#endif
