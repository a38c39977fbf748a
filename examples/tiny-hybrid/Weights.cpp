//===- Weights.cpp - The trained parameters -------------------------------===//

#include "Weights.h"

#include "Safetensors.h"

#include <algorithm>
#include <set>

using namespace tiny_hybrid;

namespace {

/// Reads tensors by name and remembers the first thing that is wrong.
class TensorReader {
public:
  explicit TensorReader(const SafetensorsFile &file) : file(file) {}

  Vector vector(const std::string &name, int64_t size) {
    return read(name, {size});
  }

  Matrix matrix(const std::string &name, int64_t rows, int64_t columns) {
    Vector values = read(name, {rows, columns});
    if (values.empty())
      return {};
    return Eigen::Map<const Matrix>(values.data(), rows, columns);
  }

  ConvolvedProjection convolved(const std::string &mixer,
                                const std::string &name, int64_t size,
                                int64_t hidden, int64_t width) {
    return {matrix(mixer + name + ".weight", size, hidden),
            matrix(mixer + "conv_" + name + ".weight", size, width)};
  }

  Status finish() {
    if (!status)
      for (const auto &[name, info] : file.tensors())
        if (!wanted.count(name))
          return Error{file.path() + ": tensor '" + name +
                       "': found, expected no such tensor in the model of "
                       "config.json"};
    return status;
  }

private:
  Vector read(const std::string &name, Shape shape) {
    wanted.insert(name);
    Result<Vector> values = file.readFloats(name, shape);
    if (values)
      return std::move(*values);
    if (!status)
      status = values.takeError();
    return {};
  }

  const SafetensorsFile &file;
  std::set<std::string> wanted;
  Status status;
};

RecurrentWeights readRecurrent(TensorReader &reader, const std::string &mixer,
                               LayerKind kind, const Config &config) {
  const RecurrentSizes &sizes = config.recurrent(kind);
  const int hidden = config.hidden, width = sizes.convWidth;
  const int64_t keys = int64_t(sizes.keyHeads) * sizes.dk;
  const int64_t values = int64_t(sizes.heads) * sizes.dv;
  RecurrentWeights weights;
  auto matrix = [&](const char *name, int64_t rows, int64_t columns) {
    return reader.matrix(mixer + name + ".weight", rows, columns);
  };

  weights.aLog = reader.vector(mixer + "A_log", sizes.heads);
  weights.dtBias = reader.vector(mixer + "dt_bias",
                                 kind == LayerKind::Kda ? keys : sizes.heads);
  weights.output = matrix("o", hidden, values);
  if (kind == LayerKind::Mamba2) {
    weights.q = reader.convolved(mixer, "C", keys, hidden, width);
    weights.k = reader.convolved(mixer, "B", keys, hidden, width);
    weights.v = reader.convolved(mixer, "x", values, hidden, width);
    weights.gate = matrix("dt", sizes.heads, hidden);
    weights.outputGate = matrix("z", values, hidden);
    weights.skip = reader.vector(mixer + "D", sizes.heads);
    weights.norm = reader.vector(mixer + "norm.weight", values);
    return weights;
  }
  weights.q = reader.convolved(mixer, "q", keys, hidden, width);
  weights.k = reader.convolved(mixer, "k", keys, hidden, width);
  weights.v = reader.convolved(mixer, "v", values, hidden, width);
  weights.beta = matrix("b", sizes.heads, hidden);
  weights.norm = reader.vector(mixer + "norm.weight", sizes.dv);
  if (kind == LayerKind::Gdn) {
    weights.gate = matrix("a", sizes.heads, hidden);
    weights.outputGate = matrix("g", values, hidden);
  } else {
    weights.gate = matrix("f1", sizes.gateRank, hidden);
    weights.gateUp = matrix("f2", keys, sizes.gateRank);
    weights.outputGate = matrix("g1", sizes.gateRank, hidden);
    weights.outputGateUp = matrix("g2", values, sizes.gateRank);
  }
  return weights;
}

AttentionWeights readAttention(TensorReader &reader, const std::string &mixer,
                               const Config &config) {
  const int hidden = config.hidden;
  const int64_t size =
      int64_t(config.attention.heads) * config.attention.headDim;
  return {reader.matrix(mixer + "q.weight", size, hidden),
          reader.matrix(mixer + "k.weight", size, hidden),
          reader.matrix(mixer + "v.weight", size, hidden),
          reader.matrix(mixer + "o.weight", hidden, size)};
}

LayerWeights readLayer(TensorReader &reader, const std::string &prefix,
                       LayerKind kind, const Config &config) {
  const int hidden = config.hidden, inner = config.intermediate;
  LayerWeights layer;
  layer.mixerNorm = reader.vector(prefix + "norm1.weight", hidden);
  layer.mlpNorm = reader.vector(prefix + "norm2.weight", hidden);
  if (kind == LayerKind::Attention)
    layer.attention = readAttention(reader, prefix + "mixer.", config);
  else
    layer.recurrent = readRecurrent(reader, prefix + "mixer.", kind, config);
  layer.mlpGate = reader.matrix(prefix + "mlp.gate.weight", inner, hidden);
  layer.mlpUp = reader.matrix(prefix + "mlp.up.weight", inner, hidden);
  layer.mlpDown = reader.matrix(prefix + "mlp.down.weight", hidden, inner);
  return layer;
}

} // namespace

Result<Weights> Weights::load(const std::string &path, const Config &config) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  TensorReader reader(*file);
  Weights weights;
  weights.embedding =
      reader.matrix("embed.weight", config.vocab, config.hidden);
  weights.finalNorm = reader.vector("norm.weight", config.hidden);
  weights.head = reader.matrix("head.weight", config.vocab, config.hidden);
  for (size_t i = 0; i < config.layers.size(); ++i)
    weights.layers.push_back(readLayer(
        reader, "layers." + std::to_string(i) + ".", config.layers[i], config));
  if (Status status = reader.finish())
    return std::move(*status);
  return weights;
}
