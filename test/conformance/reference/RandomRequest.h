//===- RandomRequest.h - Inputs that look like a model's --------*- C++ -*-===//
//
// Random weights of a layer and random tokens of a request. A request's inputs
// depend on its seed and position alone, so that the same request can be
// decoded alone, in a batch, or again later.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_RANDOMREQUEST_H
#define SINKSTATE_REFERENCE_RANDOMREQUEST_H

#include "DenseRecurrence.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sinkstate::reference {

/// Gate parameters of one layer.
struct LayerWeights {
  std::vector<float> aLog, dtBias;
};
LayerWeights randomWeights(const LayerSpec &layer, uint64_t seed);

/// One request's raw inputs for one token in one layer.
struct TokenValues {
  std::vector<float> q, k, v, gate, beta;
  TokenInputs view() const {
    return {q.data(), k.data(), v.data(), gate.data(), beta.data()};
  }
};

/// How a request's tokens are drawn.
struct RequestStyle {
  /// Keys and values lie in a space of this many dimensions, plus noise: the
  /// rank that the state is close to. 0: all dimensions.
  int32_t rank = 0;
  double noise = 0;
  double gateMean = 0; ///< larger: faster decay
  /// Changes what was drawn, by position; none: as drawn.
  std::function<void(int64_t, TokenValues &)> adjust = nullptr;
};

class RandomRequest {
public:
  RandomRequest(const LayerSpec &layer, uint64_t seed,
                RequestStyle style = RequestStyle());
  TokenValues token(int64_t position) const;

private:
  LayerSpec layer;
  uint64_t seed;
  RequestStyle style;
  std::vector<float> keyBasis, valueBasis; ///< [rank, dk], [rank, dv]
};

} // namespace sinkstate::reference

#endif
