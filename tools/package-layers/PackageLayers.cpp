//===- PackageLayers.cpp - How a package keeps its states -----------------===//

#include "PackageLayers.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace ss_tools;
using nlohmann::json;

namespace {

std::string textOf(const json &object, const char *key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

int32_t countOf(const json &object, const char *key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<int32_t>() : 0;
}

/// A fixed rank beside a sink is what options call a policy of its own.
std::string policyOf(const json &layer, const std::string &form) {
  const auto policy = layer.find("policy");
  if (policy == layer.end() || !policy->is_object() ||
      !policy->contains("value") || !(*policy)["value"].is_number())
    return "";
  char value[32];
  std::snprintf(value, sizeof value, ":%.10g", (*policy)["value"].get<double>());
  return (form == "sink" ? "sink" : textOf(*policy, "kind")) + value;
}

/// "gdn, mamba2 and kda".
std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

} // namespace

std::vector<PackageLayer>
ss_tools::parsePackageLayers(std::string_view manifest) {
  const json root = json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  std::vector<PackageLayer> layers;
  if (!root.is_object() || !root.contains("layers") ||
      !root["layers"].is_array())
    return layers;
  for (const json &entry : root["layers"]) {
    if (!entry.is_object())
      return {};
    PackageLayer layer;
    layer.name = textOf(entry, "name"), layer.type = textOf(entry, "type");
    layer.form = textOf(entry, "form");
    layer.storage = textOf(entry, "storage");
    layer.rounding = textOf(entry, "rounding");
    if (layer.form != "dense")
      layer.buffer = countOf(entry, "buffer");
    // Of what no compaction works on the rest says nothing.
    if (!layer.isDense()) {
      layer.policy = policyOf(entry, layer.form);
      layer.core = textOf(entry, "core");
      layer.active = countOf(entry, "active");
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<PackageLayer>
ss_tools::readPackageLayers(const std::string &folder) {
  std::ifstream file(folder + "/manifest.json", std::ios::binary);
  return parsePackageLayers(std::string(std::istreambuf_iterator<char>(file),
                                        std::istreambuf_iterator<char>()));
}

std::string ss_tools::describe(const PackageLayer &layer) {
  std::string text = layer.isDense() ? layer.form : layer.policy;
  if (!layer.core.empty())
    text += ", core " + layer.core;
  if (layer.active > 0)
    text += ", active " + std::to_string(layer.active);
  if (layer.buffer > 0)
    text += ", buffer " + std::to_string(layer.buffer);
  text += ", storage " + layer.storage;
  if (!layer.rounding.empty() && layer.rounding != "nearest")
    text += ", rounding " + layer.rounding;
  return text;
}

std::string ss_tools::describe(const std::vector<PackageLayer> &layers) {
  // In the order of their first layers.
  std::vector<std::string> kinds;
  std::map<std::string, std::set<std::string>> kindsOfType;
  for (const PackageLayer &layer : layers) {
    const std::string kind = describe(layer);
    kindsOfType[layer.type].insert(kind);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.push_back(kind);
  }
  if (kinds.size() == 1)
    return kinds.front();
  std::string text;
  for (const std::string &kind : kinds) {
    std::vector<std::string> names;
    for (const PackageLayer &layer : layers) {
      const bool byType = kindsOfType[layer.type].size() == 1;
      const std::string &name = byType ? layer.type : layer.name;
      if (describe(layer) == kind &&
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
    text += (text.empty() ? "" : "; ") + listed(names) + ": " + kind;
  }
  return text;
}
