//===- ConformanceTest.h - What every test of the suite has -----*- C++ -*-===//
//
// Tests take a back end and a graph:
//
//   class Chains : public ConformanceTest {};
//   TEST_P(Chains, AreExact) { Running run(GetParam(), optionsFor(1)); ... }
//   INSTANTIATE_TEST_SUITE_P(Conformance, Chains,
//                            onEveryBackEnd({"gdn_64x128"}), caseName);
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_CONFORMANCETEST_H
#define SINKSTATE_CONFORMANCE_CONFORMANCETEST_H

#include "BackEnd.h"
#include "RequestDriver.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sinkstate::conformance {

using reference::DrivenRequest;
using reference::LayerSpec;
using reference::RequestDriver;
using reference::RequestStyle;
using reference::StepResult;
using reference::TokenValues;

/// A back end and one of the suite's graphs.
struct Case {
  BackEnd *backEnd;
  const Graph *graph;
};
std::ostream &operator<<(std::ostream &stream, const Case &parameter);

/// "<back end>_<graph>"
std::string caseName(const testing::TestParamInfo<Case> &info);

std::vector<Case> casesOf(const std::vector<std::string> &graphs);
inline auto onEveryBackEnd(const std::vector<std::string> &graphs) {
  return testing::ValuesIn(casesOf(graphs));
}

/// Skips, with the reason, what a back end cannot run.
class ConformanceTest : public testing::TestWithParam<Case> {
protected:
  void SetUp() override;
};

/// One thread, the given number of slots, the device's defaults otherwise.
ss_engine_options optionsFor(int32_t slots);
/// The same, but factors stay as compaction leaves them.
ss_engine_options plainOptions(int32_t slots);

/// An engine of a back end over a graph, with a driver.
struct Running {
  explicit Running(const Case &parameter,
                   const ss_engine_options &options = optionsFor(1),
                   bool withOracle = true);

  /// A request that owns a slot.
  DrivenRequest request(uint64_t seed, RequestStyle style = RequestStyle());
  /// The layers as the package has them: with the phases of its schedule.
  const std::vector<LayerSpec> layers;
  Engine engine;
  RequestDriver driver;

  /// The request's next step compacts this layer.
  bool compactsNext(const DrivenRequest &request, size_t layer) const;
  /// The largest error of an output, but for layers of `compacted` that had been
  /// compacted when their token was decoded.
  double errorBeforeCompactions(const StepResult &result,
                                const std::vector<size_t> &compacted) const;
};

/// Row b of every layer's y.
std::vector<std::vector<float>> rowOf(const StepResult &result, size_t b,
                                      const std::vector<LayerSpec> &layers);

} // namespace sinkstate::conformance

#endif
