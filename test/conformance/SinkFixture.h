//===- SinkFixture.h - Engines whose heads have mean values -----*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_SINKFIXTURE_H
#define SINKSTATE_CONFORMANCE_SINKFIXTURE_H

#include "ConformanceTest.h"

#include <cstdint>
#include <vector>

namespace sinkstate::conformance {

/// Mean values of a layer's heads, [heads, dv]; the last of several has none.
std::vector<float> meansOf(const LayerSpec &layer, uint64_t seed);

class SinkFixture : public ConformanceTest {
protected:
  /// An engine with sinks in the layers that take them, or that could.
  struct Sunk : Running {
    explicit Sunk(const Case &parameter, int32_t slots = 1,
                  bool withSinks = true);
    std::vector<std::vector<float>> means;

    /// Values that have much of the mean in them.
    RequestStyle style() const;
  };

  /// |vbar^T (H - H64)| over |vbar| |H64|, of the worst head.
  static double sinkError(Sunk &run, DrivenRequest &request, size_t layer);
};

} // namespace sinkstate::conformance

#endif
