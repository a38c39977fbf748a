//===- CommandLine.h - How the compiler's tools speak -----------*- C++ -*-===//
//
// Whatever is wrong is one line on standard error, "TOOL: error: MESSAGE", that
// names what was found and what is expected; the exit code is then 1.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TOOLS_COMMAND_LINE_COMMANDLINE_H
#define SINKSTATE_TOOLS_COMMAND_LINE_COMMANDLINE_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>

namespace sinkstate::tools {

/// Prints "TOOL: error: MESSAGE"; the exit code of a user's mistake.
int fail(llvm::StringRef tool, const llvm::Twine &message);

/// Parses the command line; false after it has said what is wrong. Options of
/// `category` that are no lists may be given once. --help and --version end the
/// program.
bool parseCommandLine(llvm::StringRef tool, int argc, char **argv,
                      llvm::cl::OptionCategory &category,
                      llvm::StringRef overview);

/// While it lives, a diagnostic of the context is one line: "TOOL: error:
/// FILE:LINE:COLUMN: MESSAGE", its notes behind it.
class LineDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  LineDiagnostics(llvm::StringRef tool, mlir::MLIRContext *context);
};

} // namespace sinkstate::tools

#endif
