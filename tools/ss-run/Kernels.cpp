//===- Kernels.cpp - Kernels of a package folder --------------------------===//

#include "Kernels.h"

#include <algorithm>
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
    kernels->kept = ss_tools::readPackageLayers(folder);
    kernels->origin = "package " + folder + ": ";
    if (form == StateForm::Dense)
      if (Status status = checkDense(kernels->kept, folder))
        return std::move(*status);
    return std::unique_ptr<Kernels>(std::move(kernels));
  }
};

} // namespace

Kernels::~Kernels() { close(); }

void Kernels::close() {
  if (handle)
    ss_package_close(std::exchange(handle, nullptr));
}

Status ss_run::settleDenseFallback(const Kernels &kernels,
                                   RunOptions &options) {
  const auto &layers = kernels.layers();
  if (std::any_of(layers.begin(), layers.end(), ss_tools::mayBeDense) ||
      std::none_of(layers.begin(), layers.end(),
                   [](const auto &layer) { return !layer.isDense(); }))
    return std::nullopt;
  if (options.denseFallbackGiven && options.denseFallback)
    return Error{"--dense-fallback: found 'on' with " + kernels.policy() +
                 ", whose rows have no dense form, expected off, or another "
                 "storage"};
  options.denseFallback = false;
  return std::nullopt;
}

Result<std::unique_ptr<Kernels>>
ss_run::openKernels(const std::string &folder, StateForm form) {
  return PackageKernels::open(folder, form);
}
