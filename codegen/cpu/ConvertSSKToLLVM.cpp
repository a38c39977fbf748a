//===- ConvertSSKToLLVM.cpp - the pass and the pipeline around it ---------===//
#include "codegen/cpu/KernelLowering.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace sinkstate::cpu {
#define GEN_PASS_DEF_CONVERTSSKTOLLVM
#include "codegen/cpu/Passes.h.inc"
} // namespace sinkstate::cpu

using namespace mlir;
using namespace sinkstate;
using namespace sinkstate::cpu;

namespace {

struct ConvertSSKToLLVMPass
    : cpu::impl::ConvertSSKToLLVMBase<ConvertSSKToLLVMPass> {
  using ConvertSSKToLLVMBase::ConvertSSKToLLVMBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t width = vectorWidth;
    if (width != 4 && width != 8 && width != 16) {
      module.emitError("vector-width is ") << width << ", expected 4, 8 or 16";
      return signalPassFailure();
    }
    SmallVector<ssk::KernelOp> kernels(module.getOps<ssk::KernelOp>());
    KernelLowering lowering(module, width);
    for (ssk::KernelOp kernel : kernels) {
      if (failed(lowering.lower(kernel)))
        return signalPassFailure();
      // The entry function takes the kernel's name.
      kernel.erase();
    }
    lowering.finish();
  }
};

struct SSKToLLVMPipelineOptions
    : PassPipelineOptions<SSKToLLVMPipelineOptions> {
  Option<int64_t> vectorWidth{
      *this, "vector-width",
      llvm::cl::desc("f32 elements of a SIMD register: 4, 8 or 16"),
      llvm::cl::init(8)};
};

} // namespace

void sinkstate::cpu::buildSSKToLLVMPipeline(OpPassManager &manager,
                                            int64_t vectorWidth) {
  ConvertSSKToLLVMOptions options;
  options.vectorWidth = vectorWidth;
  manager.addPass(createConvertSSKToLLVM(options));
  manager.addPass(createCSEPass()); // fewer operations for all that follows
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void sinkstate::cpu::registerSSKToLLVMPipeline() {
  PassPipelineRegistration<SSKToLLVMPipelineOptions>(
      "ssk-to-llvm", "Kernels to the LLVM dialect",
      [](OpPassManager &manager, const SSKToLLVMPipelineOptions &options) {
        buildSSKToLLVMPipeline(manager, options.vectorWidth);
      });
}
