//===- StateEngine.h - What the C API needs of an engine --------*- C++ -*-===//
//
// The calls of sinkstate.h on one engine, whatever device it runs on. Two
// implementations: Engine (engine/Engine.h, the host schedules) and
// cuda::CudaEngine (cuda/CudaEngine.h, the device schedules itself).
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_ENGINE_STATEENGINE_H
#define SINKSTATE_ENGINE_STATEENGINE_H

#include "engine/MemoryParts.h"
#include "engine/RowConverter.h"
#include "engine/Sinks.h"
#include "handover/DenseLayout.h"
#include "handover/SlotImage.h"
#include "package/Package.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <span>

namespace sinkstate::runtime {

/// A CUstream, or nothing that a device looks at.
using Stream = void *;

class StateEngine {
public:
  virtual ~StateEngine() = default;

  // Slots.
  virtual int32_t allocateSlot(Stream stream) = 0;
  virtual void freeSlot(int32_t slot) = 0;
  virtual void resetSlot(int32_t slot, Stream stream) = 0;
  /// What the random bits of a request's stochastic rounding depend on beside
  /// its position; 0 in a fresh slot.
  virtual void setRoundingKey(int32_t slot, uint64_t key, Stream stream) = 0;
  virtual uint64_t roundingKey(int32_t slot) const = 0;
  /// The mean values of a layer's heads, [heads, dv], before any slot has an
  /// owner; zeros: no sink.
  virtual void setSink(int32_t layer, std::span<const float> means) = 0;
  /// The place of the layer's first head in the whole model, before any slot has
  /// an owner: what the random bits of stochastic rounding know heads by.
  virtual void setFirstHead(int32_t layer, int32_t head) = 0;

  // Decoding. `slots` is device memory.
  /// Gives up the step that has begun and not ended, if one has, as beginStep does
  /// first: what is queued on `stream` from now on comes behind all of it. Slots
  /// whose states it has changed are then to be reset.
  virtual void leaveStep(Stream stream) = 0;
  virtual void beginStep(std::span<const int32_t> slots, Stream stream) = 0;
  virtual void decodeLayer(int32_t layer, const ss_decode_args &args) = 0;
  virtual void endStep(std::span<const int32_t> slots, Stream stream) = 0;
  virtual void synchronize(Stream stream) = 0;
  /// Looks after the memory between two steps; waits for nothing.
  virtual void tend(Stream) {}

  // Inspection. Results are host memory.
  virtual int32_t layerCount() const = 0;
  virtual void layerInfo(int32_t layer, ss_layer_info &info) const = 0;
  virtual void densify(int32_t layer, int32_t slot, float *out) = 0;
  virtual void ranks(int32_t layer, int32_t slot, int32_t *ranks) const = 0;
  virtual void status(int32_t layer, int32_t slot, int32_t *status) const = 0;
  virtual void statistics(ss_statistics &out) const = 0;
  /// Fills `out`, apart from struct_size.
  virtual void layerStatistics(int32_t layer,
                               ss_layer_statistics &out) const = 0;
  /// What `allocated_bytes` is made of; adds up to it.
  virtual MemoryParts memoryParts() const = 0;

  // Hand-over (handover/).
  virtual void decodeTokens(int32_t layer, const ss_decode_args &args,
                            const ss_token_args &tokens) = 0;
  /// `slots` and `tokens` are host memory; all or none.
  virtual void rollback(std::span<const int32_t> slots,
                        std::span<const int32_t> tokens, Stream stream) = 0;
  virtual int32_t rollbackRoom(int32_t slot) const = 0;
  virtual int64_t position(int32_t slot) const = 0;
  /// Everything of a slot; without `contents` the float arrays stay empty.
  virtual SlotImage exportSlot(int32_t slot, bool contents, Stream stream) = 0;
  /// Adds heads to a slot that is fresh or holds other heads of the same
  /// position and pairs. Everything fits: see handover/Restore.h.
  virtual void importSlot(int32_t slot, int64_t position,
                          std::span<const PlacedLayer> layers,
                          Stream stream) = 0;
  /// Makes slot `to` equal to slot `from`, another one; on an error it is fresh.
  virtual void fork(int32_t from, int32_t to, Stream stream) = 0;
  virtual void setPosition(int32_t slot, int64_t position, Stream stream) = 0;
  /// `out` and `dense` are memory of the device.
  virtual void densifyTo(int32_t layer, const DenseStates &states, void *out,
                         Stream stream) = 0;
  virtual void initialise(int32_t layer, const DenseStates &states,
                          const void *dense, const ss_init_options &options,
                          Stream stream) = 0;
  /// What an engine can take of a layer's states.
  virtual const Manifest &manifestOf() const = 0;
  virtual bool holdsDense(int32_t layer) const = 0;
  virtual int32_t mostComponents(int32_t layer) const = 0;
  virtual const LayerSinks &sinksOf(int32_t layer) const = 0;

  /// What converts a caller's rows on this device, in so many bytes; not for
  /// longer than the engine.
  virtual std::unique_ptr<RowConverter>
  makeRowConverter(int64_t stagingBytes) = 0;

  // Memory of the device for callers that have no other way to it.
  virtual void *allocateMemory(size_t bytes) = 0;
  virtual void freeMemory(void *memory) = 0;
  virtual void copyIn(void *to, const void *from, size_t bytes,
                      Stream stream) = 0;
  virtual void copyOut(void *to, const void *from, size_t bytes,
                       Stream stream) = 0;
};

/// Threads of the SVDs where the options name none: a quarter of the processors,
/// 1 to 8.
int32_t svdThreadsFor(int32_t processors);

/// Checks option values and replaces "what the device does" (-1) by a value.
/// Throws SS_INVALID_ARGUMENT.
ss_engine_options resolveOptions(const ss_engine_options &options);

/// Bytes an engine would need; nothing is allocated and no device is looked
/// for.
void planEngine(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan);

std::unique_ptr<StateEngine> createEngine(std::shared_ptr<const Package> package,
                                          const ss_engine_options &options);

/// For every use of a slot whose step was given up but that which ends it.
[[noreturn]] void failForLeftSlot(int32_t slot);

/// Fills `info`, apart from struct_size.
void describeLayer(const LayerManifest &layer, ss_layer_info &info);

} // namespace sinkstate::runtime

#endif
