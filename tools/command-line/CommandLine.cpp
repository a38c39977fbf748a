//===- CommandLine.cpp - How the compiler's tools speak -------------------===//

#include "tools/command-line/CommandLine.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace sinkstate::tools {

/// Quoted names and values stay on one line, whatever is in them.
static std::string printable(StringRef text) {
  std::string line;
  llvm::raw_string_ostream stream(line);
  for (char c : text)
    stream << (c >= 0 && c < ' ' ? ' ' : c);
  return line;
}

int fail(StringRef tool, const llvm::Twine &message) {
  llvm::errs() << tool << ": error: " << printable(message.str()) << "\n";
  return 1;
}

/// LLVM's own first line, in our form: it begins with the program's name, and
/// further lines guess what was meant. Of wrong values it has told itself.
static int failToParse(StringRef tool, StringRef program, StringRef said) {
  if (said.empty())
    return 1;
  StringRef line = said.split('\n').first;
  line.consume_front(program);
  line.consume_front(":");
  line = line.trim();
  line = line.split("  Try:").first.rtrim("!. ");
  return fail(tool, line + ": see " + tool + " --help");
}

/// The first option of a category that was given more than once, or null.
static cl::Option *findRepeated(cl::OptionCategory &category) {
  std::vector<cl::Option *> repeated;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (llvm::is_contained(option->Categories, &category) &&
        option->getNumOccurrencesFlag() != cl::ZeroOrMore &&
        option->getNumOccurrencesFlag() != cl::OneOrMore &&
        option->getNumOccurrences() > 1)
      repeated.push_back(option);
  llvm::sort(repeated, [](cl::Option *a, cl::Option *b) {
    return a->ArgStr < b->ArgStr;
  });
  return repeated.empty() ? nullptr : repeated.front();
}

bool parseCommandLine(StringRef tool, int argc, char **argv,
                      cl::OptionCategory &category, StringRef overview) {
  cl::HideUnrelatedOptions(category);
  std::string said;
  llvm::raw_string_ostream stream(said);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &stream)) {
    StringRef program = StringRef(argv[0]).rsplit('/').second;
    failToParse(tool, program.empty() ? StringRef(argv[0]) : program, said);
    return false;
  }
  if (cl::Option *option = findRepeated(category)) {
    StringRef dashes = option->ArgStr.size() == 1 ? "-" : "--";
    fail(tool, dashes + option->ArgStr + ": found " +
                   llvm::Twine(option->getNumOccurrences()) +
                   " times, expected it once");
    return false;
  }
  return true;
}

/// "file:line:column: ", or as much of it as is known.
static std::string placeOf(Location location) {
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return "";
  std::string text = place.getFilename().str() + ":";
  if (place.getLine() > 0)
    text += std::to_string(place.getLine()) + ":" +
            std::to_string(place.getColumn()) + ":";
  return text + " ";
}

LineDiagnostics::LineDiagnostics(StringRef tool, MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  context->printOpOnDiagnostic(false);
  setHandler([tool = tool.str()](Diagnostic &diagnostic) {
    std::string line = placeOf(diagnostic.getLocation()) + diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      line += "; " + placeOf(note.getLocation()) + note.str();
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      fail(tool, line);
    else
      llvm::errs() << tool << ": " << printable(line) << "\n";
  });
}

} // namespace sinkstate::tools
