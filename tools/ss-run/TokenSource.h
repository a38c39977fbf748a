//===- TokenSource.h - The text that is decoded -----------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_TOKENSOURCE_H
#define SINKSTATE_TOOLS_SS_RUN_TOKENSOURCE_H

#include "Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ss_run {

/// Windows of one text, one for each request of a batch.
class TokenSource {
public:
  /// `path` is any file, whose bytes are the tokens, or a .safetensors file
  /// with a U8 tensor `tokens`. Request b of `batch` starts at byte
  /// b * (size / batch) and needs one byte more than `tokens`: every token
  /// predicts the next. Of what is no regular file so many bytes are read, one
  /// window behind the other.
  static tiny_hybrid::Result<TokenSource> open(const std::string &path,
                                               int batch, int tokens);

  /// Byte `position` of every window, [batch].
  std::vector<uint8_t> at(int position) const;

private:
  std::vector<uint8_t> bytes;
  int batch = 1;
};

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_TOKENSOURCE_H
