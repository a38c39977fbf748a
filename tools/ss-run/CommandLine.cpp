//===- CommandLine.cpp - The options as they are typed --------------------===//

#include "CommandLine.h"

#include "HelpText.h"

#include <algorithm>
#include <string_view>

using namespace ss_run;

namespace {

/// An option with a value. Every value is kept as text: checkOptions() says in
/// one way what was found and what was expected.
struct ValueOption {
  const char *name;
  std::string OptionTexts::*value;
  const char *valueName;
  const char *help;
};

const ValueOption valueOptions[] = {
    {"model", &OptionTexts::model, "DIR",
     "model folder: config.json and model.safetensors"},
    {"text", &OptionTexts::text, "FILE",
     "text to decode; of a .safetensors file, the tensor 'tokens'"},
    {"tokens", &OptionTexts::tokens, "N",
     "tokens to decode for each request (1024)"},
    {"prefill", &OptionTexts::prefill, "N",
     "take the compressed run's first N tokens through the dense recurrence, "
     "then compress its states and go on from those (0)"},
    {"from", &OptionTexts::from, "N",
     "leave the first N tokens out of quality, bytes and ranks (what --prefill "
     "says)"},
    {"policy", &OptionTexts::policy, "relative:EPS|fixed:R|energy:F|budget:BYTES|sink:R",
     "what a compaction keeps (relative:0.03)"},
    {"sink", &OptionTexts::sink, "FILE",
     "with --policy sink: the heads' mean values, of --calibrate-sink"},
    {"calibrate-sink", &OptionTexts::calibrateSink, "TEXT",
     "measure the mean value of every head over TEXT, with dense states, and "
     "write it to the file of -o (safetensors); nothing else is done. Takes "
     "--model, --tokens and --threads"},
    {"o", &OptionTexts::output, "FILE", "what --calibrate-sink writes"},
    {"quality", &OptionTexts::quality, "POLICY[/STORAGE[/ROUNDING]],...",
     "decode with several policies and storages side by side instead of one; "
     "prints bits per byte, KL by quarters of the run and bytes as a Markdown "
     "table. --svg then draws bytes against KL"},
    {"core", &OptionTexts::core, "svd|qr",
     "how a compaction decomposes (svd for fixed and sink, else by layer type)"},
    {"storage", &OptionTexts::storage, "f32|f16|bf16|fp8[+TYPE=STORAGE]",
     "element type of stored rows (f32), and of those of layers of a type: "
     "fp8+kda=f16; the dense run keeps f32"},
    {"rounding", &OptionTexts::rounding, "nearest|stochastic",
     "how rows are rounded to it (nearest)"},
    {"active", &OptionTexts::active, "A",
     "components that take part in a compaction (8)"},
    {"buffer", &OptionTexts::buffer, "K", "tokens between two compactions (8)"},
    {"consolidate", &OptionTexts::consolidate, "N|off",
     "compactions between two exact SVDs of the frozen components (cpu: 4, "
     "cuda: off)"},
    {"consolidation", &OptionTexts::consolidation,
     "off|inline|asynchronous|deterministic",
     "where those SVDs run, in the decode call (cpu) or on threads of their "
     "own (cpu: inline, cuda: asynchronous where --consolidate is given)"},
    {"dense-fallback", &OptionTexts::denseFallback, "on|off",
     "keep a state dense where its factors would be larger (on; cuda with "
     "--row-capacity: off)"},
    {"device", &OptionTexts::device, "cpu|cuda|cuda:N",
     "where the states are (cpu)"},
    {"row-capacity", &OptionTexts::rowCapacity, "N",
     "cuda: rows that every state has from the beginning, 0: those it needs, "
     "from pools (0)"},
    {"dense", &OptionTexts::dense, "compiled|reference",
     "what the dense run uses: the compiler's dense kernels, or the example's "
     "plain loop (compiled; without a compiler and --dense-package reference)"},
    {"package", &OptionTexts::package, "DIR",
     "take the compressed run's kernels from this package of ss-compile"},
    {"dense-package", &OptionTexts::densePackage, "DIR",
     "the same for the dense run: a package of dense form"},
    {"batch", &OptionTexts::batch, "B",
     "requests that decode at the same time, request b from byte b * (size / "
     "B) on (1)"},
    {"threads", &OptionTexts::threads, "T", "threads (1)"},
    {"generate", &OptionTexts::generate, "N",
     "after the text, sample N bytes with compressed states and print the "
     "first request's (0)"},
    {"seed", &OptionTexts::seed, "S", "seed of --generate (0)"},
    {"log", &OptionTexts::log, "off|error|warning|info|debug",
     "print what the library says up to this level to standard error (off)"},
    {"json", &OptionTexts::json, "FILE", "write the figures to FILE"},
    {"svg", &OptionTexts::svg, "FILE",
     "draw the stored ranks of the first request over time into FILE"},
    {"ranks", &OptionTexts::ranks, "FILE",
     "write the stored ranks of the first request's last half to FILE, for "
     "ss-bench --profile trace:FILE"},
};

const char *const overview =
    R"(ss-run: compares dense and compressed recurrent states on a text

Decodes the text token by token twice, with dense and with compressed states,
and compares quality, memory and time.

Usage: ss-run --model DIR --text FILE [options]

Options
)";

const char *const flagsAndExamples =
    R"(  --stats
        print what the compressed engine counted: ranks and bytes of every
        layer, consolidation, memory
  --timing
        print where the time went; on cuda also the engine's start-up with an
        empty kernel cache, with every kernel cached, and the same beside
        another engine (the GPU's context is there)
  --help, --version

Examples
  ss-run --model examples/tiny-hybrid --text examples/tiny-hybrid/sample.bin \
      --policy relative:0.03
  ss-run --model examples/tiny-hybrid --text examples/tiny-hybrid/sample.bin \
      --quality relative:0.03,relative:0.03/f16,relative:0.03/fp8,fixed:16
  ss-run --device cuda --package tiny.sspkg --model examples/tiny-hybrid \
      --text examples/tiny-hybrid/sample.bin --timing

Exit codes
  0  done
  1  the command line, a file or a state is wrong
  3  the device, or its driver, is not on this machine
)";

const ValueOption *findOption(std::string_view name) {
  const auto *found = std::find_if(
      std::begin(valueOptions), std::end(valueOptions),
      [&](const ValueOption &option) { return option.name == name; });
  return found == std::end(valueOptions) ? nullptr : found;
}

/// Whether `text` is one of the options that have no value.
bool setFlag(std::string_view name, CommandLine &line) {
  if (name == "timing")
    return line.texts.timing = true;
  if (name == "stats")
    return line.texts.stats = true;
  if (name == "help")
    return line.help = true;
  if (name == "version")
    return line.version = true;
  return false;
}

} // namespace

std::string ss_run::dashed(const std::string &name) {
  return (name.size() == 1 ? "-" : "--") + name;
}

std::vector<std::string> ss_run::givenOptions(const OptionTexts &texts) {
  std::vector<std::string> names;
  for (const ValueOption &option : valueOptions)
    if (!(texts.*option.value).empty())
      names.push_back(option.name);
  if (texts.timing)
    names.push_back("timing");
  if (texts.stats)
    names.push_back("stats");
  return names;
}

Result<CommandLine>
ss_run::readCommandLine(std::span<const char *const> arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::string_view text = argument.substr(
        std::min<size_t>(argument.find_first_not_of('-'), argument.size()));
    const size_t dashes = argument.size() - text.size();
    const size_t equals = text.find('=');
    const std::string name(text.substr(0, equals));
    const bool isOption = dashes == 1 || dashes == 2;
    if (isOption && equals == std::string_view::npos && setFlag(name, line))
      continue;
    const ValueOption *option = isOption ? findOption(name) : nullptr;
    if (!option)
      return Error{"found '" + std::string(argument) +
                   "', expected an option that --help lists"};
    if (equals == std::string_view::npos && i + 1 == arguments.size())
      return Error{dashed(name) + ": found no value, expected " +
                   option->valueName};
    const std::string value(equals == std::string_view::npos
                                ? std::string_view(arguments[++i])
                                : text.substr(equals + 1));
    if (value.empty())
      return Error{dashed(name) + ": found an empty value, expected " +
                   option->valueName};
    std::string &place = line.texts.*option->value;
    if (!place.empty())
      return Error{dashed(name) + ": found '" + place + "' and '" + value +
                   "', expected it once"};
    place = value;
  }
  return line;
}

std::string ss_run::helpText() {
  std::string text = overview;
  for (const ValueOption &option : valueOptions)
    text +=
        ss_tools::helpEntry(dashed(option.name), option.valueName, option.help);
  return text + flagsAndExamples;
}
