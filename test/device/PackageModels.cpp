//===- PackageModels.cpp - Packages that tests run on a GPU ---------------===//

#include "PackageModels.h"

#include "capi/Failure.h"
#include "cuda/Context.h"

#include <nlohmann/json.hpp>

#include <cctype>
#include <fstream>
#include <stdexcept>

namespace sinkstate::test {

std::vector<std::string> &packageFolders() {
  static std::vector<std::string> folders;
  return folders;
}

std::string packageName(const testing::TestParamInfo<std::string> &info) {
  std::string name;
  for (char c : info.param.substr(info.param.find_last_of('/') + 1))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

reference::RequestStyle ordinaryStyle() {
  reference::RequestStyle style;
  style.rank = 6;
  style.noise = 0.02;
  return style;
}

std::vector<reference::LayerSpec> layersOf(const std::string &folder) {
  std::ifstream file(folder + "/manifest.json");
  if (!file)
    throw std::runtime_error("cannot read '" + folder +
                             "/manifest.json', expected a kernel package");
  const nlohmann::json manifest = nlohmann::json::parse(file);
  std::vector<reference::LayerSpec> layers;
  for (const nlohmann::json &json : manifest["layers"]) {
    reference::LayerSpec layer;
    layer.name = json["name"];
    layer.type = json["type"];
    layer.index = json["index"];
    layer.heads = json["heads"];
    layer.keyHeads = json["key_heads"];
    layer.dv = json["dv"];
    layer.dk = json["dk"];
    layer.denseForm = json["form"] == "dense";
    layer.gate = json["channel_decay"].get<bool>()
                     ? reference::GateKind::SoftplusChannel
                     : reference::GateKind::Softplus;
    if (!layer.denseForm) {
      layer.active = json["active"];
      layer.buffer = json["buffer"];
      layer.draft = json.value("draft", 0);
      layer.phase = json["phase"];
      layer.before = json.value("compacts", "after") == "before";
      layer.policyKind = json["policy"]["kind"];
      layer.policyValue = json["policy"]["value"];
      layer.core = json["core"];
    }
    layers.push_back(layer);
  }
  return layers;
}

std::string gpuUnavailable() {
  static const std::string reason = [] {
    try {
      (void)runtime::cuda::Context::open(runtime::cuda::Driver::get(), 0);
    } catch (const runtime::Failure &failure) {
      return std::string(failure.what());
    }
    return std::string();
  }();
  return reason;
}

void OnGpu::SetUp() {
  if (std::string reason = gpuUnavailable(); !reason.empty())
    GTEST_SKIP() << reason;
}

ss_engine_options OnGpu::cudaOptions(int32_t slots) {
  ss_engine_options options = engineOptions();
  options.slots = slots;
  options.device = SS_DEVICE_CUDA;
  return options;
}

} // namespace sinkstate::test
