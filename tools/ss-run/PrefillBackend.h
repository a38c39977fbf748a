//===- PrefillBackend.h - Dense first, then compressed ----------*- C++ -*-===//
//
// What an engine does with a prompt: its tokens go through the dense recurrence,
// the dense states become compressed ones (ss_state_init), and decoding goes on
// from those.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TOOLS_SS_RUN_PREFILLBACKEND_H
#define SINKSTATE_TOOLS_SS_RUN_PREFILLBACKEND_H

#include "DenseBackend.h"
#include "EngineBackend.h"

#include <memory>

namespace ss_run {

class PrefillBackend : public tiny_hybrid::StateBackend {
public:
  /// The first `tokens` tokens, at least 1, are dense.
  PrefillBackend(tiny_hybrid::EngineBackend &compressed,
                 const tiny_hybrid::Config &config, int batch, int threads,
                 int tokens);

  tiny_hybrid::Status decodeLayer(int layer,
                                  const tiny_hybrid::StateInput &input,
                                  float *y) override;
  tiny_hybrid::Status endStep() override;

  /// Seconds that the hand-over took.
  double initSeconds() const { return seconds; }

private:
  tiny_hybrid::Status handOver();

  tiny_hybrid::EngineBackend &compressed;
  std::unique_ptr<tiny_hybrid::DenseBackend> dense; ///< until the hand-over
  int tokens;
  int done = 0;
  double seconds = 0;
};

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_PREFILLBACKEND_H
