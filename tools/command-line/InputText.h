//===- InputText.h - What a tool reads --------------------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_COMMAND_LINE_INPUTTEXT_H
#define SINKSTATE_TOOLS_COMMAND_LINE_INPUTTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace sinkstate::tools {

/// Reads a whole text, of a file, a pipe or a device. "-": standard input. One of more
/// than 64 MiB, or without an end, is std::errc::file_too_large.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readText(llvm::StringRef path);

} // namespace sinkstate::tools

#endif
