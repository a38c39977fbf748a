//===- HandOverApi.cpp - The C functions of hand-over ---------------------===//

#include "capi/CheckedArguments.h"
#include "handover/Restore.h"
#include "handover/Snapshot.h"

#include <algorithm>

using namespace sinkstate::runtime;

namespace {

std::span<const std::byte> bytesOf(const void *data, size_t bytes) {
  require(data, "data");
  return {static_cast<const std::byte *>(data), bytes};
}

DenseStates denseStates(const int32_t *slots, const int32_t *places, int32_t n,
                        const ss_dense_layout *layout) {
  requireStruct(layout, "layout", "ss_dense_layout");
  return {{slots, size_t(n)}, places, *layout};
}

} // namespace

ss_result ss_decode_layer_tokens(ss_engine *engine, int32_t layer,
                                 const ss_decode_args *args,
                                 const ss_token_args *tokens) {
  return guarded([&] {
    const EngineCall call(engine);
    const NvtxRange range("sinkstate decode", nameOfLayer(engine, layer));
    requireStruct(tokens, "tokens", "ss_token_args");
    decodeConverted(*engine->engine, engine->conversion.get(), layer,
                    readDecodeArgs(args), tokens);
  });
}

ss_result ss_slot_rollback(ss_engine *engine, int32_t slot, int32_t tokens,
                           void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    if (slot < 0)
      fail(SS_INVALID_ARGUMENT, "slot ", slot, ", expected 0 or more");
    engine->engine->rollback({&slot, 1}, {&tokens, 1}, stream);
  });
}

ss_result ss_slot_rollback_batch(ss_engine *engine, const int32_t *slots,
                                 const int32_t *tokens, int32_t batch,
                                 void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    requireBatch(engine, slots, batch);
    require(tokens, "tokens");
    engine->engine->rollback({slots, size_t(batch)}, {tokens, size_t(batch)},
                             stream);
  });
}

ss_result ss_slot_rollback_room(const ss_engine *engine, int32_t slot,
                                int32_t *tokens) {
  return guarded([&] {
    const EngineCall call(engine);
    require(tokens, "tokens");
    *tokens = engine->engine->rollbackRoom(slot);
  });
}

ss_result ss_slot_position(const ss_engine *engine, int32_t slot,
                           int64_t *position) {
  return guarded([&] {
    const EngineCall call(engine);
    require(position, "position");
    *position = engine->engine->position(slot);
  });
}

ss_result ss_snapshot_size(ss_engine *engine, int32_t slot, size_t *bytes,
                           void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    require(bytes, "bytes");
    *bytes = snapshotBytes(engine->engine->exportSlot(slot, false, stream));
  });
}

ss_result ss_snapshot_write(ss_engine *engine, int32_t slot, void *out,
                            size_t capacity, size_t *written, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    require(out, "out");
    const SlotImage image = engine->engine->exportSlot(slot, true, stream);
    const size_t bytes = snapshotBytes(image);
    if (capacity < bytes)
      fail(SS_INVALID_ARGUMENT, "capacity is ", capacity,
           " bytes, expected at least ", bytes,
           " (ss_snapshot_size) for slot ", slot);
    writeSnapshot(image, {static_cast<std::byte *>(out), bytes});
    if (written)
      *written = bytes;
  });
}

ss_result ss_snapshot_restore(ss_engine *engine, int32_t slot,
                              const void *data, size_t bytes, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    restoreSlot(*engine->engine, slot, readSnapshot(bytesOf(data, bytes)),
                stream);
  });
}

ss_result ss_snapshot_restore_heads(ss_engine *engine, int32_t slot,
                                    const void *data, size_t bytes,
                                    const ss_head_range *ranges,
                                    int32_t layers, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    if (!ranges && layers == 0)
      return restoreAllHeads(*engine->engine, slot,
                             readSnapshot(bytesOf(data, bytes)), stream);
    require(ranges, "ranges");
    std::vector<HeadRange> taken;
    for (int32_t i = 0; i < layers; ++i)
      taken.push_back({ranges[i].from, ranges[i].to, ranges[i].count});
    restoreHeads(*engine->engine, slot, readSnapshot(bytesOf(data, bytes)),
                 taken, stream);
  });
}

ss_result ss_snapshot_inspect(const void *data, size_t bytes,
                              ss_snapshot_info *out) {
  return guarded([&] {
    requireStruct(out, "out", "ss_snapshot_info");
    const SnapshotHeader top = readSnapshotHeader(bytesOf(data, bytes));
    const uint32_t structSize = out->struct_size;
    *out = {};
    out->struct_size = structSize;
    out->major_version = top.major;
    out->minor_version = top.minor;
    out->bytes = top.bytes;
    out->position = top.position;
    out->layers = top.layers;
    std::copy(top.fingerprint.begin(), top.fingerprint.end(),
              out->fingerprint);
  });
}

ss_result ss_slot_fork(ss_engine *engine, int32_t from, int32_t to,
                       void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->fork(from, to, stream);
  });
}

ss_result ss_slot_set_position(ss_engine *engine, int32_t slot,
                               int64_t position, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    engine->engine->setPosition(slot, position, stream);
  });
}

ss_result ss_state_densify_to(ss_engine *engine, int32_t layer,
                              const int32_t *slots, const int32_t *places,
                              int32_t n, void *out,
                              const ss_dense_layout *layout, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    requireBatch(engine, slots, n);
    require(out, "out");
    engine->engine->densifyTo(layer, denseStates(slots, places, n, layout),
                              out, stream);
  });
}

ss_result ss_state_init(ss_engine *engine, int32_t layer, const int32_t *slots,
                        const int32_t *places, int32_t n, const void *dense,
                        const ss_dense_layout *layout,
                        const ss_init_options *options, void *stream) {
  return guarded([&] {
    const EngineCall call(engine);
    requireBatch(engine, slots, n);
    require(dense, "dense");
    ss_init_options chosen = {};
    chosen.eps = -1;
    if (options) {
      requireStruct(options, "options", "ss_init_options");
      chosen = *options;
    }
    engine->engine->initialise(layer, denseStates(slots, places, n, layout),
                               dense, chosen, stream);
  });
}
