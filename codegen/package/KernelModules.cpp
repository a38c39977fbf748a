//===- KernelModules.cpp - a graph's kernels for a target -----------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/package/KernelModules.h"

#include "passes/pipelines/Pipelines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace sinkstate {

llvm::Expected<OwningOpRef<ModuleOp>> buildKernels(ModuleOp graph,
                                                   KernelTarget target,
                                                   const KernelOptions &given) {
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(graph->clone()));
  PassManager passes(graph.getContext());
  PipelineOptions options;
  // Sources are printed before the GPU is known, and the table has one: others
  // get its choices, which are right there too, and perhaps not the fastest.
  options.device = target == KernelTarget::cpu ? "cpu" : "sm_90";
  options.init = given.init;
  options.initWhereDense = given.initWhereDense;
  if (target == KernelTarget::cuda)
    options.initWarps = given.initWarps;
  options.compactBefore = given.compactBefore;
  options.report = given.explain;
  buildKernelPipeline(passes, options);
  if (failed(passes.run(*module)))
    return llvm::createStringError(
        "the graph could not be lowered to kernels; see the diagnostics above");
  if (given.explain && target == KernelTarget::cuda)
    mlir::emitRemark(graph.getLoc())
        << "the choices for GPUs were measured on " << options.device.getValue()
        << "; kernels compiled for another architecture have the same";
  return module;
}

} // namespace sinkstate
