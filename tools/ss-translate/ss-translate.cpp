//===- ss-translate.cpp - Turn SinkState kernels into source text ---------===//
//
// Reads MLIR with ssk kernels and prints CUDA C++:
//   ss-translate --ssk-to-cuda kernels.mlir -o kernels.cu
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaPrinter.h"
#include "passes/pipelines/Register.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"

using namespace sinkstate;

static llvm::cl::opt<bool>
    lineDirectives("cuda-line-directives",
                   llvm::cl::desc("print #line before statements, so that a profiler or a compiler "
                                  "message points at the place the kernel was lowered from"),
                   llvm::cl::init(false));

static llvm::cl::opt<std::string>
    onlyKernel("cuda-kernel", llvm::cl::desc("print the kernel of this name only"),
               llvm::cl::value_desc("name"));

/// The text of the chosen kernel, or of all.
static mlir::FailureOr<std::string> printChosen(mlir::ModuleOp module) {
  cuda::CudaPrintOptions options;
  options.lineDirectives = lineDirectives;
  if (onlyKernel.empty())
    return cuda::printCudaModule(module, options);
  if (auto kernel = module.lookupSymbol<ssk::KernelOp>(onlyKernel))
    return cuda::printCudaKernel(kernel, options);
  return module.emitError("has no kernel '") << onlyKernel << "', named by --cuda-kernel";
}

static void registerSSKToCuda() {
  static mlir::TranslateFromMLIRRegistration registration(
      "ssk-to-cuda", "print ssk kernels, prepared by ssk-prepare, as CUDA C++",
      [](mlir::ModuleOp module, llvm::raw_ostream &out) -> mlir::LogicalResult {
        module.getContext()->printOpOnDiagnostic(false); // a kernel is hundreds of lines
        mlir::FailureOr<std::string> text = printChosen(module);
        if (mlir::succeeded(text))
          out << *text;
        return text;
      },
      [](mlir::DialectRegistry &registry) { registerDialects(registry); });
}

int main(int argc, char **argv) {
  registerSSKToCuda();
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "SinkState translations"));
}
