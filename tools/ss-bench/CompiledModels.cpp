//===- CompiledModels.cpp - Packages compiled in this process -------------===//

#include "Measured.h"
#include "ModelCompiler.h"

#include "codegen/cpu/CpuCodegen.h"
#include "codegen/package/PackageWriter.h"
#include "dialect/ss/SS.h"
#include "passes/pipelines/Register.h"
#include "tools/ss-import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;
using sinkstate::Status;
namespace ss = sinkstate::ss;

namespace {

using Graph = mlir::OwningOpRef<mlir::ModuleOp>;

/// The first error that the context is told, as one line. Remarks are printed.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark)
            llvm::errs() << "ss-bench: " << diagnostic << "\n";
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
    if (!file)
      return "";
    std::string place = file.getFilename().str();
    if (file.getLine() > 0)
      place += llvm::formatv(":{0}:{1}", file.getLine(), file.getColumn());
    return place + ": ";
  }

  std::string message;
  mlir::ScopedDiagnosticHandler handler;
};

Result<sinkstate::ImportOptions> importOptions(const BenchOptions &options) {
  sinkstate::ImportOptions result;
  if (!options.policy.empty())
    if (llvm::Error error = sinkstate::setPolicy(result, options.policy))
      return Error{llvm::toString(std::move(error))};
  if (options.active > 0)
    result.active = options.active;
  if (options.buffer > 0)
    result.buffer = options.buffer;
  if (!options.core.empty()) {
    auto core = ss::symbolizeCoreKind(options.core);
    if (!core)
      return Error{"found '--core " + options.core + "'; expected " +
                   ss::listKeywords<ss::CoreKind>()};
    result.core = *core;
  }
  return result;
}

Result<Graph> readGraph(const BenchOptions &options,
                        mlir::MLIRContext &context, const FirstError &errors) {
  if (!options.graph.empty()) {
    Graph graph =
        mlir::parseSourceFile<mlir::ModuleOp>(options.graph, &context);
    if (!graph)
      return errors.take(options.graph + ": cannot be parsed, expected a graph "
                                         "as ss-import writes it");
    return graph;
  }
  Result<sinkstate::ImportOptions> import = importOptions(options);
  if (!import)
    return import.takeError();
  auto graph =
      options.preset.empty()
          ? sinkstate::importConfig(options.model, *import, &context)
          : sinkstate::importPreset(options.preset, *import, &context);
  if (mlir::failed(graph))
    return errors.take(options.preset + options.model + ": cannot be imported");
  return std::move(*graph);
}

/// A copy whose states have a dense form; its schedule is made anew.
Graph withForm(mlir::ModuleOp graph, DenseForm form) {
  Graph copy(llvm::cast<mlir::ModuleOp>(graph->clone()));
  copy->walk([](ss::ScheduleOp schedule) { schedule.erase(); });
  copy->walk([&](ss::LayerOp layer) {
    layer.setForm(form == DenseForm::Deferred ? ss::Form::deferred
                                              : ss::Form::dense);
    if (form == DenseForm::DenseF32)
      layer.setStorage(ss::Storage::f32);
    if (form != DenseForm::Dense)
      layer.removeRoundingAttr(); // they round to nearest, or not at all
  });
  return copy;
}

/// Those that say something beside the graph's storage.
std::vector<DenseForm> formsBeside(mlir::ModuleOp graph) {
  bool narrow = false, bytes = false;
  graph->walk([&](ss::LayerOp layer) {
    narrow |= layer.getStorage() != ss::Storage::f32;
    bytes |= layer.getStorage() == ss::Storage::fp8;
  });
  if (bytes)
    return {DenseForm::DenseF32};
  if (narrow)
    return {std::begin(kDenseForms), std::end(kDenseForms)};
  return {DenseForm::Dense, DenseForm::Deferred};
}

/// The highest level of instructions that this processor runs.
std::string bestLevel() {
  std::string best;
  for (llvm::StringRef level : sinkstate::cpu::getIsaLevels())
    if (sinkstate::cpu::canRun(level))
      best = level.str();
  return best;
}

sinkstate::PackageOptions packageOptions(const BenchOptions &options) {
  sinkstate::PackageOptions package;
  package.cpuLevels.clear();
  if (options.device == DeviceKind::Cpu)
    package.cpuLevels.push_back(bestLevel());
  package.cuda = options.device == DeviceKind::Cuda;
  package.explain = options.explain;
  return package;
}

/// As the options ask for it.
Status setStorage(mlir::ModuleOp graph, const BenchOptions &options) {
  if (options.storage.empty())
    return std::nullopt;
  llvm::Expected<sinkstate::Storages> storage =
      sinkstate::parseStorages(options.storage);
  if (!storage)
    return Error{"--storage: " + llvm::toString(storage.takeError())};
  graph->walk(
      [&](ss::LayerOp layer) { layer.setStorage(storage->of(layer.getType())); });
  return std::nullopt;
}

} // namespace

Result<double> ss_bench::compileModels(const BenchOptions &options,
                                       const std::string &folder) {
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  FirstError errors(context);
  Result<Graph> graph = readGraph(options, context, errors);
  if (!graph)
    return graph.takeError();
  if (Status wrong = setStorage(**graph, options))
    return *wrong;
  auto compile = [&](mlir::ModuleOp module, const char *name) -> Status {
    if (llvm::Error error = sinkstate::writePackage(
            module, packageOptions(options), folder + "/" + name))
      return errors.take(llvm::toString(std::move(error)));
    return std::nullopt;
  };
  const auto begin = std::chrono::steady_clock::now();
  if (Status wrong = compile(**graph, "ours"))
    return *wrong;
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  if (!options.dense)
    return passed.count();
  for (DenseForm form : formsBeside(**graph))
    if (Status wrong = compile(*withForm(**graph, form), keyOf(form)))
      return *wrong;
  return passed.count();
}
