//===- ss-opt.cpp - Run passes over SinkState IR --------------------------===//
//
// Reads MLIR, runs the passes named on the command line, prints MLIR:
//   ss-opt model.mlir --ss-expand-layers --ss-fuse-decode
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  sinkstate::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "SinkState pass driver\n", registry));
}
