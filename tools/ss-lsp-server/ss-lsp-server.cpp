//===- ss-lsp-server.cpp - SinkState IR in an editor ----------------------===//
//
// A language server for .mlir files with the project's dialects: diagnostics,
// definitions, references and hover. An editor's MLIR plugin takes it in the
// place of mlir-lsp-server.
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/LogicalResult.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  return llvm::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
