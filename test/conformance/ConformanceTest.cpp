//===- ConformanceTest.cpp - What every test of the suite has -------------===//

#include "ConformanceTest.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace sinkstate::conformance {
namespace {

/// "Suite" without the prefix of the instantiation.
std::string plainName(const char *qualified, char separator, bool last) {
  std::string name = qualified;
  size_t at = name.find(separator);
  if (at == std::string::npos)
    return name;
  return last ? name.substr(at + 1) : name.substr(0, at);
}

ss_engine_options configured(ss_engine_options options, const Case &parameter) {
  parameter.backEnd->configure(options);
  return options;
}

std::vector<LayerSpec> scheduledLayers(const Case &parameter) {
  std::vector<LayerSpec> layers = parameter.graph->layers;
  Engine engine(parameter.backEnd->model(*parameter.graph).package(),
                configured(optionsFor(1), parameter));
  for (size_t i = 0; i < layers.size(); ++i) {
    const ss_layer_info info = engine.layerInfo(int32_t(i));
    layers[i].phase = info.phase;
    layers[i].before = info.compacts_before;
  }
  return layers;
}

} // namespace

std::ostream &operator<<(std::ostream &stream, const Case &parameter) {
  return stream << parameter.backEnd->name() << "_" << parameter.graph->name;
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  return testing::PrintToString(info.param);
}

std::vector<Case> casesOf(const std::vector<std::string> &graphs) {
  std::vector<Case> cases;
  for (const std::unique_ptr<BackEnd> &backEnd : backEnds())
    for (const std::string &graph : graphs)
      cases.push_back({backEnd.get(), &graphNamed(graph)});
  return cases;
}

void ConformanceTest::SetUp() {
  const BackEnd &backEnd = *GetParam().backEnd;
  if (std::string reason = backEnd.unavailable(); !reason.empty())
    GTEST_SKIP() << backEnd.name() << ": " << reason;
  const testing::TestInfo &info =
      *testing::UnitTest::GetInstance()->current_test_info();
  const std::string suite = plainName(info.test_suite_name(), '/', true);
  const std::string test = suite + "." + plainName(info.name(), '/', false);
  for (const auto &[name, reason] : backEnd.unsupported())
    if (name == suite || name == test)
      GTEST_SKIP() << backEnd.name() << ": " << reason;
}

ss_engine_options optionsFor(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.threads = 1;
  return options;
}

ss_engine_options plainOptions(int32_t slots) {
  ss_engine_options options = optionsFor(slots);
  options.dense_fallback = 0;
  options.consolidate_every = 0;
  return options;
}

Running::Running(const Case &parameter, const ss_engine_options &options,
                 bool withOracle)
    : layers(scheduledLayers(parameter)),
      engine(parameter.backEnd->model(*parameter.graph).package(),
             configured(options, parameter)),
      driver(engine, layers, withOracle) {}

DrivenRequest Running::request(uint64_t seed, RequestStyle style) {
  DrivenRequest request(layers, seed, std::move(style));
  request.slot = engine.allocateSlot();
  return request;
}

bool Running::compactsNext(const DrivenRequest &request, size_t layer) const {
  const LayerSpec &spec = layers[layer];
  return !spec.denseForm && spec.isPhase(request.position) &&
         (request.position > 0 || !spec.compactsBefore());
}

double Running::errorBeforeCompactions(
    const StepResult &result, const std::vector<size_t> &compacted) const {
  double worst = 0;
  for (size_t layer = 0; layer < layers.size(); ++layer)
    if (!layers[layer].compactsBefore() ||
        std::find(compacted.begin(), compacted.end(), layer) == compacted.end())
      worst = std::max(worst, result.errors[layer]);
  return worst;
}

std::vector<std::vector<float>> rowOf(const StepResult &result, size_t b,
                                      const std::vector<LayerSpec> &layers) {
  std::vector<std::vector<float>> rows;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    auto begin = result.y[layer].begin() +
                 std::ptrdiff_t(b * size_t(layers[layer].valueFloats()));
    rows.emplace_back(begin, begin + layers[layer].valueFloats());
  }
  return rows;
}

} // namespace sinkstate::conformance
