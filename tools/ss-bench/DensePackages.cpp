//===- DensePackages.cpp - What is measured beside a package --------------===//

#include "DensePackages.h"

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Status;
using namespace sinkstate::runtime;

namespace {

const char *formOf(const LayerManifest &layer) {
  return layer.deferred    ? "deferred"
         : layer.denseForm ? "dense"
         : layer.sinkForm  ? "sink"
                           : "factored";
}

const char *wantedForm(DenseForm form) {
  return form == DenseForm::Deferred ? "deferred" : "dense";
}

/// "f16". Rows of 8 bits have no matrix beside them: any of them will do.
std::string wantedStorage(const LayerManifest &ours, DenseForm form) {
  if (form == DenseForm::DenseF32)
    return storageName(Storage::F32);
  return holdsMatrices(ours.storage) ? storageName(ours.storage) : "";
}

/// "gdn of 4 heads (2 of keys), 16 x 32".
std::string shapeOf(const LayerManifest &layer) {
  return layer.type + " of " + std::to_string(layer.heads) + " heads (" +
         std::to_string(layer.keyHeads) + " of keys), " +
         std::to_string(layer.dv) + " x " + std::to_string(layer.dk);
}

bool sameShape(const LayerManifest &one, const LayerManifest &other) {
  return one.type == other.type && one.heads == other.heads &&
         one.keyHeads == other.keyHeads && one.dv == other.dv &&
         one.dk == other.dk;
}

} // namespace

const char *ss_bench::optionOf(DenseForm form) {
  const char *options[] = {"--dense-package", "--deferred-package",
                           "--dense-f32-package"};
  return options[size_t(form)];
}

Status ss_bench::checkDense(const Manifest &ours, const Manifest &dense,
                            DenseForm form, const std::string &folder) {
  const std::string place = std::string(optionOf(form)) + " " + folder + ": ";
  const std::string model = ": take one that is compiled of the same model";
  if (ours.layers.size() != dense.layers.size())
    return Error{place + "found " + std::to_string(dense.layers.size()) +
                 " layers, expected the " + std::to_string(ours.layers.size()) +
                 " of --package" + model};
  for (size_t l = 0; l < ours.layers.size(); ++l) {
    const LayerManifest &mine = ours.layers[l], &found = dense.layers[l];
    const std::string layer = place + "layer '" + found.name + "': found ";
    if (!sameShape(mine, found))
      return Error{layer + shapeOf(found) + ", expected " + shapeOf(mine) +
                   " as in --package" + model};
    const std::string storage = wantedStorage(mine, form);
    const std::string has = storageName(found.storage);
    if (formOf(found) == std::string(wantedForm(form)) &&
        (storage.empty() || storage == has))
      continue;
    const std::string in = storage.empty() ? "" : " --storage " + storage;
    return Error{layer + "form " + formOf(found) + " in " + has +
                 ", expected form " + wantedForm(form) +
                 (storage.empty() ? "" : " in " + storage) +
                 ": compile what ss-import --form " + wantedForm(form) + in +
                 " makes of the model"};
  }
  return std::nullopt;
}
