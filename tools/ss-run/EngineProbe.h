//===- EngineProbe.h - The compressed states of an engine -------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_ENGINEPROBE_H
#define SINKSTATE_TOOLS_SS_RUN_ENGINEPROBE_H

#include "EngineBackend.h"
#include "Measurement.h"

namespace ss_run {

class EngineProbe : public StateProbe {
public:
  explicit EngineProbe(const tiny_hybrid::EngineBackend &backend);

  const std::vector<ProbedLayer> &layers() const override { return infos; }
  tiny_hybrid::Result<std::vector<int32_t>> ranks(int layer,
                                                  int request) override {
    return backend.ranks(layer, request);
  }
  tiny_hybrid::Result<ss_statistics> statistics() override {
    return backend.statistics();
  }
  tiny_hybrid::Result<int> check() override { return backend.checkStates(); }

private:
  const tiny_hybrid::EngineBackend &backend;
  std::vector<ProbedLayer> infos;
};

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_ENGINEPROBE_H
