//===- CompiledBackEnd.cpp - Kernels compiled in this process -------------===//

#include "CompiledBackEnd.h"

#include "codegen/compiler/CompiledModel.h"
#include "passes/pipelines/Register.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <stdexcept>

namespace sinkstate::conformance {
namespace {

std::unique_ptr<CompiledModel> compileGraph(const Graph &graph) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    errors += "\n  " + d.str();
    return mlir::success();
  });
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(graphText(graph), &context);
  if (!module)
    throw std::runtime_error("graph '" + graph.name + "' does not parse:" +
                             errors);
  llvm::Expected<std::unique_ptr<CompiledModel>> model =
      CompiledModel::compile(
          *module, std::any_of(graph.layers.begin(), graph.layers.end(),
                               [](const reference::LayerSpec &layer) {
                                 return layer.initKernel;
                               }));
  if (!model)
    throw std::runtime_error("graph '" + graph.name + "': " +
                             llvm::toString(model.takeError()) + errors);
  return std::move(*model);
}

class InProcessModel : public Model {
public:
  explicit InProcessModel(const Graph &graph)
      : compiled(compileGraph(graph)),
        handle(Package::fromMemory(compiled->getManifest(),
                                   &CompiledModel::lookupKernel,
                                   compiled.get())) {}
  const Package &package() const override { return handle; }
  const std::string &manifest() const override {
    return compiled->getManifest();
  }

protected:
  ss_cpu_kernel kernel(const std::string &name) const override {
    return compiled->lookup(name);
  }

private:
  std::unique_ptr<CompiledModel> compiled;
  Package handle;
};

class CompiledBackEnd : public BackEnd {
public:
  std::string name() const override { return "compiled"; }

private:
  std::unique_ptr<Model> open(const Graph &graph) override {
    return std::make_unique<InProcessModel>(graph);
  }
};

} // namespace

std::unique_ptr<BackEnd> makeCompiledBackEnd() {
  return std::make_unique<CompiledBackEnd>();
}

} // namespace sinkstate::conformance
