//===- PackedCall.h - Decodes over packed arrays ----------------*- C++ -*-===//
#ifndef SINKSTATE_REFERENCE_PACKEDCALL_H
#define SINKSTATE_REFERENCE_PACKEDCALL_H

#include "ModelSpec.h"

#include "sinkstate/sinkstate.hpp"

namespace sinkstate::reference {

/// The arguments of a call over arrays q, k, v, gate, beta and y, packed, in memory of
/// the engine's device.
template <typename Arrays>
ss_decode_args packedCall(const LayerSpec &layer, Arrays &arrays, const float *aLog,
                          const float *dtBias, const int32_t *slots, int32_t batch,
                          void *stream = nullptr) {
  ss_decode_args args = decodeArgs();
  args.batch = batch;
  args.slots = slots;
  args.q = {arrays.q.data(), 0};
  args.k = {arrays.k.data(), 0};
  args.v = {arrays.v.data(), 0};
  args.gate = {arrays.gate.data(), 0};
  args.beta = {layer.hasBeta() ? arrays.beta.data() : nullptr, 0};
  args.a_log = aLog;
  args.dt_bias = dtBias;
  args.y = arrays.y.data();
  args.stream = stream;
  return args;
}

/// So many tokens of every row, or of each row its own number of them, packed.
inline void decodePacked(Engine &engine, int32_t layer, const ss_decode_args &args,
                         int32_t tokens, const int32_t *rowTokens = nullptr) {
  if (tokens == 1)
    return engine.decodeLayer(layer, args);
  ss_token_args several = {};
  several.struct_size = sizeof several;
  several.tokens = tokens;
  several.row_tokens = rowTokens;
  engine.decodeTokens(layer, args, several);
}

} // namespace sinkstate::reference

#endif
