//===- ss-run.cpp - Compares dense and compressed states on a real text ---===//

#include "CommandLine.h"
#include "DenseBackend.h"
#include "EngineProbe.h"
#include "Kernels.h"
#include "OutputFile.h"
#include "PrefillBackend.h"
#include "QualityTable.h"
#include "RankTrace.h"
#include "Report.h"
#include "Sampler.h"
#include "SinkFile.h"
#include "StandardOutput.h"
#include "Statistics.h"
#include "StartUp.h"
#include "Svg.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unistd.h>

using namespace ss_run;
using sinkstate::tools::OutputFile;
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

Status commit(OutputFile &file, const std::string &content) {
  if (const sinkstate::Status failed = file.commit(content))
    return Error{failed->message};
  return std::nullopt;
}

/// The files that were asked for, opened before the work.
struct Outputs {
  std::optional<OutputFile> json, svg, ranks;

  Status open(const RunOptions &options) {
    if (Status status = openOne(options.json, json))
      return status;
    if (Status status = openOne(options.svg, svg))
      return status;
    return openOne(options.ranks, ranks);
  }

private:
  static Status openOne(const std::string &path,
                        std::optional<OutputFile> &file) {
    if (path.empty())
      return std::nullopt;
    sinkstate::Result<OutputFile> opened = OutputFile::open(path);
    if (!opened)
      return Error{opened.error()};
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
    if (Status status = compileCompressed(options))
      return status;
    return compileDense(options);
  }

  Status compileCompressed(const RunOptions &options) {
    auto kernels = make(options, options.package, StateForm::Factored);
    if (!kernels)
      return kernels.takeError();
    compressedKernels = std::move(*kernels);
    return std::nullopt;
  }

  Status compileDense(const RunOptions &options) {
    if (options.dense == DenseRun::Reference)
      return std::nullopt;
    auto kernels = make(options, options.densePackage, StateForm::Dense);
    if (!kernels)
      return kernels.takeError();
    denseKernels = std::move(*kernels);
    return std::nullopt;
  }

  Status makeEngines(const RunOptions &options, const Model &model) {
    const ss_engine_options engine = engineOptions(options);
    if (options.timing && options.device == Device::Cuda)
      if (Status status = measureStart(engine, options.batch))
        return status;
    if (Status status = makeCompressed(options, model))
      return status;
    return makeDense(options, model);
  }

  Status makeCompressed(const RunOptions &options, const Model &model) {
    MeanValues sinks;
    if (!options.sink.empty()) {
      std::vector<int> without;
      Result<MeanValues> read =
          readMeans(options.sink, model.config, without);
      if (!read)
        return read.takeError();
      sinks = std::move(*read);
      for (int layer : without)
        std::fprintf(stderr,
                     "ss-run: %s: no mean values of layer %d: its heads have "
                     "no sink\n",
                     options.sink.c_str(), layer);
    }
    auto made = EngineBackend::create(compressedKernels->package(),
                                      engineOptions(options), model.config,
                                      options.batch, sinks);
    if (!made)
      return made.takeError();
    compressed = std::move(*made);
    const auto &layers = compressed->layers();
    if (!sinks.empty() &&
        std::none_of(layers.begin(), layers.end(),
                     [](const ss_layer_info &layer) { return layer.sink_form; }))
      return Error{"--sink: found it with a package that has no layer of form "
                   "sink, expected one made with --policy sink:R"};
    if (options.prefill > 0)
      prefill = std::make_unique<PrefillBackend>(
          *compressed, model.config, options.batch, options.threads,
          options.prefill);
    return std::nullopt;
  }

  Status makeDense(const RunOptions &options, const Model &model) {
    if (!denseKernels) {
      dense = std::make_unique<DenseBackend>(model.config, options.batch,
                                             options.threads);
      return std::nullopt;
    }
    auto made = EngineBackend::create(denseKernels->package(),
                                      engineOptions(options), model.config,
                                      options.batch);
    if (!made)
      return made.takeError();
    dense = std::move(*made);
    return std::nullopt;
  }

  /// What the compressed run decodes with.
  StateBackend &decoding() {
    return prefill ? static_cast<StateBackend &>(*prefill) : *compressed;
  }

private:
  static ss_engine_options engineOptions(const RunOptions &options) {
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
    return engine;
  }

  static Result<std::unique_ptr<Kernels>>
  make(const RunOptions &options, const std::string &package, StateForm form) {
    return package.empty() ? compileKernels(options, form)
                           : openKernels(package, form);
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
                    const Kernels &kernels, const PhaseTimes &phases,
                    Outputs &outputs) {
  const std::string policy = kernels.policy();
  std::fputs(formatTable(measurement, options, policy).c_str(), stdout);
  if (options.timing)
    std::fputs(formatTiming(measurement, phases).c_str(), stdout);
  if (options.generate)
    std::printf("\n%s\n", printable(measurement.generated).c_str());
  if (outputs.json)
    if (Status status = commit(*outputs.json,
            formatJson(measurement, options, policy, kernels.layers(), phases,
                       SS_VERSION)))
      return status;
  if (outputs.ranks)
    if (Status status = commit(*outputs.ranks,
            formatRanks(measurement.history, options.model + ", " +
                                                 options.text + ", " + policy)))
      return status;
  if (outputs.svg)
    return commit(*outputs.svg,
        drawRanks(measurement.history, options.model + ", " + policy));
  return std::nullopt;
}

Status run(RunOptions options) {
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
  if (Status status =
          settleDenseFallback(*states.compressedKernels, options))
    return status;
  if (Status status = states.makeEngines(options, *model))
    return status;
  phases.engines = lap();
  phases.start = states.start;

  ProgressLine line(options.tokens);
  EngineProbe probe(*states.compressed);
  MeasureOptions how{options.tokens,  options.from,     options.batch,
                     options.threads, options.generate, options.seed,
                     [&](int done) { line.show(done); }};
  Result<Measurement> measurement =
      measure(*model, *text, *states.dense, states.decoding(), probe, how);
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
          writeResults(*measurement, options, *states.compressedKernels, phases,
                       outputs))
    return status;
  std::fputs(stats.c_str(), stdout);
  return tiny_hybrid::finishStandardOutput();
}

/// All variants beside one dense run.
Status compareVariants(std::vector<RunOptions> variants) {
  const RunOptions &common = variants.front();
  Result<Model> model = Model::load(common.model);
  if (!model)
    return model.takeError();
  Result<TokenSource> text =
      TokenSource::open(common.text, common.batch, common.tokens);
  if (!text)
    return text.takeError();
  Outputs outputs;
  if (Status status = outputs.open(common))
    return status;
  States dense;
  if (Status status = dense.compileDense(common))
    return status;
  if (Status status = dense.makeDense(common, *model))
    return status;
  std::vector<States> states(variants.size());
  std::vector<std::unique_ptr<EngineProbe>> probes;
  std::vector<Variant> compared;
  for (size_t i = 0; i < variants.size(); ++i) {
    if (Status status = states[i].compileCompressed(variants[i]))
      return status;
    const Kernels &kernels = *states[i].compressedKernels;
    if (Status status = settleDenseFallback(kernels, variants[i]))
      return status;
    if (Status status = states[i].makeCompressed(variants[i], *model))
      return status;
    probes.push_back(std::make_unique<EngineProbe>(*states[i].compressed));
    compared.push_back({nameVariant(variants[i]), &states[i].decoding(),
                        probes.back().get(), kernels.layers(),
                        variants[i].denseFallback});
  }
  ProgressLine line(common.tokens);
  MeasureOptions how;
  how.tokens = common.tokens;
  how.from = common.from;
  how.batch = common.batch;
  how.threads = common.threads;
  how.seed = common.seed;
  how.progress = [&](int done) { line.show(done); };
  Result<QualityTable> table =
      measureQuality(*model, *text, *dense.dense, compared, how);
  line.clear();
  if (!table)
    return table.takeError();
  table->run = common;
  std::fputs(formatQuality(*table).c_str(), stdout);
  if (outputs.json)
    if (Status status =
            commit(*outputs.json, formatQualityJson(*table, SS_VERSION)))
      return status;
  if (outputs.svg)
    if (Status status = commit(
            *outputs.svg,
            drawQuality(*table, common.model + ", tokens " +
                                    std::to_string(common.from) + " to " +
                                    std::to_string(common.tokens))))
      return status;
  return tiny_hybrid::finishStandardOutput();
}

Status calibrate(const CalibrationOptions &options) {
  Result<Model> model = Model::load(options.model);
  if (!model)
    return model.takeError();
  Result<TokenSource> text =
      TokenSource::open(options.text, 1, options.tokens);
  if (!text)
    return text.takeError();
  sinkstate::Result<OutputFile> file = OutputFile::open(options.output);
  if (!file)
    return Error{file.error()};
  ProgressLine line(options.tokens);
  Result<MeanValues> means =
      measureMeans(*model, *text, options.tokens, options.threads,
                   [&](int done) { line.show(done); });
  line.clear();
  if (!means)
    return means.takeError();
  if (Status status = commit(*file, formatMeans(model->config, *means)))
    return status;
  std::printf("%s: mean values of %zu layers over %d tokens of %s\n",
              options.output.c_str(), means->size(), options.tokens,
              options.text.c_str());
  return tiny_hybrid::finishStandardOutput();
}

/// "ss-run: warning (memory): ...". One call, so that lines of threads do not mix.
void printMessage(void *, ss_log_level level, const char *subject,
                  const char *message) {
  const char *const names[] = {"off", "error", "warning", "info", "debug"};
  std::fprintf(stderr, "ss-run: %s (%s): %s\n", names[level], subject, message);
}

void listen(const RunOptions &options) {
  if (options.log != SS_LOG_OFF)
    ss_log_set(printMessage, nullptr, static_cast<ss_log_level>(options.log));
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
    if (Status status = tiny_hybrid::finishStandardOutput())
      return fail(*status);
    return exitDone;
  }
  if (!line->texts.calibrateSink.empty()) {
    Result<CalibrationOptions> calibration = checkCalibration(line->texts);
    if (!calibration)
      return fail(calibration.takeError());
    if (Status status = calibrate(*calibration))
      return fail(*status);
    return exitDone;
  }
  if (!line->texts.quality.empty()) {
    Result<std::vector<RunOptions>> variants =
        checkVariants(line->texts, compilerHalf());
    if (!variants)
      return fail(variants.takeError());
    listen(variants->front());
    if (Status status = compareVariants(*variants))
      return fail(*status);
    return exitDone;
  }
  Result<RunOptions> options = checkOptions(line->texts, compilerHalf());
  if (!options)
    return fail(options.takeError());
  listen(*options);
  if (Status status = run(*options))
    return fail(*status);
  return exitDone;
}
