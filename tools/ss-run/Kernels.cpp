//===- Kernels.cpp - Kernels of a package folder --------------------------===//

#include "Kernels.h"

#include "PackageLayers.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <utility>

using namespace ss_run;

namespace {

/// Whether a package can be the dense run. Deferred matrices are as exact.
Status checkDense(const std::vector<ss_tools::PackageLayer> &layers,
                  const std::string &folder) {
  for (const ss_tools::PackageLayer &layer : layers)
    if (!layer.isDense() || layer.storage != "f32")
      return Error{"--dense-package " + folder + ": layer '" + layer.name +
                   "': found form " + layer.form + " in " + layer.storage +
                   ", expected form dense in f32: compile what ss-import "
                   "--form dense makes of the model"};
  return std::nullopt;
}

class PackageKernels : public Kernels {
public:
  static Result<std::unique_ptr<Kernels>> open(const std::string &folder,
                                               StateForm form) {
    auto kernels = std::make_unique<PackageKernels>();
    if (ss_package_open(folder.c_str(), &kernels->handle) != SS_OK)
      return Error{ss_last_error()};
    if (form == StateForm::Dense)
      if (Status status =
              checkDense(ss_tools::readPackageLayers(folder), folder))
        return std::move(*status);
    kernels->description = describe(folder);
    return std::unique_ptr<Kernels>(std::move(kernels));
  }

private:
  /// What the manifest says about the first factored layer; the runtime has
  /// checked the manifest before.
  static std::string describe(const std::string &folder) {
    const std::string text = "package " + folder;
    std::ifstream file(folder + "/manifest.json");
    const nlohmann::json manifest =
        nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!manifest.is_object() || !manifest.contains("layers"))
      return text;
    for (const nlohmann::json &layer : manifest["layers"]) {
      if (!layer.contains("policy"))
        continue;
      const nlohmann::json &policy = layer["policy"];
      char value[32];
      std::snprintf(value, sizeof value, ":%g", policy.value("value", 0.0));
      return text + ": " + policy.value("kind", "") + value + ", active " +
             std::to_string(layer.value("active", 0)) + ", buffer " +
             std::to_string(layer.value("buffer", 0));
    }
    return text;
  }
};

} // namespace

Kernels::~Kernels() { close(); }

void Kernels::close() {
  if (handle)
    ss_package_close(std::exchange(handle, nullptr));
}

Result<std::unique_ptr<Kernels>>
ss_run::openKernels(const std::string &folder, StateForm form) {
  return PackageKernels::open(folder, form);
}
