//===- RequestDriver.cpp - Decodes random requests ------------------------===//

#include "RequestDriver.h"

#include "PackedCall.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

/// Decode arguments of one layer for one batch size, in device memory at
/// addresses that stay.
struct RequestDriver::LayerBatch {
  LayerBatch(Engine &engine, const LayerSpec &layer, size_t n)
      : q(engine, n * size_t(layer.keyFloats())),
        k(engine, n * size_t(layer.keyFloats())),
        v(engine, n * size_t(layer.valueFloats())),
        gate(engine, n * size_t(layer.gateFloats())),
        beta(engine, n * size_t(layer.heads)),
        y(engine, n * size_t(layer.valueFloats())) {}

  /// Copies the tokens in; rows of padding stay zero.
  void fill(const LayerSpec &layer, const std::vector<TokenValues> &tokens) {
    const size_t n = tokens.size();
    auto rows = [&](DeviceArray<float> &array, auto &&member) {
      std::vector<float> values(array.size());
      for (size_t b = 0; b < n; ++b)
        setRow(values, b, array.size() / n, member(tokens[b]));
      array.copyIn(values);
    };
    rows(q, [](const TokenValues &t) { return t.q; });
    rows(k, [](const TokenValues &t) { return t.k; });
    rows(v, [](const TokenValues &t) { return t.v; });
    rows(gate, [](const TokenValues &t) { return t.gate; });
    if (layer.hasBeta())
      rows(beta, [](const TokenValues &t) { return t.beta; });
    y.copyIn(std::vector<float>(y.size(),
                                std::numeric_limits<float>::quiet_NaN()));
  }

  DeviceArray<float> q, k, v, gate, beta, y;
};

struct RequestDriver::Batch {
  Batch(Engine &engine, const std::vector<LayerSpec> &specs, size_t n)
      : slots(engine, n) {
    for (const LayerSpec &layer : specs)
      layers.emplace_back(engine, layer, n);
  }
  DeviceArray<int32_t> slots;
  std::vector<LayerBatch> layers;
};

struct RequestDriver::DeviceWeights {
  DeviceArray<float> aLog, dtBias;
};

RequestDriver::RequestDriver(Engine &engine, std::vector<LayerSpec> specs,
                             bool withOracle)
    : engine(engine), layers(std::move(specs)), withOracle(withOracle),
      submit([this](size_t n) { enqueue(n, nullptr); }) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layerWeights.push_back(randomWeights(layers[i], i));
    const LayerWeights &host = layerWeights.back();
    deviceWeights.push_back({DeviceArray<float>(engine, host.aLog.size()),
                             DeviceArray<float>(engine, host.dtBias.size())});
    deviceWeights.back().aLog.copyIn(host.aLog);
    deviceWeights.back().dtBias.copyIn(host.dtBias);
  }
}

RequestDriver::~RequestDriver() = default;

RequestDriver::Batch &RequestDriver::batchOf(size_t n) {
  std::unique_ptr<Batch> &batch = batches[n];
  if (!batch)
    batch = std::make_unique<Batch>(engine, layers, n);
  return *batch;
}

void RequestDriver::enqueue(size_t n, void *stream) {
  const int32_t *slots = batchOf(n).slots.data();
  engine.beginStep(slots, int32_t(n), stream);
  enqueueLayers(n, stream);
  engine.endStep(slots, int32_t(n), stream);
}

void RequestDriver::enqueueLayer(size_t n, size_t i, void *stream) {
  Batch &batch = batchOf(n);
  LayerBatch &arrays = batch.layers[i];
  engine.decodeLayer(int32_t(i),
                     packedCall(layers[i], arrays, deviceWeights[i].aLog.data(),
                                deviceWeights[i].dtBias.data(),
                                batch.slots.data(), int32_t(n), stream));
}

void RequestDriver::enqueueLayers(size_t n, void *stream) {
  for (size_t i = 0; i < layers.size(); ++i)
    enqueueLayer(n, i, stream);
}

StepResult RequestDriver::step(const std::vector<DrivenRequest *> &requests) {
  const size_t n = requests.size();
  Batch &batch = batchOf(n);
  std::vector<int32_t> slots;
  for (DrivenRequest *request : requests)
    slots.push_back(request ? request->slot : -1);
  batch.slots.copyIn(slots);
  std::vector<std::vector<TokenValues>> tokens(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    for (DrivenRequest *request : requests)
      tokens[i].push_back(request ? request->inputs(i).token(request->position)
                                  : TokenValues());
    batch.layers[i].fill(layers[i], tokens[i]);
  }
  submit(n);

  StepResult result;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<float> y = batch.layers[i].y.copyOut();
    double worst = 0;
    for (size_t b = 0; b < n && withOracle; ++b)
      if (requests[b])
        worst = std::max(
            worst, headError(i, *requests[b], tokens[i][b],
                             y.data() + b * size_t(layers[i].valueFloats())));
    result.errors.push_back(worst);
    result.worstError = std::max(result.worstError, worst);
    result.y.push_back(std::move(y));
  }
  for (DrivenRequest *request : requests)
    if (request)
      ++request->position;
  return result;
}

void RequestDriver::rebase(DrivenRequest &request, size_t layer) {
  const std::vector<float> state = engine.densify(int32_t(layer), request.slot);
  request.exact(layer).setState(Vector(state.begin(), state.end()));
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
