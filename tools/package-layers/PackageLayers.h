//===- PackageLayers.h - How a package keeps its states ---------*- C++ -*-===//
//
// What a manifest says of every layer, for people: tools name it in what they
// print. The runtime's own reader (package/Manifest.h) checks it.
//
//===----------------------------------------------------------------------===//
#ifndef SS_PACKAGE_LAYERS_H
#define SS_PACKAGE_LAYERS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ss_tools {

/// A layer's states; what a manifest does not say is empty or 0.
struct PackageLayer {
  std::string name, type;
  std::string form;    ///< "factored", "sink", "dense", "deferred"
  std::string policy;  ///< "relative:0.03"; of form sink "sink:16"
  std::string core;    ///< "svd", "qr"
  std::string storage; ///< "f32", "f16", "bf16", "fp8"
  std::string rounding; ///< "nearest", "stochastic"
  int32_t active = 0, buffer = 0;

  bool isDense() const { return form == "dense" || form == "deferred"; }
};

/// The layers of a manifest's text; none where it cannot be read.
std::vector<PackageLayer> parsePackageLayers(std::string_view manifest);
/// The same of a folder's manifest.json.
std::vector<PackageLayer> readPackageLayers(const std::string &folder);

/// Whether a layer's rows have a dense form: those of 8 bits have none.
inline bool mayBeDense(const PackageLayer &layer) {
  return !layer.isDense() && layer.storage != "fp8";
}

/// "relative:0.03, core qr, active 8, buffer 8, storage fp8, rounding
/// stochastic", "dense, storage f32"; without rounding to nearest.
std::string describe(const PackageLayer &layer);
/// The same of all layers; where they differ, of each kind: "gdn and mamba2:
/// relative:0.03, ...; kda: ...". Layers of one type that differ go by name.
std::string describe(const std::vector<PackageLayer> &layers);

} // namespace ss_tools

#endif
