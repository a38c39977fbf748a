//===- Packages.cpp - Write the suite's packages --------------------------===//
//
//   conformance_packages FOLDER [--cpu LEVEL,...] [--no-cuda] [--graph NAME]
//
// Writes FOLDER/<graph> for every graph of the suite, so that
// `conformance_tests --packages FOLDER` can run where there is no compiler.
//
//===----------------------------------------------------------------------===//

#include "Graphs.h"

#include "codegen/package/PackageWriter.h"
#include "passes/pipelines/Register.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace sinkstate;
namespace cl = llvm::cl;

static cl::opt<std::string> folder(cl::Positional, cl::Required,
                                   cl::desc("<folder>"));
static cl::list<std::string>
    levels("cpu", cl::desc("Instruction-set levels (default: all three)"),
           cl::value_desc("level"), cl::CommaSeparated);
static cl::opt<bool> noCuda("no-cuda", cl::desc("Leave the CUDA sources out"));
static cl::list<std::string>
    names("graph", cl::desc("Only these graphs (default: all)"),
          cl::value_desc("name"), cl::CommaSeparated);

/// One line on standard error; the exit code of a user error.
static int fail(const llvm::Twine &message) {
  llvm::errs() << "conformance_packages: error: " << message << "\n";
  return 1;
}

static llvm::Error write(const conformance::Graph &graph,
                         PackageOptions options) {
  options.init = llvm::any_of(
      graph.layers, [](const auto &layer) { return layer.initKernel; });
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(graphText(graph),
                                                        &context, graph.name);
  if (!module)
    return llvm::createStringError("graph '" + graph.name +
                                   "' does not parse");
  return writePackage(*module, options, (folder + "/" + graph.name).c_str());
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "Write the conformance suite's packages\n");
  PackageOptions options;
  if (!levels.empty())
    options.cpuLevels.assign(levels.begin(), levels.end());
  options.cuda = !noCuda;
  options.compactBefore = true; // so that graphs have layers of both kinds
  options.initWhereDense = true; // so that dense states come back on a GPU too
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return fail("cannot create '" + folder + "': " + error.message());
  for (const conformance::Graph &graph : conformance::allGraphs()) {
    if (!names.empty() && !llvm::is_contained(names, graph.name))
      continue;
    if (llvm::Error error = write(graph, options))
      return fail("graph '" + graph.name +
                  "': " + llvm::toString(std::move(error)));
  }
  return 0;
}
