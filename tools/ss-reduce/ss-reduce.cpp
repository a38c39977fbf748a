//===- ss-reduce.cpp - The smallest IR that still shows a fault -----------===//
//
// Makes a module smaller as long as a script says that it is of interest:
//   ss-reduce model.mlir --reduction-tree="traversal-mode=0 test=fails.sh"
// The script gets a file and exits with 1 where the fault is still there.
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  sinkstate::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
