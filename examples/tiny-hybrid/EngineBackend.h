//===- EngineBackend.h - States kept by SinkState ---------------*- C++ -*-===//
#ifndef TINY_HYBRID_ENGINE_BACKEND_H
#define TINY_HYBRID_ENGINE_BACKEND_H

#include "Config.h"
#include "DeviceStaging.h"
#include "StateBackend.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <vector>

namespace tiny_hybrid {

/// Owns an ss_engine with one slot per request of the batch.
class EngineBackend : public StateBackend {
public:
  /// The package must have exactly the recurrent layers of the model.
  /// `options.slots` is set to the batch. The package may be closed afterwards.
  static Result<std::unique_ptr<EngineBackend>>
  create(const ss_package *package, ss_engine_options options,
         const Config &config, int batch);
  ~EngineBackend() override;

  Status decodeLayer(int layer, const StateInput &input, float *y) override;
  Status endStep() override;

  /// After a prefill elsewhere: the states of recurrent layer `layer` (as in
  /// decodeLayer) become `states`, H as [batch, heads, dk, dv].
  Status initialise(int layer, const std::vector<float> &states);
  /// Once for all layers: how many tokens those states are of.
  Status setPosition(int64_t tokens);

  const ss_engine *engine() const { return handle; }
  /// The recurrent layers, in the order of the engine.
  const std::vector<ss_layer_info> &layers() const { return infos; }
  const std::vector<int32_t> &slots() const { return slotOfRequest; }

  Result<ss_statistics> statistics() const;
  /// Bytes of the snapshots of all requests, now.
  Result<int64_t> snapshotBytes() const;
  /// Stored rank of every head of one request; -1: dense. `layer` counts the
  /// engine's layers.
  Result<std::vector<int32_t>> ranks(int layer, int request) const;
  /// The number of states that have dropped components for lack of rows; the
  /// first one with any other status is an error.
  Result<int> checkStates() const;

private:
  EngineBackend() = default;
  Status readLayers(const Config &config);

  ss_engine *handle = nullptr;
  std::unique_ptr<DeviceStaging> staging; ///< null on the CPU
  bool stepHasBegun = false;
  std::vector<ss_layer_info> infos;
  std::vector<int32_t> engineLayerOf; ///< by model layer; -1: attention
  std::vector<int32_t> slotOfRequest;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_ENGINE_BACKEND_H
