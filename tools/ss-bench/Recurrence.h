//===- Recurrence.h - A state in float64, by its definition -----*- C++ -*-===//
#ifndef SS_BENCH_RECURRENCE_H
#define SS_BENCH_RECURRENCE_H

#include "package/Manifest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ss_bench {

/// What a layer's kernels do that its manifest does not say; the kernels'
/// outputs tell which of a few forms they have.
struct Semantics {
  double queryScale = 1;  ///< 1 or dk^-1/2
  double betaScale = 1;   ///< 1 or 2
  bool boundedGate = false; ///< log-decay -5 sigmoid(..) in place of softplus

  static std::vector<Semantics>
  candidates(const sinkstate::runtime::LayerManifest &layer);
};

/// One token of one request, as ss_decode_args has it.
struct TokenInputs {
  const float *q, *k, *v, *gate, *beta, *aLog, *dtBias;
};

/// All heads of one layer and request (docs/state-math.md section 1). Keys and
/// queries are taken to have unit length already.
class Recurrence {
public:
  explicit Recurrence(const sinkstate::runtime::LayerManifest &layer)
      : layer(layer),
        h(size_t(layer.heads) * size_t(layer.dv) * size_t(layer.dk)) {}

  /// [heads, dv, dk].
  void set(const std::vector<float> &states);
  /// Takes a token in; y [heads, dv].
  void step(const TokenInputs &token, const Semantics &semantics,
            std::vector<double> &y);

  /// y [heads, dv] of the state as it is, for the query of a token.
  void read(const TokenInputs &token, const Semantics &semantics,
            std::vector<double> &y) const;

  /// The largest |y - y64| / (|H| |q|) over heads.
  double outputError(const float *y, const std::vector<double> &expected,
                     const Semantics &semantics) const;
  /// |H' - H| / |H| of every head.
  std::vector<double> stateErrors(const std::vector<float> &states) const;

  /// What the best approximation of every head by `rank` components leaves out,
  /// |H - H_rank| / |H|, from the singular values.
  /// With mean values [heads, dv]: of what is orthogonal to a head's, the same
  /// share of all of H; a head whose mean value is zeros has no sink.
  std::vector<double> tails(int32_t rank,
                            std::span<const float> means = {}) const;
  /// What other states differ by in the direction of the heads' mean values,
  /// |vbar^T (H' - H)| / (|vbar| |H|).
  std::vector<double> sinkErrors(const std::vector<float> &states,
                                 std::span<const float> means) const;

private:
  double logDecay(const TokenInputs &token, const Semantics &semantics,
                  int64_t head, int64_t channel) const;
  double writeWeight(const TokenInputs &token, const Semantics &semantics,
                     int64_t head) const;
  double norm(int64_t head) const;
  int64_t size() const { return int64_t(layer.dv) * layer.dk; }

  sinkstate::runtime::LayerManifest layer;
  std::vector<double> h;
};

} // namespace ss_bench

#endif
