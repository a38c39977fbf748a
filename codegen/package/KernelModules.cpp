//===- KernelModules.cpp - a graph's kernels for a target -----------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/package/KernelModules.h"

#include "passes/pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace sinkstate {

llvm::Expected<OwningOpRef<ModuleOp>> buildKernels(ModuleOp graph,
                                                   KernelTarget target,
                                                   bool init) {
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(graph->clone()));
  PassManager passes(graph.getContext());
  PipelineOptions options;
  // One row at a time leaves a CPU's registers to the sums; a GPU needs several
  // loads in flight.
  options.rowsInFlight = target == KernelTarget::cpu ? 1 : 4;
  options.init = init;
  buildKernelPipeline(passes, options);
  if (failed(passes.run(*module)))
    return llvm::createStringError(
        "the graph could not be lowered to kernels; see the diagnostics above");
  return module;
}

} // namespace sinkstate
