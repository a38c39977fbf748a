//===- ss-run.cpp - Compares dense and compressed states on a real text ---===//

#include "CommandLine.h"
#include "DenseBackend.h"
#include "EngineProbe.h"
#include "Kernels.h"
#include "OutputFile.h"
#include "PrefillBackend.h"
#include "Report.h"
#include "Sampler.h"
#include "Statistics.h"
#include "StartUp.h"
#include "Svg.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>

using namespace ss_run;
using tiny_hybrid::DenseBackend;
using tiny_hybrid::EngineBackend;
using tiny_hybrid::Model;
using tiny_hybrid::StateBackend;

namespace {

/// The seconds since it was made or last asked.
class Lap {
public:
  double operator()() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start;
    start = now;
    return passed.count();
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

/// A line that says how far the run is, on terminals alone.
class ProgressLine {
public:
  explicit ProgressLine(int total) : total(total) {}
  ~ProgressLine() { clear(); }

  void show(int done) {
    if (!terminal || done * 100LL / total == shown)
      return;
    shown = static_cast<int>(done * 100LL / total);
    std::fprintf(stderr, "\rdecoding %d of %d tokens (%d %%)", done, total,
                 shown);
  }

  void clear() {
    if (shown >= 0)
      std::fputs("\r\033[K", stderr);
    shown = -1;
  }

private:
  int total;
  int shown = -1;
  const bool terminal = ::isatty(STDERR_FILENO);
};

/// The files that were asked for, opened before the work.
struct Outputs {
  std::optional<OutputFile> json, svg;

  Status open(const RunOptions &options) {
    if (Status status = openOne(options.json, json))
      return status;
    return openOne(options.svg, svg);
  }

private:
  static Status openOne(const std::string &path,
                        std::optional<OutputFile> &file) {
    if (path.empty())
      return std::nullopt;
    Result<OutputFile> opened = OutputFile::open(path);
    if (!opened)
      return opened.takeError();
    file.emplace(std::move(*opened));
    return std::nullopt;
  }
};

/// Both runs' states, and the code that they run.
struct States {
  std::unique_ptr<Kernels> compressedKernels, denseKernels;
  std::unique_ptr<EngineBackend> compressed;
  std::unique_ptr<PrefillBackend> prefill; ///< before `compressed`, or null
  std::unique_ptr<StateBackend> dense;
  std::optional<ss_start_up::StartTimes> start; ///< of the compressed engine

  Status compile(const RunOptions &options) {
    auto kernels = make(options, options.package, StateForm::Factored);
    if (!kernels)
      return kernels.takeError();
    compressedKernels = std::move(*kernels);
    if (options.dense == DenseRun::Reference)
      return std::nullopt;
    kernels = make(options, options.densePackage, StateForm::Dense);
    if (!kernels)
      return kernels.takeError();
    denseKernels = std::move(*kernels);
    return std::nullopt;
  }

  Status makeEngines(const RunOptions &options, const Model &model) {
    ss_engine_options engine;
    ss_engine_options_init(&engine);
    engine.threads = options.threads;
    engine.dense_fallback = options.denseFallback;
    engine.consolidate_every = options.consolidateEvery;
    engine.consolidation = options.consolidation;
    engine.row_capacity = options.rowCapacity;
    engine.device =
        options.device == Device::Cuda ? SS_DEVICE_CUDA : SS_DEVICE_CPU;
    engine.device_ordinal = options.deviceOrdinal;
    if (options.timing && options.device == Device::Cuda)
      if (Status status = measureStart(engine, options.batch))
        return status;
    auto made = EngineBackend::create(compressedKernels->package(), engine,
                                      model.config, options.batch);
    if (!made)
      return made.takeError();
    compressed = std::move(*made);
    if (options.prefill > 0)
      prefill = std::make_unique<PrefillBackend>(
          *compressed, model.config, options.batch, options.threads,
          options.prefill);
    if (!denseKernels) {
      dense = std::make_unique<DenseBackend>(model.config, options.batch,
                                             options.threads);
      return std::nullopt;
    }
    made = EngineBackend::create(denseKernels->package(), engine, model.config,
                                 options.batch);
    if (!made)
      return made.takeError();
    dense = std::move(*made);
    return std::nullopt;
  }

private:
  static Result<std::unique_ptr<Kernels>>
  make(const RunOptions &options, const std::string &package, StateForm form) {
    return package.empty() ? compileKernels(options, form)
                           : openKernels(package);
  }

  Status measureStart(ss_engine_options engine, int batch) {
    engine.slots = batch;
    start = ss_start_up::measureStart(compressedKernels->package(), engine);
    if (start->result == SS_OK)
      return std::nullopt;
    return Error{"engine: " + start->error,
                 start->result == SS_DEVICE_UNAVAILABLE};
  }
};

Status writeResults(const Measurement &measurement, const RunOptions &options,
                    const std::string &policy, const PhaseTimes &phases,
                    Outputs &outputs) {
  std::fputs(formatTable(measurement, options, policy).c_str(), stdout);
  if (options.timing)
    std::fputs(formatTiming(measurement, phases).c_str(), stdout);
  if (options.generate)
    std::printf("\n%s\n", printable(measurement.generated).c_str());
  if (outputs.json)
    if (Status status = outputs.json->commit(
            formatJson(measurement, options, policy, phases, SS_VERSION)))
      return status;
  if (outputs.svg)
    return outputs.svg->commit(
        drawRanks(measurement.history, options.model + ", " + policy));
  return std::nullopt;
}

Status run(const RunOptions &options) {
  PhaseTimes phases;
  Lap lap;
  Result<Model> model = Model::load(options.model);
  if (!model)
    return model.takeError();
  Result<TokenSource> text =
      TokenSource::open(options.text, options.batch, options.tokens);
  if (!text)
    return text.takeError();
  phases.load = lap();

  Outputs outputs;
  if (Status status = outputs.open(options))
    return status;
  States states;
  if (Status status = states.compile(options))
    return status;
  phases.compile = lap();
  if (Status status = states.makeEngines(options, *model))
    return status;
  phases.engines = lap();
  phases.start = states.start;

  ProgressLine line(options.tokens);
  EngineProbe probe(*states.compressed);
  MeasureOptions how{options.tokens,  options.from,     options.batch,
                     options.threads, options.generate, options.seed,
                     [&](int done) { line.show(done); }};
  StateBackend &compressed =
      states.prefill ? static_cast<StateBackend &>(*states.prefill)
                     : *states.compressed;
  Result<Measurement> measurement =
      measure(*model, *text, *states.dense, compressed, probe, how);
  line.clear();
  phases.decode = lap();
  phases.init = states.prefill ? states.prefill->initSeconds() : 0;
  if (!measurement)
    return measurement.takeError();
  Result<int64_t> snapshots = states.compressed->snapshotBytes();
  if (!snapshots)
    return snapshots.takeError();
  measurement->bytes.snapshots = *snapshots;
  std::string stats;
  if (options.stats) {
    Result<std::string> text = formatStatistics(*states.compressed);
    if (!text)
      return text.takeError();
    stats = std::move(*text);
  }
  if (Status status =
          writeResults(*measurement, options,
                       states.compressedKernels->policy(), phases, outputs))
    return status;
  std::fputs(stats.c_str(), stdout);
  return std::nullopt;
}

/// Exit codes, as --help lists them.
constexpr int exitDone = 0, exitWrong = 1, exitNoDevice = 3;

int fail(const Error &error) {
  std::fprintf(stderr, "ss-run: %s\n", error.message.c_str());
  return error.deviceMissing ? exitNoDevice : exitWrong;
}

} // namespace

int main(int argc, char **argv) {
  Result<CommandLine> line =
      readCommandLine({argv + 1, static_cast<size_t>(argc - 1)});
  if (!line)
    return fail(line.takeError());
  if (line->help || line->version) {
    std::fputs(line->help ? helpText().c_str() : "ss-run " SS_VERSION "\n",
               stdout);
    return exitDone;
  }
  Result<RunOptions> options = checkOptions(line->texts, compilerHalf());
  if (!options)
    return fail(options.takeError());
  if (Status status = run(*options))
    return fail(*status);
  return exitDone;
}
