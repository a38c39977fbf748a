//===- CommandLine.cpp - The options as they are typed --------------------===//

#include "CommandLine.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace ss_run;
namespace cl = llvm::cl;

namespace {

/// Every value is read as text: checkOptions() says in one way what was found
/// and what was expected. Made only after the libraries' own options have been
/// cleared away, which would show in --help and may have the same names.
struct Declared {
  using Text = cl::opt<std::string>;

  cl::OptionCategory category{"ss-run options"};
  Text model{"model", cl::cat(category), cl::value_desc("DIR"),
             cl::desc("model folder: config.json and model.safetensors")};
  Text text{"text", cl::cat(category), cl::value_desc("FILE"),
            cl::desc("text to decode; of a .safetensors file, the tensor "
                     "'tokens'")};
  Text tokens{"tokens", cl::cat(category), cl::value_desc("N"),
              cl::desc("tokens to decode for each request (1024)")};
  Text policy{"policy", cl::cat(category),
              cl::value_desc("relative:EPS|fixed:R|energy:F"),
              cl::desc("what a compaction keeps (relative:0.03)")};
  Text active{"active", cl::cat(category), cl::value_desc("A"),
              cl::desc("components that take part in a compaction (8)")};
  Text buffer{"buffer", cl::cat(category), cl::value_desc("K"),
              cl::desc("tokens between two compactions (8)")};
  Text consolidate{"consolidate", cl::cat(category), cl::value_desc("N|off"),
                   cl::desc("compactions between two exact SVDs of the frozen "
                            "components (4)")};
  Text denseFallback{"dense-fallback", cl::cat(category),
                     cl::value_desc("on|off"),
                     cl::desc("keep a state dense where its factors would be "
                              "larger (on)")};
  Text dense{"dense", cl::cat(category), cl::value_desc("compiled|reference"),
             cl::desc("what the dense run uses: the compiler's dense kernels, "
                      "or the example's plain loop (compiled)")};
  Text package{"package", cl::cat(category), cl::value_desc("DIR"),
               cl::desc("take the compressed run's kernels from this package "
                        "of ss-compile")};
  Text batch{"batch", cl::cat(category), cl::value_desc("B"),
             cl::desc("requests that decode at the same time, request b from "
                      "byte b * (size / B) on (1)")};
  Text threads{"threads", cl::cat(category), cl::value_desc("T"),
               cl::desc("threads (1)")};
  Text generate{"generate", cl::cat(category), cl::value_desc("N"),
                cl::desc("after the text, sample N bytes with compressed "
                         "states and print the first request's (0)")};
  Text seed{"seed", cl::cat(category), cl::value_desc("S"),
            cl::desc("seed of --generate (0)")};
  Text json{"json", cl::cat(category), cl::value_desc("FILE"),
            cl::desc("write the figures to FILE")};
  Text svg{"svg", cl::cat(category), cl::value_desc("FILE"),
           cl::desc("draw the stored ranks of the first request over time "
                    "into FILE")};
  cl::opt<bool> timing{"timing", cl::cat(category),
                       cl::desc("print where the time went")};
};

const char *const overview =
    "Decodes a text token by token twice, with dense and with compressed "
    "recurrent states,\nand compares quality, memory and time.\n\n"
    "Example:\n  ss-run --model examples/tiny-hybrid "
    "--text examples/tiny-hybrid/sample.bin --policy relative:0.03\n";

} // namespace

Result<RunOptions> ss_run::readCommandLine(int argc, const char *const *argv) {
  cl::ResetCommandLineParser();
  Declared declared;
  cl::HideUnrelatedOptions(declared.category);
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &out) { out << "ss-run " SS_VERSION "\n"; });

  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &stream)) {
    // The first line says what is wrong; more lines are guesses.
    std::string line = errors.substr(0, errors.find('\n'));
    if (size_t colon = line.find(": "); colon != std::string::npos)
      line = line.substr(colon + 2);
    return Error{line};
  }

  OptionTexts texts;
  texts.model = declared.model;
  texts.text = declared.text;
  texts.package = declared.package;
  texts.json = declared.json;
  texts.svg = declared.svg;
  texts.policy = declared.policy;
  texts.dense = declared.dense;
  texts.denseFallback = declared.denseFallback;
  texts.tokens = declared.tokens;
  texts.active = declared.active;
  texts.buffer = declared.buffer;
  texts.consolidate = declared.consolidate;
  texts.batch = declared.batch;
  texts.threads = declared.threads;
  texts.generate = declared.generate;
  texts.seed = declared.seed;
  texts.timing = declared.timing;
  return checkOptions(texts);
}
