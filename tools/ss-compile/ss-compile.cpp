//===- ss-compile.cpp - Make a kernel package -----------------------------===//
//
//   ss-import examples/tiny-hybrid -o tiny.mlir
//   ss-compile tiny.mlir -o tiny.sspkg
//
//===----------------------------------------------------------------------===//

#include "codegen/package/PackageWriter.h"
#include "passes/pipelines/Register.h"
#include "tools/command-line/CommandLine.h"
#include "tools/command-line/InputText.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::OptionCategory category("ss-compile options");

static cl::opt<std::string> input(cl::Positional, cl::desc("<graph.mlir>"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("The package's folder"),
                                   cl::value_desc("folder"), cl::cat(category));
static cl::list<std::string>
    levels("cpu",
           cl::desc("Instruction-set levels to have CPU code for (default: all "
                    "three): x86-64-v2, x86-64-v3, x86-64-v4"),
           cl::value_desc("level"), cl::CommaSeparated, cl::cat(category));
static cl::opt<bool>
    noCpu("no-cpu", cl::desc("Leave the CPU code out"), cl::cat(category));
static cl::opt<bool> noCuda("no-cuda", cl::desc("Leave the CUDA sources out"),
                            cl::cat(category));
static cl::list<std::string> cubins(
    "cubin",
    cl::desc("GPU architectures to have machine code for, such as sm_90a (default: "
             "none): engines on these need not compile the kernels at their first start"),
    cl::value_desc("arch"), cl::CommaSeparated, cl::cat(category));
static cl::opt<bool> init(
    "init",
    cl::desc("Add the kernels that start states from dense matrices after a "
             "prefill, of every layer (where one is missing the runtime decomposes "
             "on the host)"),
    cl::cat(category));
static cl::opt<bool> initWhereDense(
    "init-where-dense",
    cl::desc("Add those of the layers whose dense states come back to factors by "
             "them on a GPU; steps of 128 requests take 2 to 9 % longer with them "
             "on an H200"),
    cl::cat(category));

static cl::opt<int64_t> initWarps(
    "init-warps",
    cl::desc("Warps of a GPU that start one state together, 1 to 8, to measure "
             "with (0: by the GPU's table)"),
    cl::init(0), cl::cat(category));

static cl::opt<bool> compactBefore(
    "compact-before",
    cl::desc("Let the last quarter of the layers compact before its tokens, "
             "beside decodes in front: for GPUs that serve small batches, whose "
             "steps get 2 to 14 % shorter; large ones get 2 to 8 % longer"),
    cl::cat(category));

static cl::opt<bool>
    explain("explain",
            cl::desc("Say on standard error what was chosen for every kernel, "
                     "and why"),
            cl::cat(category));

static int fail(const Twine &message) {
  return sinkstate::tools::fail("ss-compile", message);
}

/// What is to be in the package.
static llvm::Expected<sinkstate::PackageOptions> readOptions() {
  sinkstate::PackageOptions options;
  if (input.empty())
    return llvm::createStringError(
        "found no graph, expected a file such as ss-import makes ('-': "
        "standard input): see ss-compile --help");
  if (output.getNumOccurrences() == 0)
    return llvm::createStringError(
        "found no -o, expected the package's folder: see ss-compile --help");
  if (noCpu && !levels.empty())
    return llvm::createStringError(
        "--no-cpu and --cpu, expected one of them");
  if (noCpu && noCuda)
    return llvm::createStringError(
        "--no-cpu and --no-cuda, expected at most one of them: a package has "
        "code for a processor, a GPU or both");
  if (initWarps.getNumOccurrences() > 0 && !init)
    return llvm::createStringError(
        "--init-warps without --init, expected both or neither");
  if (noCuda && !cubins.empty())
    return llvm::createStringError(
        "--no-cuda and --cubin, expected one of them");
  options.cubins.assign(cubins.begin(), cubins.end());
  if (!levels.empty())
    options.cpuLevels.assign(levels.begin(), levels.end());
  if (noCpu)
    options.cpuLevels.clear();
  options.cuda = !noCuda;
  options.init = init;
  options.initWhereDense = initWhereDense;
  options.initWarps = initWarps;
  options.compactBefore = compactBefore;
  options.explain = explain;
  return options;
}

int main(int argc, char **argv) {
  cl::SetVersionPrinter([](llvm::raw_ostream &stream) {
    stream << "ss-compile " << SS_VERSION << "\n";
  });
  if (!sinkstate::tools::parseCommandLine(
          "ss-compile", argc, argv, category,
          "Compile a model state graph into a kernel package\n\n"
          "  The package is a folder with manifest.json, a shared library per\n"
          "  instruction-set level and the kernels as CUDA C++. An engine opens "
          "it\n"
          "  with ss_package_open() and needs no compiler.\n"))
    return 1;
  llvm::Expected<sinkstate::PackageOptions> options = readOptions();
  if (!options)
    return fail(llvm::toString(options.takeError()));
  if (llvm::Error error = sinkstate::checkPackageFolder(output))
    return fail(llvm::toString(std::move(error)));

  DialectRegistry registry;
  sinkstate::registerDialects(registry);
  MLIRContext context(registry);
  sinkstate::tools::LineDiagnostics diagnostics("ss-compile", &context);
  // A remark is a line of its own, without the operation that it is about.
  ScopedDiagnosticHandler remarks(&context, [](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure();
    llvm::errs() << "ss-compile: remark: " << diagnostic << "\n";
    return success();
  });
  auto file = sinkstate::tools::readText(input);
  if (!file)
    return fail("cannot read '" + input + "': " + file.getError().message() +
                ", expected a graph such as ss-import makes");
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*file), {});
  OwningOpRef<ModuleOp> graph = parseSourceFile<ModuleOp>(sources, &context);
  if (!graph)
    return 1;
  if (llvm::Error error = sinkstate::writePackage(*graph, *options, output))
    return fail(llvm::toString(std::move(error)));
  return 0;
}
