//===- TokenDecoder.cpp - Tokens of a request, from device memory ---------===//

#include "TokenDecoder.h"

#include "PackedCall.h"
#include "SinkFixture.h"

#include <algorithm>

namespace sinkstate::conformance {
namespace {

/// Appends elements [first, first + count) of `from`.
void appendPart(std::vector<float> &to, const std::vector<float> &from,
                int64_t first, int64_t count) {
  if (!from.empty())
    to.insert(to.end(), from.begin() + first, from.begin() + first + count);
}

/// Part `part` of a table of all heads.
std::vector<float> partOf(const std::vector<float> &all, int32_t part,
                          int64_t count) {
  std::vector<float> some;
  appendPart(some, all, part * count, count);
  return some;
}

} // namespace

TokenDecoder::TokenDecoder(Running &run, const std::vector<LayerSpec> &whole,
                           int32_t part, uint64_t seed, RequestStyle style)
    : run(run), whole(whole), part(part), inputs(whole, seed, std::move(style)) {
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const LayerSpec &layer = run.layers[i];
    const reference::LayerWeights weights = reference::randomWeights(whole[i], i);
    aLog.push_back(upload(partOf(weights.aLog, part, layer.heads)));
    dtBias.push_back(upload(partOf(weights.dtBias, part, layer.gateFloats())));
  }
}

Outputs TokenDecoder::decode(int32_t slot, int64_t from, int32_t tokens) {
  TokenCall call(*this, {tokens});
  call.fill(0, slot, from);
  call.enqueue(nullptr);
  return call.outputs(0);
}

Outputs TokenDecoder::decodeSingle(int32_t slot, int64_t from, int32_t tokens) {
  Outputs outputs(run.layers.size());
  for (int32_t token = 0; token < tokens; ++token) {
    const Outputs one = decode(slot, from + token, 1);
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i].insert(outputs[i].end(), one[i].begin(), one[i].end());
  }
  return outputs;
}

DeviceArray<float> TokenDecoder::upload(const std::vector<float> &values) {
  DeviceArray<float> array(run.engine, values.size());
  array.copyIn(values);
  return array;
}

TokenDecoder::TokenInputs TokenDecoder::inputsOf(size_t index, int64_t from,
                                                 int32_t tokens) {
  const LayerSpec &layer = run.layers[index], &all = whole[index];
  const int64_t keyFirst =
      int64_t(part) * layer.heads / (all.heads / all.keyHeads) * layer.dk;
  TokenInputs some;
  for (int32_t token = 0; token < tokens; ++token) {
    const TokenValues t = inputs.inputs(index).token(from + token);
    appendPart(some.q, t.q, keyFirst, layer.keyFloats());
    appendPart(some.k, t.k, keyFirst, layer.keyFloats());
    appendPart(some.v, t.v, part * layer.valueFloats(), layer.valueFloats());
    appendPart(some.gate, t.gate, part * layer.gateFloats(), layer.gateFloats());
    appendPart(some.beta, t.beta, int64_t(part) * layer.heads, layer.heads);
  }
  return some;
}

TokenCall::TokenCall(TokenDecoder &decoder, std::vector<int32_t> given)
    : decoder(decoder), rowTokens(std::move(given)),
      tokens(*std::max_element(rowTokens.begin(), rowTokens.end())),
      rowSlots(rowTokens.size(), -1),
      slots(decoder.run.engine, rowTokens.size()) {
  for (const LayerSpec &layer : decoder.run.layers) {
    auto array = [&](int64_t floats) {
      return DeviceArray<float>(decoder.run.engine,
                                rowTokens.size() * size_t(tokens * floats));
    };
    layers.push_back({array(layer.keyFloats()), array(layer.keyFloats()),
                      array(layer.valueFloats()), array(layer.gateFloats()),
                      array(layer.heads), array(layer.valueFloats())});
  }
}

void TokenCall::fill(size_t row, int32_t slot, int64_t from) {
  rowSlots[row] = slot;
  slots.copyIn(rowSlots);
  for (size_t i = 0; i < layers.size(); ++i) {
    const TokenDecoder::TokenInputs some =
        decoder.inputsOf(i, from, rowTokens[row]);
    auto copyRow = [&](DeviceArray<float> &to, const std::vector<float> &floats) {
      std::vector<float> all = to.copyOut();
      std::copy(floats.begin(), floats.end(),
                all.begin() + int64_t(row * all.size() / rowTokens.size()));
      to.copyIn(all);
    };
    copyRow(layers[i].q, some.q);
    copyRow(layers[i].k, some.k);
    copyRow(layers[i].v, some.v);
    copyRow(layers[i].gate, some.gate);
    copyRow(layers[i].beta, some.beta);
  }
}

void TokenCall::enqueue(void *stream) {
  const auto batch = int32_t(rowTokens.size());
  decoder.run.engine.beginStep(slots.data(), batch, stream);
  for (size_t i = 0; i < layers.size(); ++i)
    enqueueLayer(i, stream);
  decoder.run.engine.endStep(slots.data(), batch, stream);
}

void TokenCall::enqueueLayer(size_t index, void *stream) {
  const ss_decode_args args = reference::packedCall(
      decoder.run.layers[index], layers[index], decoder.aLog[index].data(),
      decoder.dtBias[index].data(), slots.data(), int32_t(rowTokens.size()),
      stream);
  reference::decodePacked(decoder.run.engine, int32_t(index), args, tokens,
                          rowTokens.size() > 1 ? rowTokens.data() : nullptr);
}

Outputs TokenCall::outputs(size_t row) const {
  Outputs some;
  for (const LayerArrays &arrays : layers) {
    const std::vector<float> all = arrays.y.copyOut();
    const size_t each = all.size() / rowTokens.size();
    const auto begin = all.begin() + int64_t(row * each);
    some.emplace_back(begin, begin + int64_t(each / size_t(tokens)) * rowTokens[row]);
  }
  return some;
}

void giveSinks(Engine &engine, const std::vector<LayerSpec> &layers) {
  for (int32_t layer = 0; layer < engine.layerCount(); ++layer)
    if (engine.layerInfo(layer).sink_form)
      engine.setSink(layer, meansOf(layers[size_t(layer)], 40 + uint64_t(layer)));
}

} // namespace sinkstate::conformance
