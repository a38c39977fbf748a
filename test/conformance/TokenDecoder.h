//===- TokenDecoder.h - Tokens of a request, from device memory -*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_TOKENDECODER_H
#define SINKSTATE_CONFORMANCE_TOKENDECODER_H

#include "ConformanceTest.h"

#include <cstdint>
#include <vector>

namespace sinkstate::conformance {

/// y of every layer, [tokens, heads, dv].
using Outputs = std::vector<std::vector<float>>;

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
  DeviceArray<float> upload(const std::vector<float> &values);
  std::vector<float> decodeLayer(size_t index, DeviceArray<int32_t> &slots,
                                 int64_t from, int32_t tokens);

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
