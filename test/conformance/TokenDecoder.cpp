//===- TokenDecoder.cpp - Tokens of a request, from device memory ---------===//

#include "TokenDecoder.h"

#include "SinkFixture.h"

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
  DeviceArray<int32_t> slots(run.engine, 1);
  slots.copyIn({slot});
  run.engine.beginStep(slots.data(), 1);
  Outputs outputs;
  for (size_t i = 0; i < run.layers.size(); ++i)
    outputs.push_back(decodeLayer(i, slots, from, tokens));
  run.engine.endStep(slots.data(), 1);
  return outputs;
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

std::vector<float> TokenDecoder::decodeLayer(size_t index,
                                             DeviceArray<int32_t> &slots,
                                             int64_t from, int32_t tokens) {
  const LayerSpec &layer = run.layers[index], &all = whole[index];
  const int64_t keyFirst =
      int64_t(part) * layer.heads / (all.heads / all.keyHeads) * layer.dk;
  std::vector<float> q, k, v, gate, beta;
  for (int32_t token = 0; token < tokens; ++token) {
    const TokenValues t = inputs.inputs(index).token(from + token);
    appendPart(q, t.q, keyFirst, layer.keyFloats());
    appendPart(k, t.k, keyFirst, layer.keyFloats());
    appendPart(v, t.v, part * layer.valueFloats(), layer.valueFloats());
    appendPart(gate, t.gate, part * layer.gateFloats(), layer.gateFloats());
    appendPart(beta, t.beta, int64_t(part) * layer.heads, layer.heads);
  }
  const DeviceArray<float> onQ = upload(q), onK = upload(k), onV = upload(v),
                           onGate = upload(gate), onBeta = upload(beta);
  DeviceArray<float> y(run.engine, v.size());
  ss_decode_args args = decodeArgs();
  args.batch = 1;
  args.slots = slots.data();
  args.q = {onQ.data(), 0};
  args.k = {onK.data(), 0};
  args.v = {onV.data(), 0};
  args.gate = {onGate.data(), 0};
  args.beta = {layer.hasBeta() ? onBeta.data() : nullptr, 0};
  args.a_log = aLog[index].data();
  args.dt_bias = dtBias[index].data();
  args.y = y.data();
  ss_token_args several = {};
  several.struct_size = sizeof several;
  several.tokens = tokens;
  if (tokens == 1)
    run.engine.decodeLayer(int32_t(index), args);
  else
    run.engine.decodeTokens(int32_t(index), args, several);
  return y.copyOut();
}

void giveSinks(Engine &engine, const std::vector<LayerSpec> &layers) {
  for (int32_t layer = 0; layer < engine.layerCount(); ++layer)
    if (engine.layerInfo(layer).sink_form)
      engine.setSink(layer, meansOf(layers[size_t(layer)], 40 + uint64_t(layer)));
}

} // namespace sinkstate::conformance
