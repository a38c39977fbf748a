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
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace sinkstate;

static llvm::cl::OptionCategory category("CUDA options");

static llvm::cl::opt<bool>
    lineDirectives("cuda-line-directives", llvm::cl::cat(category),
                   llvm::cl::desc("print #line before statements, so that a profiler or a compiler "
                                  "message points at the place the kernel was lowered from"),
                   llvm::cl::init(false));

static llvm::cl::opt<std::string>
    onlyKernel("cuda-kernel", llvm::cl::cat(category),
               llvm::cl::desc("print the kernel of this name only"),
               llvm::cl::value_desc("name"));

static llvm::cl::opt<std::string> nvrtcCheck(
    "nvrtc-check", llvm::cl::cat(category),
    llvm::cl::desc("compile every printed kernel with NVRTC and print to stderr what it takes: "
                   "registers, spills, stack, shared memory"),
    llvm::cl::value_desc("sm_90a,..."));

static llvm::cl::opt<std::string>
    folder("cuda-folder", llvm::cl::cat(category),
           llvm::cl::desc("where --ssk-to-cuda-files writes its files"),
           llvm::cl::value_desc("folder"));

static llvm::cl::extrahelp examples(R"(
EXAMPLES:

  The way from a model to CUDA C++ (see docs/interfaces.md for each stage):
    ss-import --preset=Qwen3.5-9B -o model.mlir
    ss-opt model.mlir --ss-pipeline --mlir-print-debuginfo -o kernels.mlir
    ss-translate --ssk-to-cuda kernels.mlir -o kernels.cu

  --mlir-print-debuginfo keeps the names of values and the notes on what groups of
  operations do; without it the same kernels are printed with made-up names.

  One kernel, and what it takes on two architectures (needs NVRTC, no GPU):
    ss-translate --ssk-to-cuda --cuda-kernel=NAME --nvrtc-check=sm_90a,sm_120 kernels.mlir

  One file a kernel, and a line of JSON about each on the standard output:
    ss-translate --ssk-to-cuda-files --cuda-folder=kernels kernels.mlir

READING A PRINTED KERNEL:

  One program is one warp; `program` is its number. float k[4] is a tile of 128 floats:
  each of 32 lanes holds four in a row (codegen/cuda/device/tile.cuh, `Lanes`). Functions
  in namespace ss are the device library in codegen/cuda/device.
)");

/// Compiles one kernel's source for each architecture asked for.
static mlir::LogicalResult checkKernel(ssk::KernelOp kernel, llvm::StringRef source) {
  if (nvrtcCheck.getNumOccurrences() == 0)
    return mlir::success();
  llvm::SmallVector<llvm::StringRef> architectures;
  llvm::StringRef(nvrtcCheck).split(architectures, ',');
  for (llvm::StringRef architecture : architectures) {
    if (architecture.empty())
      return kernel.emitError("--nvrtc-check is '")
             << nvrtcCheck << "', expected architectures such as sm_90a,sm_120";
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

/// What a launch has to know of a kernel, as one line.
static llvm::json::Object describe(ssk::KernelOp kernel, llvm::StringRef file) {
  cuda::CudaKernelInfo info = cuda::getCudaKernelInfo(kernel);
  llvm::json::Array arguments;
  for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i)
    arguments.push_back(kernel.getArgumentName(i));
  return llvm::json::Object{{"name", kernel.getName()},
                            {"role", kernel.getRole().value_or("")},
                            {"file", file},
                            {"programs_per_block", info.programsPerBlock},
                            {"parts", info.parts},
                            {"warps", info.warps},
                            {"loops", info.loops},
                            {"shared_bytes", info.sharedBytes},
                            {"dynamic_shared", info.isSharedDynamic ? info.sharedBytes : 0},
                            {"args", std::move(arguments)}};
}

/// One kernel's file in the folder.
static mlir::LogicalResult writeFile(ssk::KernelOp kernel, llvm::StringRef name,
                                     llvm::StringRef text) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (!code) {
    file << text;
    file.close();
    code = file.error();
    file.clear_error();
  }
  if (!code)
    return mlir::success();
  return kernel.emitError("cannot be written to '")
         << path << "' (" << code.message()
         << "), expected --cuda-folder to name a folder that exists and has room";
}

static mlir::LogicalResult writeFiles(mlir::ModuleOp module, llvm::raw_ostream &out) {
  if (folder.empty())
    return module.emitError(folder.getNumOccurrences() == 0
                                ? "found no --cuda-folder"
                                : "--cuda-folder is ''")
           << ", expected the folder that --ssk-to-cuda-files writes to";
  if (module.getOps<ssk::KernelOp>().empty())
    return module.emitError("holds no ssk.kernel, expected at least one: run convert-ss-to-ssk "
                            "and ssk-prepare first");
  for (ssk::KernelOp kernel : module.getOps<ssk::KernelOp>()) {
    mlir::FailureOr<std::string> text = cuda::printCudaKernel(kernel);
    if (mlir::failed(text))
      return mlir::failure();
    std::string name = kernel.getName().str() + ".cu";
    if (mlir::failed(writeFile(kernel, name, *text)))
      return mlir::failure();
    out << llvm::json::Value(describe(kernel, name)) << "\n";
  }
  return mlir::success();
}

static void registerSSKToCudaFiles() {
  static mlir::TranslateFromMLIRRegistration registration(
      "ssk-to-cuda-files",
      "print each kernel into a file of --cuda-folder and a line of JSON about it",
      [](mlir::ModuleOp module, llvm::raw_ostream &out) -> mlir::LogicalResult {
        module.getContext()->printOpOnDiagnostic(false);
        return writeFiles(module, out);
      },
      [](mlir::DialectRegistry &registry) { registerDialects(registry); });
}

int main(int argc, char **argv) {
  llvm::cl::HideUnrelatedOptions(category); // LLVM's own hundreds
  registerSSKToCuda();
  registerSSKToCudaFiles();
  if (argc == 1) { // upstream says so in no words of ours
    llvm::errs() << "ss-translate: error: found no translation, expected --ssk-to-cuda or "
                    "--ssk-to-cuda-files: see ss-translate --help\n";
    return 1;
  }
  return mlir::failed(mlir::mlirTranslateMain(argc, argv, "SinkState translations"));
}
