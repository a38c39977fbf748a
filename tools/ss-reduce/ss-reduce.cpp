//===- ss-reduce.cpp - The smallest IR that still shows a fault -----------===//
//
// Makes a module smaller as long as a script says that it is of interest:
//   ss-reduce model.mlir --reduction-tree="traversal-mode=0 test=fails.sh"
// The script gets a file and exits with 1 where the fault is still there.
//
//===----------------------------------------------------------------------===//

#include "passes/pipelines/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

/// What MLIR's command line says of too vaguely, or not at all; empty: nothing.
static std::string mistakeIn(int argc, char **argv) {
  const std::string see = ": see ss-reduce --help";
  std::string input;
  bool reduces = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (!argument.empty() && argument.front() != '-') {
      input = argument;
      continue;
    }
    const std::string name =
        argument.substr(std::min(argument.find_first_not_of('-'),
                                 argument.size()));
    if (name == "help" || name == "help-hidden" || name == "help-list" ||
        name == "version" || name == "h")
      return "";
    reduces |= name.starts_with("reduction-tree") ||
               name.starts_with("opt-reduction-pass");
  }
  if (input.empty())
    return "found no graph, expected a file of MLIR" + see;
  if (!std::ifstream(input))
    return "cannot read '" + input + "': " + std::strerror(errno) +
           ", expected a file of MLIR";
  if (!reduces)
    return "found no reduction, expected --reduction-tree=\"traversal-mode=0 "
           "test=PROGRAM\" or --opt-reduction-pass" + see;
  return "";
}

int main(int argc, char **argv) {
  if (const std::string wrong = mistakeIn(argc, argv); !wrong.empty()) {
    std::fprintf(stderr, "ss-reduce: error: %s\n", wrong.c_str());
    return 1;
  }
  mlir::DialectRegistry registry;
  sinkstate::registerDialects(registry);
  sinkstate::registerPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
