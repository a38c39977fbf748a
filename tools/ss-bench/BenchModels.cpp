//===- BenchModels.cpp - The packages of a run ----------------------------===//

#include "BenchModels.h"

#include "DensePackages.h"
#include "ModelCompiler.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdlib.h>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;
using sinkstate::runtime::Package;
namespace fs = std::filesystem;

namespace {

Result<std::string> makeTemporaryFolder() {
  std::error_code error;
  std::string pattern =
      (fs::temp_directory_path(error) / "ss-bench-XXXXXX").string();
  if (error || !::mkdtemp(pattern.data()))
    return Error{"'" + pattern + "' cannot be made: " +
                 (error ? error.message() : std::strerror(errno)) +
                 ", expected a folder for temporary files: set TMPDIR"};
  return pattern;
}

/// The package of a dense form that the options name, or none.
Result<BenchModels::Kernels> openDense(const BenchModels &models,
                                       const BenchOptions &options,
                                       DenseForm form) {
  const std::string *const folders[] = {&options.densePackage,
                                        &options.deferredPackage,
                                        &options.denseF32Package};
  const std::string &folder = *folders[size_t(form)];
  if (folder.empty())
    return BenchModels::Kernels();
  BenchModels::Kernels dense = Package::open(folder);
  if (const Status wrong = checkDense(models.ours->manifest(),
                                      dense->manifest(), form, folder))
    return *wrong;
  return dense;
}

BenchModels::Kernels openIfThere(const std::string &folder) {
  return fs::exists(folder) ? Package::open(folder) : nullptr;
}

} // namespace

BenchModels::~BenchModels() {
  std::error_code ignored;
  if (!temporaryFolder.empty())
    fs::remove_all(temporaryFolder, ignored);
}

Result<std::unique_ptr<BenchModels>>
BenchModels::make(const BenchOptions &options) {
  auto models = std::make_unique<BenchModels>();
  models->name = options.source();
  if (!options.package.empty()) {
    models->folder = options.package;
    models->ours = Package::open(options.package);
    for (DenseForm form : kDenseForms) {
      Result<Kernels> dense = openDense(*models, options, form);
      if (!dense)
        return dense.takeError();
      models->dense[form] = std::move(*dense);
    }
    return models;
  }
  Result<std::string> folder = makeTemporaryFolder();
  if (!folder)
    return folder.takeError();
  models->temporaryFolder = *folder;
  Result<double> seconds = compileModels(options, *folder);
  if (!seconds)
    return seconds.takeError();
  models->compileSeconds = *seconds;
  models->folder = *folder + "/ours";
  models->ours = Package::open(models->folder);
  for (DenseForm form : kDenseForms)
    models->dense[form] = openIfThere(*folder + "/" + keyOf(form));
  return models;
}
