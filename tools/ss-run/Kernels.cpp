//===- Kernels.cpp - Where the kernels of a run come from -----------------===//

#include "Kernels.h"

#include "codegen/compiler/CompiledModel.h"
#include "passes/pipelines/Register.h"
#include "tools/ss-import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

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
  make(std::unique_ptr<CompiledModel> model, std::string description) {
    auto kernels = std::make_unique<CompiledKernels>();
    kernels->model = std::move(model);
    kernels->description = std::move(description);
    const std::string &manifest = kernels->model->getManifest();
    if (ss_package_from_memory(manifest.data(), manifest.size(),
                               &CompiledModel::lookupKernel,
                               kernels->model.get(), &kernels->handle) != SS_OK)
      return Error{std::string("compiled kernels: ") + ss_last_error()};
    return std::unique_ptr<Kernels>(std::move(kernels));
  }

private:
  std::unique_ptr<CompiledModel> model;
};

class PackageKernels : public Kernels {
public:
  static Result<std::unique_ptr<Kernels>> open(const std::string &folder) {
    auto kernels = std::make_unique<PackageKernels>();
    if (ss_package_open(folder.c_str(), &kernels->handle) != SS_OK)
      return Error{ss_last_error()};
    kernels->description = describe(folder);
    return std::unique_ptr<Kernels>(std::move(kernels));
  }

private:
  /// What the manifest says about the first factored layer; the runtime has
  /// checked the manifest before.
  static std::string describe(const std::string &folder) {
    std::string text = "package " + folder;
    auto buffer = llvm::MemoryBuffer::getFile(folder + "/manifest.json");
    if (!buffer)
      return text;
    llvm::Expected<llvm::json::Value> manifest =
        llvm::json::parse((*buffer)->getBuffer());
    if (!manifest) {
      llvm::consumeError(manifest.takeError());
      return text;
    }
    const llvm::json::Object *root = manifest->getAsObject();
    const llvm::json::Array *layers = root ? root->getArray("layers") : nullptr;
    if (!layers)
      return text;
    for (const llvm::json::Value &value : *layers) {
      const llvm::json::Object *layer = value.getAsObject();
      const llvm::json::Object *policy =
          layer ? layer->getObject("policy") : nullptr;
      if (!policy)
        continue;
      llvm::raw_string_ostream(text)
          << ": " << policy->getString("kind").value_or("")
          << llvm::format(":%g", policy->getNumber("value").value_or(0));
      text +=
          ", active " + std::to_string(layer->getInteger("active").value_or(0));
      text +=
          ", buffer " + std::to_string(layer->getInteger("buffer").value_or(0));
      break;
    }
    return text;
  }
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
  }
  result.policyValue = options.policy.value;
  result.active = options.active;
  result.buffer = options.buffer;
  result.form = form == StateForm::Dense ? sinkstate::ss::Form::dense
                                         : sinkstate::ss::Form::factored;
  return result;
}

} // namespace

Kernels::~Kernels() { close(); }

void Kernels::close() {
  if (handle)
    ss_package_close(std::exchange(handle, nullptr));
}

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
  llvm::Expected<std::unique_ptr<CompiledModel>> model =
      CompiledModel::compile(**graph);
  if (!model)
    return errors.take(llvm::toString(model.takeError()));
  return CompiledKernels::make(
      std::move(*model), toString(options.policy) + ", active " +
                             std::to_string(options.active) + ", buffer " +
                             std::to_string(options.buffer));
}

Result<std::unique_ptr<Kernels>>
ss_run::openKernels(const std::string &folder) {
  return PackageKernels::open(folder);
}
