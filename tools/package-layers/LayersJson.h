//===- LayersJson.h - A package's layers as JSON ----------------*- C++ -*-===//
#ifndef SS_LAYERS_JSON_H
#define SS_LAYERS_JSON_H

#include "PackageLayers.h"

#include <nlohmann/json.hpp>

namespace ss_tools {

/// [{"name", "type", "form", "storage", "rounding", and of states in factors
/// "policy", "core", "active"; "buffer" where there is one}].
inline nlohmann::ordered_json
asJson(const std::vector<PackageLayer> &layers) {
  auto all = nlohmann::ordered_json::array();
  for (const PackageLayer &layer : layers) {
    nlohmann::ordered_json one = {{"name", layer.name},
                                  {"type", layer.type},
                                  {"form", layer.form},
                                  {"storage", layer.storage},
                                  {"rounding", layer.rounding}};
    if (!layer.isDense())
      one.update({{"policy", layer.policy},
                  {"core", layer.core},
                  {"active", layer.active}});
    if (layer.buffer > 0)
      one["buffer"] = layer.buffer;
    all.push_back(std::move(one));
  }
  return all;
}

} // namespace ss_tools

#endif
