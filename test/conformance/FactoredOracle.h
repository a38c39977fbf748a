//===- FactoredOracle.h - A layer's compacted states in float64 -*- C++ -*-===//
//
// Runs the factored states of one request and layer under the layer's policy,
// beside the exact recurrence: what an engine should come close to, and how far
// truncation may take it from the exact state.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_FACTOREDORACLE_H
#define SINKSTATE_CONFORMANCE_FACTOREDORACLE_H

#include "RandomRequest.h"
#include "Reference.h"

#include <vector>

namespace sinkstate::conformance {

class FactoredOracle {
public:
  /// `consolidateEvery`: compactions between two consolidations; 0: never.
  FactoredOracle(const reference::LayerSpec &layer,
                 const reference::LayerWeights &weights,
                 int32_t consolidateEvery = 0);

  /// One token; compacts where the schedule says so. Returns y [heads, dv].
  reference::Vector step(const reference::TokenValues &token);

  struct Head {
    numerics::FactoredState factored;
    numerics::DenseState exact;
    /// An upper bound of |H - H_exact|_F: what was dropped, decayed since.
    double bound = 0;
    int32_t compactions = 0;
  };
  const std::vector<Head> &heads() const { return states; }

private:
  numerics::Policy policy() const;
  void compact(Head &head) const;
  void compactDue();

  reference::LayerSpec layer;
  reference::LayerWeights weights;
  int32_t consolidateEvery;
  int64_t position = 0;
  std::vector<Head> states;
};

} // namespace sinkstate::conformance

#endif
