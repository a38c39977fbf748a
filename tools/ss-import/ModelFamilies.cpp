//===- ModelFamilies.cpp - What config files of models say ----------------===//

#include "tools/ss-import/ModelFamilies.h"

#include "dialect/ss/SSSizes.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace sinkstate;
using ss::GateKind;
using ss::LayerType;
using ss::NormKind;

using Layers = SmallVector<LayerDescription>;

/// The epsilon under the root in the kernels of FLA, vLLM and SGLang.
constexpr double kServingNormEps = 1e-6;

/// A delta rule layer whose keys and queries have length one and whose queries
/// are scaled by dk^-1/2.
static LayerDescription describeDeltaRule(LayerType type, NormKind norm,
                                          double eps) {
  LayerDescription layer;
  layer.type = type;
  layer.gate = ss::getLayerTypeInfo(type).defaultGate;
  layer.norm = norm;
  layer.normEps = eps;
  return layer;
}

static void setSizes(LayerDescription &layer, int64_t heads, int64_t keyHeads,
                     int64_t dv, int64_t dk) {
  layer.heads = heads;
  layer.keyHeads = keyHeads;
  layer.dv = dv;
  layer.dk = dk;
  if (layer.norm != NormKind::none)
    layer.queryScale = 1.0 / std::sqrt(static_cast<double>(dk));
}

/// Two ways to say how many layers there are must agree.
static LogicalResult checkLayerCount(const ConfigNode &config, StringRef key,
                                     size_t count) {
  int64_t layers = 0;
  if (!config.has("num_hidden_layers"))
    return success();
  if (failed(config.readSize("num_hidden_layers", layers)))
    return failure();
  if (static_cast<size_t>(layers) == count)
    return success();
  return config.error(key) << "lists " << count
                           << " layers, expected 'num_hidden_layers', "
                           << layers;
}

//===----------------------------------------------------------------------===//
// byte-hybrid: the small example models
//===----------------------------------------------------------------------===//

static LogicalResult readByteHybridDelta(const ConfigNode &config,
                                         StringRef name,
                                         LayerDescription &layer) {
  std::optional<ConfigNode> node = config.readObject(name);
  int64_t heads, dk, dv;
  if (!node || failed(node->readSize("num_heads", heads)) ||
      failed(node->readSize("head_k_dim", dk)) ||
      failed(node->readSize("head_v_dim", dv)))
    return failure();
  setSizes(layer, heads, heads, dv, dk);
  return success();
}

static LogicalResult readByteHybridMamba(const ConfigNode &config,
                                         LayerDescription &layer) {
  std::optional<ConfigNode> node = config.readObject("mamba2");
  int64_t heads, groups, dv, dk;
  if (!node || failed(node->readSize("num_heads", heads)) ||
      failed(node->readSize("num_groups", groups)) ||
      failed(node->readSize("head_dim", dv)) ||
      failed(node->readSize("state_size", dk)) ||
      failed(node->checkMultiple("num_heads", heads, "num_groups", groups)))
    return failure();
  setSizes(layer, heads, groups, dv, dk);
  return success();
}

static FailureOr<Layers> readByteHybrid(const ConfigNode &config) {
  SmallVector<std::string> names;
  if (failed(config.readStrings("layers", names)))
    return failure();
  Layers layers;
  for (auto [i, name] : llvm::enumerate(names)) {
    if (name == "attention")
      continue;
    std::optional<LayerType> type = ss::symbolizeLayerType(name);
    if (!type)
      return config.error("layers[" + Twine(i) + "]")
             << "is \"" << name
             << "\", expected \"attention\" or a layer type: "
             << ss::listKeywords<LayerType>();
    LayerDescription layer;
    layer.type = LayerType::mamba2;
    bool delta = *type != LayerType::mamba2;
    if (delta)
      layer = describeDeltaRule(*type, NormKind::max, 1e-12);
    if (failed(delta ? readByteHybridDelta(config, name, layer)
                     : readByteHybridMamba(config, layer)))
      return failure();
    layer.index = i;
    layers.push_back(layer);
  }
  return layers;
}

//===----------------------------------------------------------------------===//
// nemotron_h: Mamba-2 with attention, MLP and experts
//===----------------------------------------------------------------------===//

/// The places of Mamba-2 layers, from a pattern of letters or a list of names.
static LogicalResult readNemotronPlaces(const ConfigNode &config,
                                        SmallVectorImpl<int64_t> &places) {
  if (config.has("layers_block_type")) {
    SmallVector<std::string> names;
    if (failed(config.readStrings("layers_block_type", names)) ||
        failed(checkLayerCount(config, "layers_block_type", names.size())))
      return failure();
    for (auto [i, name] : llvm::enumerate(names)) {
      if (name == "mamba")
        places.push_back(i);
      else if (name != "attention" && name != "mlp" && name != "moe")
        return config.error("layers_block_type[" + Twine(i) + "]")
               << "is \"" << name
               << "\", expected \"mamba\", \"attention\", \"mlp\" or \"moe\"";
    }
    return success();
  }
  std::string pattern;
  if (failed(config.readString("hybrid_override_pattern", pattern)) ||
      failed(
          checkLayerCount(config, "hybrid_override_pattern", pattern.size())))
    return failure();
  for (auto [i, letter] : llvm::enumerate(pattern)) {
    if (letter == 'M')
      places.push_back(i);
    else if (!StringRef("*-E").contains(letter))
      return config.error("hybrid_override_pattern")
             << "has '" << StringRef(&letter, 1) << "' at place " << i
             << ", expected M (Mamba-2), * (attention), - (MLP) or E (experts)";
  }
  return success();
}

static FailureOr<Layers> readNemotron(const ConfigNode &config) {
  SmallVector<int64_t> places;
  int64_t heads, groups, dv, dk;
  if (failed(readNemotronPlaces(config, places)) ||
      failed(config.readSize("mamba_num_heads", heads)) ||
      failed(config.readSize("n_groups", groups)) ||
      failed(config.readSize("mamba_head_dim", dv)) ||
      failed(config.readSize("ssm_state_size", dk)) ||
      failed(
          config.checkMultiple("mamba_num_heads", heads, "n_groups", groups)))
    return failure();
  Layers layers;
  for (int64_t place : places) {
    LayerDescription layer;
    layer.type = LayerType::mamba2;
    layer.index = place;
    setSizes(layer, heads, groups, dv, dk);
    layers.push_back(layer);
  }
  return layers;
}

//===----------------------------------------------------------------------===//
// Lists and intervals of linear attention
//===----------------------------------------------------------------------===//

/// The places of linear attention, from `layer_types` or from the interval of
/// full attention (default 4: every fourth layer).
static LogicalResult readLinearPlaces(const ConfigNode &config,
                                      SmallVectorImpl<int64_t> &places) {
  if (config.has("layer_types")) {
    SmallVector<std::string> names;
    if (failed(config.readStrings("layer_types", names)) ||
        failed(checkLayerCount(config, "layer_types", names.size())))
      return failure();
    for (auto [i, name] : llvm::enumerate(names)) {
      if (name == "linear_attention")
        places.push_back(i);
      else if (!StringRef(name).ends_with("_attention"))
        return config.error("layer_types[" + Twine(i) + "]")
               << "is \"" << name
               << "\", expected \"linear_attention\" or another "
                  "\"*_attention\"";
    }
    return success();
  }
  int64_t count, interval = 4;
  if (failed(config.readSize("num_hidden_layers", count)) ||
      (config.has("full_attention_interval") &&
       failed(config.readSize("full_attention_interval", interval))))
    return failure();
  for (int64_t i = 0; i < count; ++i)
    if ((i + 1) % interval != 0)
      places.push_back(i);
  return success();
}

//===----------------------------------------------------------------------===//
// qwen3_next, qwen3_5: gated DeltaNet
//===----------------------------------------------------------------------===//

static FailureOr<Layers> readQwen(const ConfigNode &config) {
  SmallVector<int64_t> places;
  int64_t heads, keyHeads, dv, dk;
  if (failed(readLinearPlaces(config, places)) ||
      failed(config.readSize("linear_num_value_heads", heads)) ||
      failed(config.readSize("linear_num_key_heads", keyHeads)) ||
      failed(config.readSize("linear_value_head_dim", dv)) ||
      failed(config.readSize("linear_key_head_dim", dk)) ||
      failed(config.checkMultiple("linear_num_value_heads", heads,
                                  "linear_num_key_heads", keyHeads)))
    return failure();
  Layers layers;
  for (int64_t place : places) {
    LayerDescription layer =
        describeDeltaRule(LayerType::gdn, NormKind::add, kServingNormEps);
    layer.index = place;
    setSizes(layer, heads, keyHeads, dv, dk);
    layers.push_back(layer);
  }
  return layers;
}

//===----------------------------------------------------------------------===//
// kimi_linear, glm5_next: Kimi delta attention
//===----------------------------------------------------------------------===//

/// The places of KDA. `kda_layers` of kimi_linear counts from 1; glm5_next has
/// `layer_types`.
static LogicalResult readKimiPlaces(const ConfigNode &config,
                                    const ConfigNode &linear,
                                    SmallVectorImpl<int64_t> &places) {
  if (config.has("layer_types"))
    return readLinearPlaces(config, places);
  int64_t count;
  SmallVector<int64_t> counted;
  if (failed(config.readSize("num_hidden_layers", count)) ||
      failed(linear.readIntegers("kda_layers", counted)))
    return failure();
  for (auto [i, place] : llvm::enumerate(counted)) {
    if (place < 1 || place > count)
      return linear.error("kda_layers[" + Twine(i) + "]")
             << "is " << place << ", expected 1 to 'num_hidden_layers', "
             << count;
    if (!places.empty() && place - 1 <= places.back())
      return linear.error("kda_layers[" + Twine(i) + "]")
             << "is " << place << ", expected ascending numbers";
    places.push_back(place - 1);
  }
  return success();
}

static FailureOr<Layers> readKimi(const ConfigNode &config) {
  std::optional<ConfigNode> linear = config.readObject("linear_attn_config");
  SmallVector<int64_t> places;
  int64_t heads, size;
  if (!linear || failed(readKimiPlaces(config, *linear, places)) ||
      failed(linear->readSize("num_heads", heads)) ||
      failed(linear->readSize("head_dim", size)))
    return failure();
  LayerDescription layer =
      describeDeltaRule(LayerType::kda, NormKind::add, kServingNormEps);
  setSizes(layer, heads, heads, size, size);
  if (linear->has("gate_lower_bound")) {
    if (failed(linear->readNumber("gate_lower_bound", layer.gateBound)))
      return failure();
    if (!(layer.gateBound < 0))
      return linear->error("gate_lower_bound")
             << "is " << ss::formatNumber(layer.gateBound)
             << ", expected a number below 0";
    layer.gate = GateKind::bounded_channel;
  }
  bool negative = false;
  if (linear->has("allow_neg_eigval") &&
      failed(linear->readBool("allow_neg_eigval", negative)))
    return failure();
  layer.betaScale = negative ? 2.0 : 1.0;
  Layers layers;
  for (int64_t place : places) {
    layer.index = place;
    layers.push_back(layer);
  }
  return layers;
}

//===----------------------------------------------------------------------===//
// The table of families
//===----------------------------------------------------------------------===//

namespace {
struct Family {
  StringLiteral modelType;
  FailureOr<Layers> (*read)(const ConfigNode &);
};
} // namespace

static const Family kFamilies[] = {
    {"byte-hybrid", readByteHybrid}, {"nemotron_h", readNemotron},
    {"qwen3_next", readQwen},        {"qwen3_5", readQwen},
    {"qwen3_5_text", readQwen},      {"qwen3_5_moe", readQwen},
    {"qwen3_5_moe_text", readQwen},  {"qwen4_exp", readQwen},
    {"kimi_linear", readKimi},       {"kimi_k3", readKimi},
    {"glm5_next", readKimi},
};

FailureOr<Layers> sinkstate::readLayers(const ConfigNode &root) {
  std::string modelType;
  if (failed(root.readString("model_type", modelType)))
    return failure();
  // Models that also see keep their language model's config inside.
  std::optional<ConfigNode> text = root.findObject("text_config");
  const ConfigNode &config = text ? *text : root;
  const auto *family = llvm::find_if(kFamilies, [&](const Family &candidate) {
    return candidate.modelType == modelType;
  });
  if (family == std::end(kFamilies)) {
    InFlightDiagnostic diagnostic = root.error("model_type");
    diagnostic << "is \"" << modelType << "\", expected one of ";
    llvm::interleaveComma(kFamilies, diagnostic,
                          [&](const Family &f) { diagnostic << f.modelType; });
    return diagnostic;
  }
  FailureOr<Layers> layers = family->read(config);
  if (succeeded(layers) && layers->empty())
    return emitError(root.getLoc())
           << "the model has no recurrent layers, expected at least one";
  return layers;
}
