//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_PIPELINES_PIPELINES_H
#define SINKSTATE_PASSES_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace sinkstate {

/// What a target asks of the kernels made for it. The mathematics and the
/// number of kernels are the same for all.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> device{
      *this, "device",
      llvm::cl::desc("whose measured choices are taken, which KernelTuning.cpp "
                     "has: cpu or a GPU's architecture"),
      llvm::cl::init("sm_90")};
  Option<int64_t> rowsInFlight{
      *this, "rows-in-flight",
      llvm::cl::desc("rows of a state that a kernel loads together: 4 hide the "
                     "latency of a GPU's memory, 1 or 2 fit the registers of a "
                     "CPU (0: by device)"),
      llvm::cl::init(0)};
  Option<int64_t> programsPerBlock{
      *this, "programs-per-block",
      llvm::cl::desc("programs (warps) of a block on a GPU; with one, a block "
                     "does not wait for the state of the highest rank (0: by "
                     "device)"),
      llvm::cl::init(0)};
  Option<bool> report{
      *this, "report",
      llvm::cl::desc("tell what every pass did and chose, and why, as remarks"),
      llvm::cl::init(false)};
  Option<bool> init{
      *this, "init",
      llvm::cl::desc("also make the kernels that start states from dense "
                     "matrices after a prefill"),
      llvm::cl::init(false)};
  Option<bool> initWhereDense{
      *this, "init-where-dense",
      llvm::cl::desc("make these kernels for layers whose dense states come back "
                     "to factors by them on a GPU"),
      llvm::cl::init(false)};
  Option<int64_t> initWarps{
      *this, "init-warps",
      llvm::cl::desc("warps that initialise one state together on a GPU (0: by "
                     "device)"),
      llvm::cl::init(0)};
  Option<bool> spareScratch{
      *this, "spare-scratch",
      llvm::cl::desc("let compactions form orthonormal rows at once, as they do "
                     "where a GPU's block has no room for the matrices that save "
                     "it"),
      llvm::cl::init(false)};
  Option<bool> compactBefore{
      *this, "compact-before",
      llvm::cl::desc("let the last quarter of the layers compact before "
                     "its tokens (see ss-schedule-compaction)"),
      llvm::cl::init(false)};
};

/// `ss-graph-pipeline`: from a model's graph to fused functions, equal layers
/// sharing theirs. ss-expand-layers, ss-schedule-compaction, ss-fuse-decode,
/// ss-fuse-compaction, ss-specialize.
void buildGraphPipeline(mlir::OpPassManager &passes,
                        const PipelineOptions &options);

/// `ss-pipeline`: from a model's graph to kernels that both back ends take. The
/// graph pipeline, convert-ss-to-ssk, canonicalize, cse, ssk-prepare.
void buildKernelPipeline(mlir::OpPassManager &passes,
                         const PipelineOptions &options);

void registerPipelines();

} // namespace sinkstate

#endif // SINKSTATE_PASSES_PIPELINES_PIPELINES_H
