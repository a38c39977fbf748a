//===- RequestDriver.cpp - Decodes random requests ------------------------===//

#include "RequestDriver.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkstate::reference {
namespace {

/// Copies `values` to row b of a packed batch array.
void setRow(std::vector<float> &rows, size_t b, size_t width,
            const std::vector<float> &values) {
  std::copy(values.begin(), values.end(),
            rows.begin() + std::ptrdiff_t(b * width));
}

} // namespace

DrivenRequest::DrivenRequest(const std::vector<LayerSpec> &layers,
                             uint64_t seed, RequestStyle style) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layerInputs.emplace_back(layers[i], seed * 1009 + i, style);
    layerExact.emplace_back(layers[i]);
  }
}

RequestDriver::RequestDriver(Engine &engine, std::vector<LayerSpec> specs,
                             bool withOracle)
    : engine(engine), layers(std::move(specs)), withOracle(withOracle) {
  for (size_t i = 0; i < layers.size(); ++i)
    layerWeights.push_back(randomWeights(layers[i], i));
}

double RequestDriver::headError(size_t index, DrivenRequest &request,
                                const TokenValues &token, const float *y) {
  const LayerSpec &layer = layers[index];
  const LayerWeights &weights = layerWeights[index];
  DenseRecurrence &exact = request.exact(index);
  const Vector expected =
      exact.step(token.view(), weights.aLog.data(), weights.dtBias.data());
  double worst = 0;
  for (int64_t head = 0; head < layer.heads; ++head) {
    const int64_t keyHead = head / (layer.heads / layer.keyHeads);
    const Vector q =
        normalized(layer, token.q.data() + keyHead * layer.dk,
                   layer.queryScale);
    double qSquares = 0, errorSquares = 0;
    for (double x : q)
      qSquares += x * x;
    for (int64_t r = head * layer.dv; r < (head + 1) * layer.dv; ++r)
      errorSquares += (y[r] - expected[size_t(r)]) *
                      (y[r] - expected[size_t(r)]);
    double scale = exact.frobeniusNorm(head) * std::sqrt(qSquares);
    double error = std::sqrt(errorSquares) /
                   std::max(scale, std::numeric_limits<double>::min());
    // A comparison with NaN is false: say so as infinity.
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

void RequestDriver::decode(size_t index,
                           const std::vector<DrivenRequest *> &batch,
                           StepResult &result) {
  const LayerSpec &layer = layers[index];
  const size_t key = size_t(layer.keyFloats());
  const size_t value = size_t(layer.valueFloats());
  const size_t gate = size_t(layer.gateFloats());
  const size_t heads = size_t(layer.heads);
  const size_t n = batch.size();
  std::vector<float> q(n * key), k(n * key), v(n * value), g(n * gate),
      beta(n * heads);
  std::vector<float> y(n * value, std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> slots;
  std::vector<TokenValues> tokens(n);
  for (size_t b = 0; b < n; ++b) {
    slots.push_back(batch[b] ? batch[b]->slot : -1);
    if (!batch[b])
      continue;
    tokens[b] = batch[b]->inputs(index).token(batch[b]->position);
    setRow(q, b, key, tokens[b].q);
    setRow(k, b, key, tokens[b].k);
    setRow(v, b, value, tokens[b].v);
    setRow(g, b, gate, tokens[b].gate);
    setRow(beta, b, heads, tokens[b].beta);
  }
  ss_decode_args args = decodeArgs();
  args.batch = int32_t(n);
  args.slots = slots.data();
  args.q = {q.data(), 0};
  args.k = {k.data(), 0};
  args.v = {v.data(), 0};
  args.gate = {g.data(), 0};
  args.beta = {layer.hasBeta() ? beta.data() : nullptr, 0};
  args.a_log = layerWeights[index].aLog.data();
  args.dt_bias = layerWeights[index].dtBias.data();
  args.y = y.data();
  engine.decodeLayer(int32_t(index), args);
  for (size_t b = 0; b < n && withOracle; ++b)
    if (batch[b])
      result.worstError =
          std::max(result.worstError, headError(index, *batch[b], tokens[b],
                                                y.data() + b * value));
  result.y.push_back(std::move(y));
}

StepResult RequestDriver::step(const std::vector<DrivenRequest *> &batch) {
  StepResult result;
  for (size_t layer = 0; layer < layers.size(); ++layer)
    decode(layer, batch, result);
  std::vector<int32_t> slots;
  for (DrivenRequest *request : batch) {
    slots.push_back(request ? request->slot : -1);
    if (request)
      ++request->position;
  }
  engine.endStep(slots);
  return result;
}

double RequestDriver::stateError(DrivenRequest &request, size_t layer) {
  const std::vector<float> state =
      engine.densify(int32_t(layer), request.slot);
  const Vector &exact = request.exact(layer).state();
  const size_t floats = exact.size() / size_t(layers[layer].heads);
  double worst = 0;
  for (int64_t head = 0; head < layers[layer].heads; ++head) {
    double squares = 0;
    for (size_t i = size_t(head) * floats; i < size_t(head + 1) * floats; ++i)
      squares += (state[i] - exact[i]) * (state[i] - exact[i]);
    double error = std::sqrt(squares) /
                   std::max(request.exact(layer).frobeniusNorm(head),
                            std::numeric_limits<double>::min());
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

} // namespace sinkstate::reference
