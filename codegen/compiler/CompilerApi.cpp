//===- CompilerApi.cpp - the C API of the compiler library ----------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "sinkstate/compiler.h"

#include "codegen/compiler/CompiledModel.h"
#include "codegen/package/PackageWriter.h"
#include "passes/pipelines/Register.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

struct ss_compiled_model {
  std::unique_ptr<sinkstate::CompiledModel> model;
};

namespace {

thread_local std::string lastError;

/// A parsed graph with the diagnostics of everything done to it.
class GraphText {
public:
  GraphText(const char *text, size_t size, const char *name)
      : context(makeRegistry(), MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            note(diagnostic);
          return success();
        }) {
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(StringRef(text, size), name), {});
    module = parseSourceFile<ModuleOp>(sources, &context);
  }

  ModuleOp get() { return *module; }

  /// The diagnostics, or what `otherwise` says where there were none.
  ss_result fail(const Twine &otherwise, ss_result result) {
    lastError = diagnostics.empty() ? otherwise.str() : diagnostics;
    return result;
  }

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    sinkstate::registerDialects(registry);
    return registry;
  }
  void note(Diagnostic &diagnostic) {
    llvm::raw_string_ostream stream(diagnostics);
    if (!diagnostics.empty())
      stream << "; ";
    stream << diagnostic.getLocation() << ": " << diagnostic.str();
  }

  std::string diagnostics;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
  OwningOpRef<ModuleOp> module;
};

ss_result checkText(const char *text, const char *name, const void *out) {
  lastError.clear();
  if (text && name && out)
    return SS_OK;
  lastError = "a graph's text, its name or the result's address is null, "
              "expected all three";
  return SS_INVALID_ARGUMENT;
}

} // namespace

extern "C" {

const char *ss_compiler_last_error(void) { return lastError.c_str(); }

ss_result ss_compile_graph(const char *text, size_t size, const char *name,
                           ss_compiled_model **out) {
  if (ss_result result = checkText(text, name, out))
    return result;
  GraphText graph(text, size, name);
  if (!graph.get())
    return graph.fail("the graph could not be parsed", SS_INVALID_ARGUMENT);
  auto model = sinkstate::CompiledModel::compile(graph.get());
  if (!model)
    return graph.fail(llvm::toString(model.takeError()), SS_INVALID_ARGUMENT);
  *out = new ss_compiled_model{std::move(*model)};
  return SS_OK;
}

ss_result ss_compiled_package(ss_compiled_model *compiled, ss_package **out) {
  if (ss_result result = checkText("", "", out))
    return result;
  if (!compiled) {
    lastError = "the compiled model is null, expected one of ss_compile_graph";
    return SS_INVALID_ARGUMENT;
  }
  const std::string &manifest = compiled->model->getManifest();
  ss_result result = ss_package_from_memory(
      manifest.data(), manifest.size(), sinkstate::CompiledModel::lookupKernel,
      compiled->model.get(), out);
  if (result)
    lastError = ss_last_error();
  return result;
}

void ss_compiled_model_destroy(ss_compiled_model *model) { delete model; }

ss_result ss_write_package(const char *text, size_t size, const char *name,
                           const char *folder) {
  if (ss_result result = checkText(text, name, folder))
    return result;
  GraphText graph(text, size, name);
  if (!graph.get())
    return graph.fail("the graph could not be parsed", SS_INVALID_ARGUMENT);
  if (llvm::Error error = sinkstate::writePackage(graph.get(), {}, folder))
    return graph.fail(llvm::toString(std::move(error)), SS_INVALID_ARGUMENT);
  return SS_OK;
}

} // extern "C"
