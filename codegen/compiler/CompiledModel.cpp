//===- CompiledModel.cpp - a package in memory ----------------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "codegen/compiler/CompiledModel.h"

#include "codegen/package/KernelModules.h"
#include "codegen/package/Manifest.h"

using namespace mlir;

namespace sinkstate {

llvm::Expected<std::unique_ptr<CompiledModel>>
CompiledModel::compile(ModuleOp graph, bool init) {
  llvm::Expected<OwningOpRef<ModuleOp>> kernels =
      buildKernels(graph, KernelTarget::cpu, {.init = init});
  if (!kernels)
    return kernels.takeError();
  FailureOr<llvm::json::Object> manifest =
      describeModule(**kernels, fingerprintGraph(graph));
  if (failed(manifest))
    return llvm::createStringError(
        "the graph cannot be described; see the diagnostics above");
  auto jit = cpu::CpuJit::compile(**kernels);
  if (!jit)
    return jit.takeError();
  return std::unique_ptr<CompiledModel>(new CompiledModel(
      printManifest(std::move(*manifest)), std::move(*jit)));
}

ss_cpu_kernel CompiledModel::lookup(llvm::StringRef kernel) const {
  return jit->lookup(kernel);
}

ss_cpu_kernel CompiledModel::lookupKernel(void *context, const char *name) {
  return static_cast<CompiledModel *>(context)->lookup(name);
}

} // namespace sinkstate
