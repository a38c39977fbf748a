//===- BenchModels.cpp - The packages of a run ----------------------------===//

#include "BenchModels.h"

#include "ModelCompiler.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdlib.h>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
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

BenchModels::Kernels openIfNamed(const std::string &folder) {
  return folder.empty() ? nullptr : Package::open(folder);
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
    models->dense[DenseForm::Dense] = openIfNamed(options.densePackage);
    models->dense[DenseForm::Deferred] = openIfNamed(options.deferredPackage);
    models->dense[DenseForm::DenseF32] = openIfNamed(options.denseF32Package);
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
