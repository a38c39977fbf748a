//===- Config.cpp - What config.json says about the model -----------------===//

#include "Config.h"

#include "Json.h"

#include <algorithm>
#include <fstream>
#include <set>

using namespace tiny_hybrid;
using nlohmann::json;

namespace {

constexpr int maxSize = 1 << 20;
constexpr int maxLayers = 1024;
constexpr size_t maxBytes = size_t(1) << 20;

/// Reads the keys of one object, remembers the first thing that is wrong, and
/// knows at the end whether keys are left that nobody asked for.
class ObjectReader {
public:
  ObjectReader(const json &object, std::string prefix, Status &status)
      : object(object), prefix(std::move(prefix)), status(status) {}

  int size(const char *key) {
    const json *value = find(key);
    if (!value)
      return 0;
    if (!value->is_number_integer() || *value < 1 || *value > maxSize) {
      fail(key, "found " + describe(*value) +
                    ", expected an integer from 1 to " +
                    std::to_string(maxSize));
      return 0;
    }
    return value->get<int>();
  }

  double positive(const char *key) {
    const json *value = find(key);
    if (!value)
      return 0;
    if (!value->is_number() || !(value->get<double>() > 0)) {
      fail(key, "found " + describe(*value) + ", expected a positive number");
      return 0;
    }
    return value->get<double>();
  }

  std::string oneOf(const char *key, const std::vector<std::string> &choices) {
    const json *value = find(key);
    if (!value)
      return {};
    if (value->is_string() &&
        std::count(choices.begin(), choices.end(), value->get<std::string>()))
      return value->get<std::string>();
    std::string expected;
    for (const std::string &choice : choices)
      expected += (expected.empty() ? "'" : "' or '") + choice;
    fail(key, "found " + describe(*value) + ", expected " + expected + "'");
    return {};
  }

  const json *nested(const char *key) {
    const json *value = find(key);
    if (value && !value->is_object()) {
      fail(key, "found " + describe(*value) + ", expected an object");
      return nullptr;
    }
    return value;
  }

  const json *find(const char *key) {
    known.insert(key);
    auto position = object.find(key);
    if (position != object.end())
      return &*position;
    fail(key, "not found, expected by this model");
    return nullptr;
  }

  /// An object that may be absent, because no layer needs it.
  bool contains(const char *key) const { return object.contains(key); }
  void ignore(const char *key) { known.insert(key); }

  void fail(const std::string &key, const std::string &what) {
    if (!status)
      status = Error{"key '" + prefix + key + "': " + what};
  }

  void finish() {
    for (const auto &[key, value] : object.items())
      if (!known.count(key))
        fail(key, "found, expected no such key in a byte-hybrid model");
  }

private:
  const json &object;
  std::string prefix;
  Status &status;
  std::set<std::string> known;
};

std::vector<LayerKind> readLayers(ObjectReader &reader) {
  std::vector<LayerKind> kinds;
  const json *layers = reader.find("layers");
  if (!layers)
    return kinds;
  if (!layers->is_array() || layers->empty() || layers->size() > maxLayers) {
    reader.fail("layers", "found " + describe(*layers) +
                              ", expected a list of 1 to " +
                              std::to_string(maxLayers) + " layer types");
    return kinds;
  }
  for (size_t i = 0; i < layers->size(); ++i) {
    const json &name = (*layers)[i];
    bool found = false;
    for (LayerKind kind : {LayerKind::Gdn, LayerKind::Mamba2, LayerKind::Kda,
                           LayerKind::Attention})
      if (name == toString(kind)) {
        kinds.push_back(kind);
        found = true;
      }
    if (!found)
      reader.fail("layers[" + std::to_string(i) + "]",
                  "found " + describe(name) +
                      ", expected 'gdn', 'mamba2', 'kda' or 'attention'");
  }
  return kinds;
}

RecurrentSizes readDeltaNet(const json &object, LayerKind kind,
                            Status &status) {
  ObjectReader reader(object, std::string(toString(kind)) + ".", status);
  RecurrentSizes sizes;
  sizes.heads = sizes.keyHeads = reader.size("num_heads");
  sizes.dk = reader.size("head_k_dim");
  sizes.dv = reader.size("head_v_dim");
  sizes.convWidth = reader.size("conv_width");
  if (kind == LayerKind::Kda)
    sizes.gateRank = reader.size("gate_rank");
  reader.finish();
  return sizes;
}

RecurrentSizes readMamba2(const json &object, Status &status) {
  ObjectReader reader(object, "mamba2.", status);
  RecurrentSizes sizes;
  sizes.heads = reader.size("num_heads");
  sizes.keyHeads = reader.size("num_groups");
  sizes.dv = reader.size("head_dim");
  sizes.dk = reader.size("state_size");
  sizes.convWidth = reader.size("conv_width");
  if (!status && sizes.heads % sizes.keyHeads != 0)
    reader.fail("num_heads", "found " + std::to_string(sizes.heads) +
                                 ", expected a multiple of num_groups = " +
                                 std::to_string(sizes.keyHeads));
  reader.finish();
  return sizes;
}

AttentionSizes readAttention(const json &object, Status &status) {
  ObjectReader reader(object, "attention.", status);
  AttentionSizes sizes;
  sizes.heads = reader.size("num_heads");
  sizes.headDim = reader.size("head_dim");
  sizes.ropeTheta = reader.positive("rope_theta");
  if (!status && sizes.headDim % 2 != 0)
    reader.fail("head_dim", "found " + std::to_string(sizes.headDim) +
                                ", expected an even number, since the "
                                "rotary embedding turns pairs");
  reader.finish();
  return sizes;
}

} // namespace

const char *tiny_hybrid::toString(LayerKind kind) {
  switch (kind) {
  case LayerKind::Gdn:
    return "gdn";
  case LayerKind::Mamba2:
    return "mamba2";
  case LayerKind::Kda:
    return "kda";
  case LayerKind::Attention:
    return "attention";
  }
  __builtin_unreachable();
}

const RecurrentSizes &Config::recurrent(LayerKind kind) const {
  return kind == LayerKind::Gdn ? gdn : kind == LayerKind::Kda ? kda : mamba2;
}

bool Config::has(LayerKind kind) const {
  return std::count(layers.begin(), layers.end(), kind) > 0;
}

Result<Config> Config::load(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  // No more than a configuration can have: what is given may have no end.
  std::string text(maxBytes + 1, '\0');
  stream.read(text.data(), std::streamsize(text.size()));
  if (!stream.is_open() || stream.bad())
    return Error{path + ": cannot read the model's configuration, expected a "
                        "readable config.json"};
  text.resize(size_t(stream.gcount()));
  if (text.size() > maxBytes)
    return Error{path + ": found more than " + std::to_string(maxBytes) +
                 " bytes, expected a config.json"};
  return parse(text, path);
}

Result<Config> Config::parse(const std::string &text, const std::string &path) {
  auto root = parseJsonObject(text);
  if (!root)
    return Error{path + ": " + root.error()};
  Status status;
  Config config;
  ObjectReader reader(*root, "", status);
  reader.oneOf("model_type", {"byte-hybrid"});
  reader.oneOf("torch_dtype", {"bfloat16", "float32"});
  config.vocab = reader.size("vocab_size");
  config.hidden = reader.size("hidden_size");
  config.intermediate = reader.size("intermediate_size");
  config.rmsNormEps = reader.positive("rms_norm_eps");
  config.layers = readLayers(reader);
  if (config.vocab && config.vocab != 256)
    reader.fail("vocab_size", "found " + std::to_string(config.vocab) +
                                  ", expected 256: tokens are bytes");
  for (LayerKind kind : {LayerKind::Gdn, LayerKind::Mamba2, LayerKind::Kda,
                         LayerKind::Attention}) {
    const char *key = toString(kind);
    reader.ignore(key);
    if (!config.has(kind) && !reader.contains(key))
      continue;
    const json *object = reader.nested(key);
    if (!object)
      continue;
    if (kind == LayerKind::Attention)
      config.attention = readAttention(*object, status);
    else if (kind == LayerKind::Mamba2)
      config.mamba2 = readMamba2(*object, status);
    else
      (kind == LayerKind::Gdn ? config.gdn : config.kda) =
          readDeltaNet(*object, kind, status);
  }
  reader.finish();
  if (status)
    return Error{path + ": " + status->message};
  return config;
}
