//===- TokenCursor.h - The arrays of several tokens -------------*- C++ -*-===//
#ifndef SINKSTATE_HANDOVER_TOKENCURSOR_H
#define SINKSTATE_HANDOVER_TOKENCURSOR_H

#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <cstdint>

namespace sinkstate::runtime {

/// The arrays of one token of a call after the other. Looks at no element of
/// them: they may be memory of a GPU.
class TokenCursor {
public:
  /// Throws SS_INVALID_ARGUMENT where numbers of tokens or strides are wrong.
  TokenCursor(const LayerManifest &layer, const ss_decode_args &args,
              const ss_token_args &tokens);

  int32_t tokens() const { return given.tokens; }
  int32_t tokensOf(int32_t row) const {
    return given.row_tokens ? given.row_tokens[row] : given.tokens;
  }
  /// The arguments of token `token`, with the slots of the call.
  ss_decode_args at(int32_t token) const;

private:
  void pack(const char *name, int64_t &rowStride, int64_t &tokenStride,
            int64_t width);

  ss_decode_args first;
  ss_token_args given;
};

} // namespace sinkstate::runtime

#endif
