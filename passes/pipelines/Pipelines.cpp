//===- Pipelines.cpp - The named pipelines --------------------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "passes/pipelines/Pipelines.h"

#include "passes/ss-to-ssk/Passes.h"
#include "passes/ss/Passes.h"
#include "passes/ssk/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace sinkstate {

void buildGraphPipeline(OpPassManager &passes,
                        const PipelineOptions &options) {
  ss::SSExpandLayersOptions expansion;
  expansion.init = options.init;
  expansion.initWhereDense = options.initWhereDense;
  expansion.report = options.report;
  passes.addPass(ss::createSSExpandLayers(expansion));
  ss::SSScheduleCompactionOptions schedule;
  schedule.compactBefore = options.compactBefore;
  schedule.report = options.report;
  passes.addNestedPass<ss::ModelOp>(ss::createSSScheduleCompaction(schedule));
  // Fusion reports every function of every layer: too much to be read.
  passes.addNestedPass<func::FuncOp>(ss::createSSFuseDecode());
  passes.addNestedPass<func::FuncOp>(ss::createSSFuseCompaction());
  ss::SSSpecializeOptions sharing;
  sharing.report = options.report;
  passes.addPass(ss::createSSSpecialize(sharing));
}

void buildKernelPipeline(OpPassManager &passes,
                         const PipelineOptions &options) {
  buildGraphPipeline(passes, options);
  ConvertSSToSSKPassOptions conversion;
  conversion.device = options.device;
  conversion.report = options.report;
  conversion.rowsInFlight = options.rowsInFlight;
  conversion.programsPerBlock = options.programsPerBlock;
  conversion.initWarps = options.initWarps;
  conversion.spareScratch = options.spareScratch;
  passes.addPass(createConvertSSToSSKPass(conversion));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addNestedPass<ssk::KernelOp>(ssk::createSSKPreparePass());
}

void registerPipelines() {
  PassPipelineRegistration<>(
      "ss-graph-pipeline",
      "from a model's graph to fused functions, equal layers sharing theirs",
      [](OpPassManager &passes) { buildGraphPipeline(passes, PipelineOptions()); });
  PassPipelineRegistration<PipelineOptions>(
      "ss-pipeline",
      "from a model's graph to kernels that both back ends take",
      buildKernelPipeline);
}

} // namespace sinkstate
