//===- Options.h - What the user asks of ss-run -----------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_OPTIONS_H
#define SINKSTATE_TOOLS_SS_RUN_OPTIONS_H

#include "Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ss_run {

using tiny_hybrid::Error;
using tiny_hybrid::Result;
using tiny_hybrid::Status;

/// Sink: R components beside a sink, which is never truncated.
enum class PolicyKind { Relative, Fixed, Energy, Budget, Sink };

/// How a compaction decomposes; Default: what the layer type prefers.
enum class Core { Default, Svd, Qr };

/// Element type of stored rows.
enum class Storage { F32, F16, BF16, FP8 };

/// The same of all layers, but for those of some types: "fp8+kda=f16".
struct Storages {
  Storage others = Storage::F32;
  std::vector<std::pair<std::string, Storage>> named; ///< "kda"

  /// Whether a layer of any type may have this storage, as far as is said.
  bool has(Storage storage) const;
};

/// How rows are rounded to a storage narrower than f32.
enum class Rounding { Nearest, Stochastic };

/// How a compaction decides what to keep.
struct Policy {
  PolicyKind kind = PolicyKind::Relative;
  double value = 0.03;
};

enum class DenseRun {
  Compiled, ///< the compiler's own dense kernels, on an engine like the other
  Reference ///< the example's plain loop
};

/// Where both kinds of states are.
enum class Device { Cpu, Cuda };

struct RunOptions {
  std::string model;
  std::string text;
  std::string package;      ///< empty: compile in process
  std::string densePackage; ///< the same for the dense run
  std::string json;         ///< empty: not asked for
  std::string svg;          ///< empty: not asked for
  std::string ranks;        ///< empty: not asked for
  std::string sink;         ///< mean values for the policy sink
  Policy policy;
  DenseRun dense = DenseRun::Compiled;
  int tokens = 1024;
  int prefill = 0; ///< tokens of the compressed run that are dense
  int from = 0;    ///< first token that is measured
  Core core = Core::Default;
  Storages storage; ///< of the compressed states
  Rounding rounding = Rounding::Nearest;
  int active = 8;
  int buffer = 8;
  int consolidateEvery = 4; ///< 0: off; by default what the device does
  int batch = 1;
  int threads = 1;
  int generate = 0;
  uint64_t seed = 0;
  bool denseFallback = true; ///< by default what the device does
  Device device = Device::Cpu;
  int deviceOrdinal = 0;
  int rowCapacity = 0; ///< 0: every layer's bound
  bool timing = false;
  bool stats = false;
  int consolidation = -1; ///< an ss_consolidation; -1: what the device does
  int log = 0; ///< an ss_log_level: what is printed of the library's messages
  /// Whether the user named the value: a package brings its own.
  bool policyGiven = false, coreGiven = false, storageGiven = false,
       roundingGiven = false, activeGiven = false, bufferGiven = false,
       denseFallbackGiven = false;
};

/// "relative:0.03"
Result<Policy> parsePolicy(std::string_view text);
std::string toString(const Policy &policy);
/// "f32", "nearest"
const char *toString(Storage storage);
/// "fp8+kda=f16"
std::string toString(const Storages &storages);
const char *toString(Rounding rounding);
/// "svd", "qr", "default": what the layer types prefer.
const char *toString(Core core);
/// "off", "inline", "asynchronous", "deterministic", "default".
const char *consolidationName(const RunOptions &options);
/// "consolidation every 4 compactions, dense fallback on"; with a fixed number of
/// rows behind it.
std::string describeEngine(const RunOptions &options);
/// "cpu", "cuda:0"
std::string deviceName(const RunOptions &options);

/// Values as the command line has them; an empty text is an option not given.
struct OptionTexts {
  std::string model, text, package, densePackage, json, svg, ranks;
  std::string quality, sink, calibrateSink, output;
  std::string policy, core, storage, rounding, dense, denseFallback, device, rowCapacity;
  std::string tokens, prefill, from, active, buffer, consolidate, consolidation, batch,
      threads, generate,
      seed, log;
  bool timing = false;
  bool stats = false;
};

/// What --calibrate-sink asks for.
struct CalibrationOptions {
  std::string model, text, output;
  int tokens = 1024, threads = 1;
};

/// Whether kernels can be compiled in process, or come from packages alone.
enum class CompilerHalf { Present, Absent };

/// Checks every value and what they say together.
Result<RunOptions> checkOptions(const OptionTexts &texts,
                                CompilerHalf compiler = CompilerHalf::Present);

/// The same of --calibrate-sink, which takes --model, -o, --tokens and --threads.
Result<CalibrationOptions> checkCalibration(const OptionTexts &texts);
/// The runs that --quality asks for: the other options with each of its
/// policies, "relative:0.03", "relative:0.03/fp8", "relative:0.03/fp8+kda=f16" or
/// "relative:0.03/fp8/stochastic", separated by commas. Not empty.
Result<std::vector<RunOptions>>
checkVariants(const OptionTexts &texts,
              CompilerHalf compiler = CompilerHalf::Present);
/// "relative:0.03/fp8/stochastic"; without what is f32 or to nearest.
std::string nameVariant(const RunOptions &options);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_OPTIONS_H
