//===- Decoder.cpp - Token by token through the model ---------------------===//

#include "Decoder.h"

#include <chrono>

using namespace tiny_hybrid;

namespace {

/// Adds the time of its own life to a sum.
class Stopwatch {
public:
  explicit Stopwatch(double &seconds)
      : seconds(seconds), start(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }

private:
  double &seconds;
  std::chrono::steady_clock::time_point start;
};

} // namespace

Result<Model> Model::load(const std::string &folder) {
  Result<Config> config = Config::load(folder + "/config.json");
  if (!config)
    return config.takeError();
  Result<Weights> weights =
      Weights::load(folder + "/model.safetensors", *config);
  if (!weights)
    return weights.takeError();
  return Model{std::move(*config), std::move(*weights)};
}

/// What a recurrent layer keeps besides its states, and its scratch.
struct Decoder::RecurrentLayer {
  RecurrentLayer(const RecurrentWeights &weights, int batch)
      : convolveQ(weights.q.filter, batch), convolveK(weights.k.filter, batch),
        convolveV(weights.v.filter, batch) {}

  CausalConvolution convolveQ, convolveK, convolveV;
  Matrix q, k, v, gate, beta, outputGate, low, y, scaled;
};

struct Decoder::Layer {
  Layer(LayerKind kind, const Config &config, const LayerWeights &weights,
        int batch, int threads)
      : kind(kind), weights(weights), mlp(weights, threads) {
    if (kind == LayerKind::Attention)
      attention = std::make_unique<Attention>(
          config.attention, weights.attention, batch, threads);
    else
      recurrent = std::make_unique<RecurrentLayer>(weights.recurrent, batch);
  }

  LayerKind kind;
  const LayerWeights &weights;
  std::unique_ptr<Attention> attention;
  std::unique_ptr<RecurrentLayer> recurrent;
  Mlp mlp;
};

Decoder::Decoder(const Model &model, StateBackend &states, int batch,
                 int threads)
    : model(model), states(states), batch(batch), threads(threads) {
  for (size_t i = 0; i < model.config.layers.size(); ++i)
    layers.emplace_back(model.config.layers[i], model.config,
                        model.weights.layers[i], batch, threads);
}

Decoder::~Decoder() = default;

Status Decoder::step(std::span<const uint8_t> tokens) {
  if (tokens.size() != static_cast<size_t>(batch))
    return Error{"found " + std::to_string(tokens.size()) +
                 " tokens, expected one for each of the " +
                 std::to_string(batch) + " requests"};
  Stopwatch watch(elapsed.all);
  const double epsilon = model.config.rmsNormEps;
  stream.resize(batch, model.config.hidden);
  for (int request = 0; request < batch; ++request)
    stream.row(request) = model.weights.embedding.row(tokens[request]);

  for (size_t i = 0; i < layers.size(); ++i) {
    Layer &layer = layers[i];
    rmsNorm(stream, layer.weights.mixerNorm, epsilon, normalized);
    if (layer.kind == LayerKind::Attention)
      layer.attention->apply(normalized, steps, part);
    else if (Status status = applyRecurrent(static_cast<int>(i), layer))
      return status;
    stream += part;
    rmsNorm(stream, layer.weights.mlpNorm, epsilon, normalized);
    layer.mlp.apply(normalized, part);
    stream += part;
  }
  rmsNorm(stream, model.weights.finalNorm, epsilon, normalized);
  project(normalized, model.weights.head, threads, output);
  ++steps;
  Stopwatch stateWatch(elapsed.states);
  return states.endStep();
}

Status Decoder::applyRecurrent(int index, Layer &layer) {
  const RecurrentWeights &weights = layer.weights.recurrent;
  const RecurrentSizes &sizes = model.config.recurrent(layer.kind);
  RecurrentLayer &parts = *layer.recurrent;
  project(normalized, weights.q.projection, threads, parts.q);
  project(normalized, weights.k.projection, threads, parts.k);
  project(normalized, weights.v.projection, threads, parts.v);
  parts.convolveQ.apply(parts.q);
  parts.convolveK.apply(parts.k);
  parts.convolveV.apply(parts.v);
  if (layer.kind == LayerKind::Kda) {
    project(normalized, weights.gate, threads, parts.low);
    project(parts.low, weights.gateUp, threads, parts.gate);
    project(normalized, weights.outputGate, threads, parts.low);
    project(parts.low, weights.outputGateUp, threads, parts.outputGate);
  } else {
    project(normalized, weights.gate, threads, parts.gate);
    project(normalized, weights.outputGate, threads, parts.outputGate);
  }
  StateInput input{parts.q.data(),       parts.k.data(), parts.v.data(),
                   parts.gate.data(),    nullptr,        weights.aLog.data(),
                   weights.dtBias.data()};
  if (layer.kind != LayerKind::Mamba2) {
    project(normalized, weights.beta, threads, parts.beta);
    input.beta = parts.beta.data();
  }
  parts.y.resize(batch, Eigen::Index(sizes.heads) * sizes.dv);
  {
    Stopwatch watch(elapsed.states);
    if (Status status = states.decodeLayer(index, input, parts.y.data()))
      return status;
  }
  finishRecurrent(layer.kind, weights, parts);
  return std::nullopt;
}

/// From what the states answered to the layer's output. gdn and kda normalise
/// every head and then gate it; mamba2 adds its skip, gates and then normalises
/// all heads together.
void Decoder::finishRecurrent(LayerKind kind, const RecurrentWeights &weights,
                              RecurrentLayer &layer) {
  const double epsilon = model.config.rmsNormEps;
  const float *gate = layer.outputGate.data();
  if (kind == LayerKind::Mamba2) {
    const Eigen::Index dv = model.config.mamba2.dv;
    const Eigen::Index heads = model.config.mamba2.heads;
    float *y = layer.y.data();
    const float *x = layer.v.data();
    for (Eigen::Index i = 0; i < layer.y.size(); ++i)
      y[i] = (y[i] + weights.skip[i / dv % heads] * x[i]) * silu(gate[i]);
    rmsNorm(layer.y, weights.norm, epsilon, layer.scaled);
  } else {
    rmsNorm(layer.y, weights.norm, epsilon, layer.scaled);
    float *scaled = layer.scaled.data();
    for (Eigen::Index i = 0; i < layer.scaled.size(); ++i)
      scaled[i] *= kind == LayerKind::Gdn ? silu(gate[i]) : sigmoid(gate[i]);
  }
  project(layer.scaled, weights.output, threads, part);
}
