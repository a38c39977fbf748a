//===- TextWriter.cpp - Indented source text ------------------------------===//

#include "codegen/common/TextWriter.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;
using namespace sinkstate::codegen;

static constexpr size_t kWidth = 100;
static constexpr unsigned kIndent = 2;
static constexpr unsigned kContinuation = 4;

void TextWriter::startLine() {
  if (wantsBlank && !isBlockStart)
    text += '\n';
  wantsBlank = false;
  isBlockStart = false;
}

/// The blank at which a line is best broken: at most `width` from the start and
/// as little nested in brackets as possible, the last one of those. npos if none.
static size_t findBreak(StringRef line, size_t width) {
  size_t best = StringRef::npos;
  int depth = 0, bestDepth = INT_MAX;
  for (size_t i = 0; i < line.size() && i <= width; ++i) {
    char c = line[i];
    // Angle brackets of templates stand close to their neighbours.
    bool isClose = i > 0 && line[i - 1] != ' ' && line[i - 1] != '>' && line[i - 1] != '<';
    if (c == '(' || c == '[' || c == '{' || (c == '<' && isClose))
      ++depth;
    else if (c == ')' || c == ']' || c == '}' || (c == '>' && isClose))
      --depth;
    else if (c == ' ' && i > 0 && depth <= bestDepth) {
      // Not between the parts of a declaration and not before its value.
      bool isJoint = line[i - 1] == ',' || line[i - 1] == ';' ||
                     StringRef("+-*/%&|?:<>=").contains(line[i - 1]);
      if (isJoint && i >= 20) {
        best = i;
        bestDepth = depth;
      }
    }
  }
  return best;
}

void TextWriter::line(const Twine &twine) {
  startLine();
  std::string whole = twine.str();
  StringRef rest = whole;
  unsigned column = depth * kIndent;
  while (true) {
    size_t at = column + rest.size() > kWidth ? findBreak(rest, kWidth - column)
                                              : StringRef::npos;
    text.append(column, ' ');
    text += rest.substr(0, at).rtrim();
    text += '\n';
    if (at == StringRef::npos)
      return;
    rest = rest.substr(at).ltrim();
    column = depth * kIndent + kContinuation;
  }
}

void TextWriter::comment(StringRef words) {
  SmallVector<StringRef> lines;
  words.split(lines, '\n');
  for (StringRef rest : lines) {
    do {
      startLine();
      size_t width = kWidth - depth * kIndent - 3;
      size_t at = rest.size() > width ? rest.rfind(' ', width) : StringRef::npos;
      text.append(depth * kIndent, ' ');
      text += rest.empty() ? "//" : "// ";
      text += rest.substr(0, at);
      text += '\n';
      rest = at == StringRef::npos ? StringRef() : rest.substr(at + 1);
    } while (!rest.empty());
  }
}

void TextWriter::directive(const Twine &twine) {
  startLine();
  text += twine.str();
  text += '\n';
}

void TextWriter::open(const Twine &twine) {
  line(twine + " {");
  ++depth;
  isBlockStart = true;
}

void TextWriter::close(const Twine &twine) {
  --depth;
  wantsBlank = false;
  isBlockStart = false;
  line(twine);
}

void TextWriter::reopen(const Twine &twine) {
  close(twine + " {");
  ++depth;
  isBlockStart = true;
}
