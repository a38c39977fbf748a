//===- RequestDriver.h - Decodes random requests ----------------*- C++ -*-===//
//
// Feeds requests to an engine, step by step and layer by layer, and carries
// the dense recurrence of each beside it. Works with any package made from the
// same layers, whoever compiled its kernels.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_REFERENCE_REQUESTDRIVER_H
#define SINKSTATE_REFERENCE_REQUESTDRIVER_H

#include "RandomRequest.h"

#include "sinkstate/sinkstate.hpp"

#include <functional>
#include <map>
#include <memory>

namespace sinkstate::reference {

/// One request: its inputs and its exact states, one per layer.
class DrivenRequest {
public:
  DrivenRequest(const std::vector<LayerSpec> &layers, uint64_t seed,
                RequestStyle style = RequestStyle());

  int32_t slot = -1;
  int64_t position = 0;
  RandomRequest &inputs(size_t layer) { return layerInputs[layer]; }
  DenseRecurrence &exact(size_t layer) { return layerExact[layer]; }

private:
  std::vector<RandomRequest> layerInputs;
  std::vector<DenseRecurrence> layerExact;
};

struct StepResult {
  /// y of every layer, [batch, heads, dv].
  std::vector<std::vector<float>> y;
  /// Largest |y - y64| / (|H|_F |q|) of a head, of all layers and by layer.
  double worstError = 0;
  std::vector<double> errors;
};

class RequestDriver {
public:
  /// `withOracle`: carry the dense recurrences and measure errors.
  RequestDriver(Engine &engine, std::vector<LayerSpec> layers,
                bool withOracle = true);

  ~RequestDriver();

  /// One token of every request in every layer; null: a padding row.
  StepResult step(const std::vector<DrivenRequest *> &batch);

  /// Largest |H - H64|_F / |H64|_F over the heads of a layer.
  double stateError(DrivenRequest &request, size_t layer);

  /// Makes the engine's state the exact one, so that errors from here on are
  /// those of the steps that follow.
  void rebase(DrivenRequest &request, size_t layer);

  const LayerWeights &weights(size_t layer) const {
    return layerWeights[layer];
  }

  /// Queues a whole step over the arrays of this batch size.
  void enqueue(size_t batch, void *stream);
  /// The decodes of a step that has begun.
  void enqueueLayers(size_t batch, void *stream);
  void enqueueLayer(size_t batch, size_t layer, void *stream);
  /// Replaces what runs a step once its inputs are there: enqueue(n, nullptr)
  /// (or the replay of a graph that captured it).
  void setSubmit(std::function<void(size_t)> run) { submit = std::move(run); }

private:
  struct LayerBatch;
  struct Batch;
  struct DeviceWeights;

  Batch &batchOf(size_t n);
  double headError(size_t layer, DrivenRequest &request,
                   const TokenValues &token, const float *y);

  Engine &engine;
  std::vector<LayerSpec> layers;
  std::vector<LayerWeights> layerWeights;
  std::vector<DeviceWeights> deviceWeights;
  std::map<size_t, std::unique_ptr<Batch>> batches; ///< by batch size
  bool withOracle;
  std::function<void(size_t)> submit;
};

} // namespace sinkstate::reference

#endif
