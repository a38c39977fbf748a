//===- CompiledModel.h - a package in memory --------------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_COMPILER_COMPILEDMODEL_H
#define SINKSTATE_CODEGEN_COMPILER_COMPILEDMODEL_H

#include "codegen/cpu/CpuCodegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace sinkstate {

/// A model's kernels compiled for this processor, with the manifest that
/// ss_package_from_memory takes. The code lives as long as this object.
class CompiledModel {
public:
  /// Compiles a module with one ss.model, which is left as it is. `init`: with
  /// the kernels of ss_state_init.
  static llvm::Expected<std::unique_ptr<CompiledModel>>
  compile(mlir::ModuleOp graph, bool init = false);

  const std::string &getManifest() const { return manifest; }
  ss_cpu_kernel lookup(llvm::StringRef kernel) const;
  /// `lookup` as an ss_kernel_lookup; the context is the CompiledModel.
  static ss_cpu_kernel lookupKernel(void *context, const char *name);

private:
  CompiledModel(std::string manifest, std::unique_ptr<cpu::CpuJit> jit)
      : manifest(std::move(manifest)), jit(std::move(jit)) {}
  std::string manifest;
  std::unique_ptr<cpu::CpuJit> jit;
};

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_COMPILER_COMPILEDMODEL_H
