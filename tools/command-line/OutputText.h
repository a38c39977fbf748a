//===- OutputText.h - What a tool writes ------------------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_COMMAND_LINE_OUTPUTTEXT_H
#define SINKSTATE_TOOLS_COMMAND_LINE_OUTPUTTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace sinkstate::tools {

/// Writes a whole text. "-": standard output. A file appears whole or not at
/// all: what was there before stays where it cannot be written. A device or a
/// pipe is written to as it is.
llvm::Error writeText(llvm::StringRef path, llvm::StringRef text);

} // namespace sinkstate::tools

#endif
