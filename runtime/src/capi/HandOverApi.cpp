//===- HandOverApi.cpp - The C functions of hand-over ---------------------===//

#include "capi/CheckedArguments.h"

using namespace sinkstate::runtime;

ss_result ss_decode_layer_tokens(ss_engine *engine, int32_t layer,
                                 const ss_decode_args *args,
                                 const ss_token_args *tokens) {
  return guarded([&] {
    require(engine, "engine");
    requireStruct(args, "args", "ss_decode_args");
    requireStruct(tokens, "tokens", "ss_token_args");
    engine->engine->decodeTokens(layer, *args, *tokens);
  });
}

ss_result ss_slot_rollback(ss_engine *engine, int32_t slot, int32_t tokens,
                           void *stream) {
  return guarded([&] {
    require(engine, "engine");
    if (slot < 0)
      fail(SS_INVALID_ARGUMENT, "slot ", slot, ", expected 0 or more");
    engine->engine->rollback({&slot, 1}, {&tokens, 1}, stream);
  });
}

ss_result ss_slot_rollback_batch(ss_engine *engine, const int32_t *slots,
                                 const int32_t *tokens, int32_t batch,
                                 void *stream) {
  return guarded([&] {
    requireBatch(engine, slots, batch);
    require(tokens, "tokens");
    engine->engine->rollback({slots, size_t(batch)}, {tokens, size_t(batch)},
                             stream);
  });
}

ss_result ss_slot_rollback_room(const ss_engine *engine, int32_t slot,
                                int32_t *tokens) {
  return guarded([&] {
    require(engine, "engine");
    require(tokens, "tokens");
    *tokens = engine->engine->rollbackRoom(slot);
  });
}

ss_result ss_slot_position(const ss_engine *engine, int32_t slot,
                           int64_t *position) {
  return guarded([&] {
    require(engine, "engine");
    require(position, "position");
    *position = engine->engine->position(slot);
  });
}
