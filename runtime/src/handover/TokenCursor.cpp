//===- TokenCursor.cpp - The arrays of several tokens ---------------------===//

#include "handover/TokenCursor.h"

#include "capi/Failure.h"

#include <utility>

namespace sinkstate::runtime {
namespace {

void checkTokens(const ss_decode_args &args, const ss_token_args &tokens) {
  if (tokens.tokens < 1)
    fail(SS_INVALID_ARGUMENT, "tokens.tokens is ", tokens.tokens,
         ", expected at least 1");
  for (int32_t row = 0; tokens.row_tokens && row < args.batch; ++row)
    if (tokens.row_tokens[row] < 0 || tokens.row_tokens[row] > tokens.tokens)
      fail(SS_INVALID_ARGUMENT, "tokens.row_tokens[", row, "] is ",
           tokens.row_tokens[row], ", expected 0 to ", tokens.tokens);
}

} // namespace

TokenCursor::TokenCursor(const LayerManifest &layer,
                         const ss_decode_args &args,
                         const ss_token_args &tokens)
    : first(args), given(tokens) {
  checkTokens(args, tokens);
  const int64_t key = int64_t(layer.keyHeads) * layer.dk;
  const int64_t value = int64_t(layer.heads) * layer.dv;
  const int64_t decay = layer.channelDecay ? layer.dk : 1;
  pack("q", first.q.stride, given.q_token_stride, key);
  pack("k", first.k.stride, given.k_token_stride, key);
  pack("v", first.v.stride, given.v_token_stride, value);
  pack("gate", first.gate.stride, given.gate_token_stride,
       layer.heads * decay);
  if (layer.hasBeta)
    pack("beta", first.beta.stride, given.beta_token_stride, layer.heads);
  pack("y", first.y_stride, given.y_token_stride, value);
}

ss_decode_args TokenCursor::at(int32_t token) const {
  ss_decode_args args = first;
  for (auto [array, stride] : {std::pair(&args.q, given.q_token_stride),
                               {&args.k, given.k_token_stride},
                               {&args.v, given.v_token_stride},
                               {&args.gate, given.gate_token_stride},
                               {&args.beta, given.beta_token_stride}})
    if (array->data)
      array->data += token * stride;
  args.y += token * given.y_token_stride;
  return args;
}

void TokenCursor::pack(const char *name, int64_t &rowStride,
                       int64_t &tokenStride, int64_t width) {
  if (tokenStride == 0)
    tokenStride = width;
  if (tokenStride < width)
    fail(SS_INVALID_ARGUMENT, "tokens.", name, "_token_stride is ",
         tokenStride, ", expected 0 (packed) or at least ", width, " floats");
  if (rowStride == 0)
    rowStride = given.tokens * tokenStride;
}

} // namespace sinkstate::runtime
