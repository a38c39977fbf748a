//===- ss-import.cpp - Make a model state graph ---------------------------===//
//
//   ss-import examples/tiny-hybrid --policy relative:0.03 -o tiny.mlir
//   ss-import --preset Kimi-K3 --policy fixed:16
//
//===----------------------------------------------------------------------===//

#include "tools/command-line/CommandLine.h"
#include "tools/command-line/OutputText.h"
#include "tools/ss-import/Import.h"

#include "passes/pipelines/Register.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sinkstate;
namespace cl = llvm::cl;

static cl::OptionCategory category("ss-import options");

static cl::opt<std::string> input(cl::Positional,
                                  cl::desc("<config.json or its folder>"),
                                  cl::cat(category));
static cl::opt<std::string>
    preset("preset", cl::desc("Take the sizes of a published model"),
           cl::value_desc("name"), cl::cat(category));
static cl::opt<bool> listPresets("list-presets",
                                 cl::desc("List the published models"),
                                 cl::cat(category));
static cl::opt<std::string>
    output("o",
           cl::desc("Where to write the module (default: standard output)"),
           cl::value_desc("file"), cl::init("-"), cl::cat(category));
static cl::opt<std::string>
    policy("policy",
           cl::desc("relative:EPS, fixed:RANK, energy:SHARE, budget:BYTES, or "
                    "sink:RANK (form sink and fixed:RANK)"),
           cl::value_desc("kind:value"), cl::init("relative:0.03"),
           cl::cat(category));
static cl::opt<long> active(
    "active",
    cl::desc(
        "Components that a compaction works on (default 8; fixed:RANK: RANK)"),
    cl::value_desc("count"), cl::init(8), cl::cat(category));
static cl::opt<long>
    buffer("buffer",
           cl::desc("Tokens between compactions (default 8; fixed:RANK: RANK)"),
           cl::value_desc("count"), cl::init(8), cl::cat(category));
static cl::opt<long>
    draft("draft", cl::desc("Buffer rows for speculative tokens (default 0)"),
          cl::value_desc("count"), cl::init(0), cl::cat(category));
static cl::opt<ss::CoreKind> core(
    "core", cl::desc("How compactions decompose (default: svd for fixed and "
                     "sink, otherwise by layer type)"),
    cl::values(clEnumValN(ss::CoreKind::svd, "svd", "singular values"),
               clEnumValN(ss::CoreKind::qr, "qr", "pivoted orthogonalisation")),
    cl::cat(category));
static cl::opt<std::string> storage(
    "storage",
    cl::desc("Element type of stored rows: f32 (default), f16 (IEEE), bf16 or "
             "fp8 (e4m3), and behind it +TYPE=STORAGE for layers of a type: "
             "fp8+kda=f16"),
    cl::value_desc("storage"), cl::init("f32"), cl::cat(category));
static cl::opt<ss::Rounding> rounding(
    "rounding", cl::desc("How stored rows are rounded"),
    cl::values(clEnumValN(ss::Rounding::nearest, "nearest",
                          "to nearest, ties to even (default)"),
               clEnumValN(ss::Rounding::stochastic, "stochastic",
                          "up with the probability of what is lost")),
    cl::init(ss::Rounding::nearest), cl::cat(category));
static cl::opt<ss::Form> form(
    "form", cl::desc("How states are kept"),
    cl::values(clEnumValN(ss::Form::factored, "factored", "low-rank (default)"),
               clEnumValN(ss::Form::dense, "dense", "as matrices"),
               clEnumValN(ss::Form::deferred, "deferred",
                          "as matrices that are written once in --buffer "
                          "tokens"),
               clEnumValN(ss::Form::sink, "sink",
                          "low-rank, with a sink; needs --policy fixed:RANK, "
                          "or --policy sink:RANK alone")),
    cl::init(ss::Form::factored), cl::cat(category));

static int fail(const Twine &message) {
  return tools::fail("ss-import", message);
}

/// The options of the import from those of the command line.
static llvm::Expected<ImportOptions> readOptions() {
  ImportOptions options;
  if (llvm::Error error = setPolicy(options, policy))
    return std::move(error);
  options.active = active;
  options.buffer = buffer;
  options.draft = draft;
  if (core.getNumOccurrences())
    options.core = core;
  llvm::Expected<Storages> storages = parseStorages(storage);
  if (!storages)
    return storages.takeError();
  options.storage = *storages;
  options.rounding = rounding;
  if (form.getNumOccurrences() && options.form == ss::Form::sink &&
      form != ss::Form::sink)
    return llvm::createStringError("--form is given, but --policy " + policy +
                                   " makes it sink; leave it out");
  if (form.getNumOccurrences())
    options.form = form;
  if (options.form == ss::Form::dense || options.form == ss::Form::deferred)
    for (const cl::Option *option : {static_cast<cl::Option *>(&policy),
                                     static_cast<cl::Option *>(&core)})
      if (option->getNumOccurrences())
        return llvm::createStringError(
            "--" + option->ArgStr + " is given, but states of form " +
            ss::stringifyForm(options.form) + " are not compacted; leave it out");
  if (options.policyKind != ss::PolicyKind::fixed)
    return options;
  for (auto *option : {&active, &buffer})
    if (option->getNumOccurrences() && *option != options.policyValue)
      return llvm::createStringError(
          "--" + option->ArgStr + " is " + Twine(option->getValue()) +
          ", but --policy " + policy + " makes it the rank; leave it out");
  return options;
}

/// Writes what the tool prints; the exit code.
static int write(StringRef path, StringRef text) {
  if (llvm::Error error = tools::writeText(path, text))
    return fail(llvm::toString(std::move(error)));
  return 0;
}

int main(int argc, char **argv) {
  if (!tools::parseCommandLine("ss-import", argc, argv, category,
                               "Make a model state graph from a model's "
                               "config.json\n"))
    return 1;
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (listPresets) {
    for (const Preset &known : getPresets())
      stream << known.name << ": " << known.summary << "\n";
    return write("-", text);
  }
  if (input.empty() == preset.empty())
    return fail("expected either a config.json (or its folder) or --preset; "
                "see --help");
  llvm::Expected<ImportOptions> options = readOptions();
  if (!options)
    return fail(llvm::toString(options.takeError()));

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  tools::LineDiagnostics diagnostics("ss-import", &context);
  auto module = preset.empty() ? importConfig(input, *options, &context)
                               : importPreset(preset, *options, &context);
  if (failed(module))
    return 1;
  (*module)->print(stream);
  stream << "\n";
  return write(output, text);
}
