//===- DeviceStaging.h - Host arrays beside a GPU engine --------*- C++ -*-===//
#ifndef TINY_HYBRID_DEVICE_STAGING_H
#define TINY_HYBRID_DEVICE_STAGING_H

#include "StateBackend.h"

#include "sinkstate/sinkstate.h"

#include <map>
#include <string>
#include <vector>

namespace tiny_hybrid {

/// This example computes everything but the states on the host. Where the
/// states are on a GPU, their inputs are copied there and their outputs back;
/// an engine whose model is on the GPU has no need of this.
class DeviceStaging {
public:
  DeviceStaging(ss_engine *engine, int batch)
      : engine(engine), batch(batch) {}
  DeviceStaging(const DeviceStaging &) = delete;
  DeviceStaging &operator=(const DeviceStaging &) = delete;
  ~DeviceStaging();

  /// Copies the slots of the batch.
  Status setSlots(const std::vector<int32_t> &slots);
  const int32_t *slots() const { return deviceSlots; }

  /// Replaces the arrays of `args`, host memory with packed rows, by copies on
  /// the device. Weights are copied once per layer.
  Status copyIn(const ss_layer_info &layer, ss_decode_args &args);
  /// Copies the outputs of the layer back.
  Status copyOut(const ss_layer_info &layer, float *y);

private:
  /// Device memory by what it holds ("layer0.q"), made when first needed.
  Status array(const std::string &name, size_t bytes, void *&memory,
               bool *isNew = nullptr);

  ss_engine *engine;
  int batch;
  int32_t *deviceSlots = nullptr;
  std::map<std::string, void *> arrays;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_DEVICE_STAGING_H
