//===- TextWriter.h - Indented source text ----------------------*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_COMMON_TEXTWRITER_H
#define SINKSTATE_CODEGEN_COMMON_TEXTWRITER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace sinkstate::codegen {

/// Collects C++ source text: indents blocks, breaks long lines where they are
/// least nested, keeps blank lines single and never at the start of a block.
class TextWriter {
public:
  /// A statement or any other line; broken if it is too long.
  void line(const llvm::Twine &text);

  /// A comment of one or more lines, broken between words.
  void comment(llvm::StringRef text);

  /// A line that starts in the first column and is never broken (`#pragma`).
  void directive(const llvm::Twine &text);

  /// `text {`, and everything up to `close` indented.
  void open(const llvm::Twine &text);
  void close(const llvm::Twine &text = "}");
  /// Ends one block and begins the next: `} else {`.
  void reopen(const llvm::Twine &text);

  /// Indents without braces: the body of an `if` or `for` of one statement.
  void indent() { ++depth; }
  void outdent() { --depth; }

  /// Asks for an empty line before the next line.
  void blank() { wantsBlank = true; }

  std::string take() { return std::move(text); }

private:
  void startLine();

  std::string text;
  unsigned depth = 0;
  bool wantsBlank = false;
  bool isBlockStart = true;
};

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_TEXTWRITER_H
