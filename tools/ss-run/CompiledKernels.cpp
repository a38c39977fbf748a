//===- CompiledKernels.cpp - Kernels compiled in this process -------------===//

#include "Kernels.h"

#include "codegen/compiler/CompiledModel.h"
#include "codegen/package/PackageWriter.h"
#include "passes/pipelines/Register.h"
#include "tools/ss-import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdlib.h>
#include <utility>

using namespace ss_run;
using sinkstate::CompiledModel;

namespace {

/// Keeps the first error that the context is told, as one line.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error &&
              message.empty())
            message = placeOf(diagnostic.getLocation()) + diagnostic.str();
          return mlir::success();
        }) {}

  Error take(const std::string &otherwise) const {
    const std::string &text = message.empty() ? otherwise : message;
    return Error{text.substr(0, text.find('\n'))};
  }

private:
  static std::string placeOf(mlir::Location location) {
    auto file = llvm::dyn_cast<mlir::FileLineColLoc>(location);
    return file ? file.getFilename().str() + ": " : "";
  }

  std::string message;
  mlir::ScopedDiagnosticHandler handler;
};

/// A package whose code was made in this process.
class CompiledKernels : public Kernels {
public:
  ~CompiledKernels() override { close(); } // before its code goes
  static Result<std::unique_ptr<Kernels>>
  make(std::unique_ptr<CompiledModel> model) {
    auto kernels = std::make_unique<CompiledKernels>();
    kernels->model = std::move(model);
    const std::string &manifest = kernels->model->getManifest();
    kernels->kept = ss_tools::parsePackageLayers(manifest);
    if (ss_package_from_memory(manifest.data(), manifest.size(),
                               &CompiledModel::lookupKernel,
                               kernels->model.get(), &kernels->handle) != SS_OK)
      return Error{std::string("compiled kernels: ") + ss_last_error()};
    return std::unique_ptr<Kernels>(std::move(kernels));
  }

private:
  std::unique_ptr<CompiledModel> model;
};

/// A package in a folder of its own: its GPU sources are read when an engine is
/// made, and gone with the last of its engines' kernels.
class TemporaryPackage : public Kernels {
public:
  ~TemporaryPackage() override {
    close();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  static Result<std::unique_ptr<Kernels>> write(mlir::ModuleOp graph,
                                                bool withInit,
                                                const FirstError &errors) {
    auto kernels = std::make_unique<TemporaryPackage>();
    std::string pattern =
        (std::filesystem::temp_directory_path() / "ss-run-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      return Error{pattern + ": cannot create: " + std::strerror(errno) +
                   ", expected a folder for temporary files: set TMPDIR"};
    kernels->folder = pattern;
    sinkstate::PackageOptions options;
    options.cpuLevels.clear();
    options.init = withInit;
    const std::string package = pattern + "/package";
    if (llvm::Error error = sinkstate::writePackage(graph, options, package))
      return errors.take(llvm::toString(std::move(error)));
    kernels->kept = ss_tools::readPackageLayers(package);
    if (ss_package_open(package.c_str(), &kernels->handle) != SS_OK)
      return Error{ss_last_error()};
    return std::unique_ptr<Kernels>(std::move(kernels));
  }

private:
  std::string folder;
};

sinkstate::ImportOptions importOptions(const RunOptions &options,
                                       StateForm form) {
  using sinkstate::ss::PolicyKind;
  sinkstate::ImportOptions result;
  switch (options.policy.kind) {
  case ss_run::PolicyKind::Relative:
    result.policyKind = PolicyKind::relative;
    break;
  case ss_run::PolicyKind::Fixed:
    result.policyKind = PolicyKind::fixed;
    break;
  case ss_run::PolicyKind::Energy:
    result.policyKind = PolicyKind::energy;
    break;
  case ss_run::PolicyKind::Budget:
    result.policyKind = PolicyKind::budget;
    break;
  case ss_run::PolicyKind::Sink:
    result.policyKind = PolicyKind::fixed;
    break;
  }
  using sinkstate::ss::CoreKind;
  if (options.core != Core::Default)
    result.core = options.core == Core::Qr ? CoreKind::qr : CoreKind::svd;
  // The dense run is what the compressed one is measured against.
  if (form == StateForm::Factored) // options were checked: they can be parsed
    result.storage =
        llvm::cantFail(sinkstate::parseStorages(toString(options.storage)));
  if (form == StateForm::Factored && options.rounding == Rounding::Stochastic)
    result.rounding = sinkstate::ss::Rounding::stochastic;
  result.policyValue = options.policy.value;
  result.active = options.active;
  result.buffer = options.buffer;
  using sinkstate::ss::Form;
  const bool isSink = options.policy.kind == ss_run::PolicyKind::Sink;
  result.form = form == StateForm::Dense ? Form::dense
                : isSink                 ? Form::sink
                                         : Form::factored;
  return result;
}

} // namespace

CompilerHalf ss_run::compilerHalf() { return CompilerHalf::Present; }

Result<std::unique_ptr<Kernels>>
ss_run::compileKernels(const RunOptions &options, StateForm form) {
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  FirstError errors(context);
  auto graph = sinkstate::importConfig(options.model + "/config.json",
                                       importOptions(options, form), &context);
  if (mlir::failed(graph))
    return errors.take(options.model + "/config.json: cannot be imported");
  const bool withInit = options.prefill > 0 && form == StateForm::Factored;
  if (options.device == Device::Cuda)
    return TemporaryPackage::write(**graph, withInit, errors);
  llvm::Expected<std::unique_ptr<CompiledModel>> model =
      CompiledModel::compile(**graph, withInit);
  if (!model)
    return errors.take(llvm::toString(model.takeError()));
  return CompiledKernels::make(std::move(*model));
}
