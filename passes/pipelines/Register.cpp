//===- Register.cpp - Dialects and passes of the tools --------------------===//

#include "passes/pipelines/Register.h"

#include "codegen/cpu/Passes.h"
#include "dialect/ss/SS.h"
#include "dialect/ssk/SSKDialect.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/ss-to-ssk/Passes.h"
#include "passes/ss/Passes.h"
#include "passes/ssk/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

void sinkstate::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<ss::SSDialect, ssk::SSKDialect>();
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                  mlir::vector::VectorDialect>();
  // Inserts the LLVM dialect without its large header.
  mlir::registerLLVMDialectTranslation(registry);
}

void sinkstate::registerPasses() {
  mlir::registerTransformsPasses(); // canonicalize, cse, symbol-dce, ...
  registerSinkStateSSToSSKPasses();
  ss::registerSSPasses();
  ssk::registerSSKPasses();
  registerPipelines();
  cpu::registerSSKCpuPasses();
  cpu::registerSSKToLLVMPipeline();
}
