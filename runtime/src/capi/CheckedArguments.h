//===- CheckedArguments.h - What every C function checks --------*- C++ -*-===//
#ifndef SINKSTATE_CAPI_CHECKEDARGUMENTS_H
#define SINKSTATE_CAPI_CHECKEDARGUMENTS_H

#include "capi/Failure.h"
#include "engine/StateEngine.h"
#include "observe/Nvtx.h"

#include "capi/RowConversion.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

struct ss_engine {
  std::unique_ptr<sinkstate::runtime::StateEngine> engine;
  /// Null: no call may need one. Behind the engine, whose device it uses.
  std::unique_ptr<sinkstate::runtime::RowConversion> conversion;
  mutable std::atomic<bool> inCall{false};
};

namespace sinkstate::runtime {

inline void require(const void *pointer, const char *name) {
  if (!pointer)
    fail(SS_INVALID_ARGUMENT, name, " is null, expected a valid pointer");
}

/// `structure` is not null and of this header's size.
template <typename Struct>
void requireStruct(const Struct *structure, const char *name,
                   const char *type) {
  require(structure, name);
  if (structure->struct_size != sizeof(Struct))
    fail(SS_INVALID_ARGUMENT, name, "->struct_size is ",
         structure->struct_size, ", expected ", sizeof(Struct),
         ": set it to sizeof(", type, ") of this library's header");
}

/// One call of an engine at a time.
class EngineCall {
public:
  explicit EngineCall(const ss_engine *engine) : engine(engine) {
    require(engine, "engine");
    if (engine->inCall.exchange(true, std::memory_order_acquire))
      fail(SS_BUSY, "another thread is in a call of this engine, expected one "
                    "thread at a time: put a lock around its calls");
  }
  EngineCall(const EngineCall &) = delete;
  EngineCall &operator=(const EngineCall &) = delete;
  ~EngineCall() { engine->inCall.store(false, std::memory_order_release); }

private:
  const ss_engine *engine;
};

/// A caller's struct that may be of an older header: `first` is the size it had
/// in the first one. What the caller does not know is taken from `defaults`.
template <typename Struct>
Struct readStruct(const Struct *given, size_t first, Struct defaults,
                  const char *name, const char *type) {
  require(given, name);
  const uint32_t size = given->struct_size;
  if (size < first || size > sizeof(Struct))
    fail(SS_INVALID_ARGUMENT, name, "->struct_size is ", size, ", expected ",
         sizeof(Struct), ": set it to sizeof(", type,
         ") of this library's header");
  std::memcpy(&defaults, given, size);
  defaults.struct_size = sizeof(Struct);
  return defaults;
}

/// Writes the part of `value` that the caller's struct has.
template <typename Struct> void writeStruct(Struct *out, const Struct &value) {
  const uint32_t size = out->struct_size;
  std::memcpy(out, &value, size);
  out->struct_size = size;
}

/// For ranges: the layer's name, "" where there is no such layer.
inline const std::string &nameOfLayer(const ss_engine *engine, int32_t layer) {
  static const std::string none;
  const auto &layers = engine->engine->manifestOf().layers;
  return layer >= 0 && size_t(layer) < layers.size()
             ? layers[size_t(layer)].name
             : none;
}

// Sizes of the structs in the first header.
constexpr size_t kFirstEngineOptions =
    offsetof(ss_engine_options, consolidation);
constexpr size_t kFirstDecodeArgs = offsetof(ss_decode_args, slot_type);
constexpr size_t kFirstStatistics =
    offsetof(ss_statistics, consolidations_started);
constexpr size_t kFirstMemoryPlan = offsetof(ss_memory_plan, hand_over);

inline ss_decode_args readDecodeArgs(const ss_decode_args *args) {
  return readStruct(args, kFirstDecodeArgs, ss_decode_args{}, "args",
                    "ss_decode_args");
}

inline void requireBatch(const ss_engine *engine, const int32_t *slots,
                         int32_t batch) {
  require(engine, "engine");
  if (batch < 1)
    fail(SS_INVALID_ARGUMENT, "batch is ", batch, ", expected at least 1");
  require(slots, "slots");
}

} // namespace sinkstate::runtime

#endif
