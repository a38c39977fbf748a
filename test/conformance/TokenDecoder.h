//===- TokenDecoder.h - Tokens of a request, from device memory -*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_TOKENDECODER_H
#define SINKSTATE_CONFORMANCE_TOKENDECODER_H

#include "ConformanceTest.h"

#include <cstdint>
#include <vector>

namespace sinkstate::conformance {

/// y of every layer, [tokens, heads, dv].
using Outputs = std::vector<std::vector<float>>;

class TokenDecoder;

/// A step of some tokens of every row over memory that stays, so that it can be
/// captured. All rows are the decoder's request, each at a position of its own.
class TokenCall {
public:
  TokenCall(TokenDecoder &decoder, std::vector<int32_t> rowTokens);

  /// Row `row` takes its tokens from token `from` on.
  void fill(size_t row, int32_t slot, int64_t from);
  /// Queues the whole step, one call per layer.
  void enqueue(void *stream);
  /// Of the tokens of one row.
  Outputs outputs(size_t row) const;

private:
  struct LayerArrays {
    DeviceArray<float> q, k, v, gate, beta, y;
  };
  void enqueueLayer(size_t index, void *stream);

  TokenDecoder &decoder;
  std::vector<int32_t> rowTokens;
  int32_t tokens; ///< most of a row
  std::vector<int32_t> rowSlots;
  DeviceArray<int32_t> slots;
  std::vector<LayerArrays> layers;
};

/// Decodes tokens of one request of a model, in an engine that has all of its
/// heads or one of several equal parts of them.
class TokenDecoder {
public:
  TokenDecoder(Running &run, uint64_t seed, RequestStyle style)
      : TokenDecoder(run, run.layers, 0, seed, std::move(style)) {}
  /// The engine has part `part` of the heads of `whole`.
  TokenDecoder(Running &run, const std::vector<LayerSpec> &whole, int32_t part,
               uint64_t seed, RequestStyle style);

  /// Tokens [from, from + tokens) in one call per layer.
  Outputs decode(int32_t slot, int64_t from, int32_t tokens);
  /// The same, a step for every token.
  Outputs decodeSingle(int32_t slot, int64_t from, int32_t tokens);

private:
  friend class TokenCall;
  /// Of some tokens of one layer, [tokens, ..], the part that this engine has.
  struct TokenInputs {
    std::vector<float> q, k, v, gate, beta;
  };
  TokenInputs inputsOf(size_t index, int64_t from, int32_t tokens);
  DeviceArray<float> upload(const std::vector<float> &values);

  Running &run;
  std::vector<LayerSpec> whole;
  int32_t part;
  DrivenRequest inputs;
  std::vector<DeviceArray<float>> aLog, dtBias;
};

/// Mean values in layers of form sink, where the back end has such. Before slots.
void giveSinks(Engine &engine, const std::vector<LayerSpec> &layers);

} // namespace sinkstate::conformance

#endif
