//===- SinkFile.cpp - Mean values of a model's heads ----------------------===//

#include "SinkFile.h"

#include "DenseBackend.h"
#include "Safetensors.h"

#include <nlohmann/json.hpp>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

/// Sums up the values that pass by.
class ValueSums : public StateBackend {
public:
  ValueSums(StateBackend &inner, const Config &config)
      : inner(inner), config(config) {}

  Status decodeLayer(int layer, const StateInput &input, float *y) override {
    const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
    std::vector<double> &sum = sums[layer];
    sum.resize(size_t(sizes.heads) * size_t(sizes.dv));
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += input.v[i];
    return inner.decodeLayer(layer, input, y);
  }
  Status endStep() override { return inner.endStep(); }

  std::map<int, std::vector<double>> sums;

private:
  StateBackend &inner;
  const Config &config;
};

std::string nameOf(int layer) {
  return "layers." + std::to_string(layer) + ".vbar";
}

} // namespace

Result<MeanValues>
ss_run::measureMeans(const Model &model, const TokenSource &text, int tokens,
                     int threads, const std::function<void(int)> &progress) {
  DenseBackend dense(model.config, 1, threads);
  ValueSums values(dense, model.config);
  Decoder decoder(model, values, 1, threads);
  for (int step = 0; step < tokens; ++step) {
    if (Status status = decoder.step(text.at(step)))
      return std::move(*status);
    if (progress)
      progress(step + 1);
  }
  MeanValues means;
  for (const auto &[layer, sum] : values.sums)
    for (double x : sum)
      means[layer].push_back(float(x / tokens));
  return means;
}

std::string ss_run::formatMeans(const Config &config, const MeanValues &means) {
  nlohmann::ordered_json header;
  std::string data;
  for (const auto &[layer, mean] : means) {
    const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char *>(mean.data()),
                mean.size() * sizeof(float));
    header[nameOf(layer)] = {{"dtype", "F32"},
                             {"shape", {sizes.heads, sizes.dv}},
                             {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string all;
  for (uint64_t size = text.size(), i = 0; i < 8; ++i)
    all += char(size >> (8 * i) & 0xff);
  return all + text + data;
}

Result<MeanValues> ss_run::readMeans(const std::string &path,
                                     const Config &config,
                                     std::vector<int> &without) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  MeanValues means;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    if (config.layers[layer] == LayerKind::Attention)
      continue;
    const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
    if (!file->tensors().contains(nameOf(int(layer)))) {
      without.push_back(int(layer));
      means[int(layer)].resize(size_t(sizes.heads) * size_t(sizes.dv));
      continue;
    }
    Result<std::vector<float>> mean =
        file->readFloats(nameOf(int(layer)), {sizes.heads, sizes.dv});
    if (!mean)
      return mean.takeError();
    means[int(layer)] = std::move(*mean);
  }
  if (without.size() == means.size())
    return Error{path + ": found no tensor layers.N.vbar of a recurrent layer, "
                        "expected a file of --calibrate-sink"};
  return means;
}
