//===- PrefillBackend.cpp - Dense first, then compressed ------------------===//

#include "PrefillBackend.h"

#include <chrono>

using namespace ss_run;
using namespace tiny_hybrid;

PrefillBackend::PrefillBackend(EngineBackend &compressed, const Config &config,
                               int batch, int threads, int tokens)
    : compressed(compressed),
      dense(std::make_unique<DenseBackend>(config, batch, threads)),
      tokens(tokens) {}

Status PrefillBackend::decodeLayer(int layer, const StateInput &input,
                                   float *y) {
  if (dense)
    return dense->decodeLayer(layer, input, y);
  return compressed.decodeLayer(layer, input, y);
}

Status PrefillBackend::endStep() {
  if (!dense)
    return compressed.endStep();
  if (Status status = dense->endStep())
    return status;
  return ++done == tokens ? handOver() : std::nullopt;
}

Status PrefillBackend::handOver() {
  const auto start = std::chrono::steady_clock::now();
  for (const ss_layer_info &layer : compressed.layers())
    if (Status status =
            compressed.initialise(layer.index, dense->states(layer.index)))
      return status;
  if (Status status = compressed.setPosition(tokens))
    return status;
  dense = nullptr;
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                          start)
                .count();
  return std::nullopt;
}
