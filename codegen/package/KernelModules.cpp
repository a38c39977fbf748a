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
                                                   const KernelOptions &given) {
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(graph->clone()));
  PassManager passes(graph.getContext());
  PipelineOptions options;
  // Sources are printed before the GPU is known; this one is in the table.
  options.device = target == KernelTarget::cpu ? "cpu" : "sm_90";
  options.init = given.init;
  if (target == KernelTarget::cuda)
    options.initWarps = given.initWarps;
  options.compactBefore = given.compactBefore;
  options.report = given.explain;
  buildKernelPipeline(passes, options);
  if (failed(passes.run(*module)))
    return llvm::createStringError(
        "the graph could not be lowered to kernels; see the diagnostics above");
  return module;
}

} // namespace sinkstate
