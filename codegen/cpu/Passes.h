//===- Passes.h - lowering of kernels to the CPU ------------------*- C++
//-*-===//
#ifndef SINKSTATE_CODEGEN_CPU_PASSES_H
#define SINKSTATE_CODEGEN_CPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace sinkstate::cpu {

#define GEN_PASS_DECL
#include "codegen/cpu/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "codegen/cpu/Passes.h.inc"

/// Adds the passes from ssk kernels to the LLVM dialect.
void buildSSKToLLVMPipeline(mlir::OpPassManager &manager, int64_t vectorWidth);

/// Registers the pipeline `ssk-to-llvm` (option `vector-width`).
void registerSSKToLLVMPipeline();

} // namespace sinkstate::cpu

#endif // SINKSTATE_CODEGEN_CPU_PASSES_H
