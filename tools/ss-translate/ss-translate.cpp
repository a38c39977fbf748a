//===- ss-translate.cpp - Turn SinkState kernels into source text ---------===//
//
// Reads MLIR with ssk kernels and prints CUDA C++:
//   ss-translate --ssk-to-cuda kernels.mlir -o kernels.cu
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CompileCheck.h"
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

static llvm::cl::opt<std::string> nvrtcCheck(
    "nvrtc-check",
    llvm::cl::desc("compile every printed kernel with NVRTC and print to stderr what it takes: "
                   "registers, spills, stack, shared memory"),
    llvm::cl::value_desc("sm_90a,..."));

/// Compiles one kernel's source for each architecture asked for.
static mlir::LogicalResult checkKernel(ssk::KernelOp kernel, llvm::StringRef source) {
  llvm::SmallVector<llvm::StringRef> architectures;
  llvm::StringRef(nvrtcCheck).split(architectures, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef architecture : architectures) {
    auto found = cuda::compileForCheck(kernel.getName().str() + ".cu", source.str(),
                                       architecture.str());
    if (!found)
      return kernel.emitError(found.error());
    for (const cuda::KernelResources &use : *found)
      llvm::errs() << use.kernel << " " << architecture << ": " << use.registers
                   << " registers, " << use.spillBytes << " bytes spilled, " << use.stackBytes
                   << " bytes stack, " << use.sharedBytes << " bytes shared\n";
  }
  return mlir::success();
}

static mlir::LogicalResult checkKernels(mlir::ModuleOp module) {
  for (ssk::KernelOp kernel : module.getOps<ssk::KernelOp>()) {
    if (!onlyKernel.empty() && kernel.getName() != onlyKernel)
      continue;
    mlir::FailureOr<std::string> text = cuda::printCudaKernel(kernel);
    if (mlir::failed(text) || mlir::failed(checkKernel(kernel, *text)))
      return mlir::failure();
  }
  return mlir::success();
}

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
        if (mlir::failed(text) || mlir::failed(checkKernels(module)))
          return mlir::failure();
        out << *text;
        return mlir::success();
      },
      [](mlir::DialectRegistry &registry) { registerDialects(registry); });
}

int main(int argc, char **argv) {
  registerSSKToCuda();
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "SinkState translations"));
}
