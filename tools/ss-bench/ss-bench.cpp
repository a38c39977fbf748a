//===- ss-bench.cpp - Times of a model's kernels --------------------------===//
//
//   ss-bench --preset Nemotron-3-Nano-4B --policy relative:0.003
//            --profile nemo4b --batch 1,8,32,128,512 --json FILE --svg FILE
//   ss-bench --model examples/tiny-hybrid --device cpu --buffer 16
//   ss-bench --package FOLDER --dense-package FOLDER --baselines FILE
//   ss-bench --package FOLDER --serve 1000 --consolidation off,async
//   ss-bench start --package FOLDER
//   ss-bench init --package FOLDER        (made with ss-compile --init)
//   ss-bench hand-over --package FOLDER --profile nemo4b --device cpu
//
// Prints Markdown tables: microseconds per layer and step of a step whose
// compactions are amortised over whole periods, and of the decode kernels
// alone, on a GPU replayed as CUDA graphs; bytes, bandwidth, memory, and the
// error of the timed kernels against float64. start: seconds that an engine of
// one slot takes to be made, with an empty kernel cache and with every kernel
// cached. init: the package's init kernel over many states of known spectra,
// beside cuSOLVER's. hand-over: snapshots and forks of one request. The exit
// code is 1 where anything failed or a kernel computed
// something else, 3 where there is no GPU.
//
//===----------------------------------------------------------------------===//

#include "BenchModels.h"
#include "BenchReport.h"
#include "DecodeBench.h"
#include "HandOverMain.h"
#include "Outputs.h"
#include "StartUp.h"
#include "TimePlot.h"

#include "capi/Failure.h"
#include "state/LayerLayout.h"
#include "sinkstate/sinkstate.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <set>

using namespace ss_bench;
using sinkstate::Result;
using sinkstate::Status;

namespace {

int fail(const std::string &message, int code = 1) {
  std::fprintf(stderr, "ss-bench: %s\n", message.c_str());
  return code;
}

void print(const std::string &text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

StartResult measureStart(const BenchModels &models,
                         const BenchOptions &options) {
  const auto package = sinkstate::Package::open(models.folder);
  ss_engine_options engine = sinkstate::engineOptions();
  engine.device =
      options.device == DeviceKind::Cuda ? SS_DEVICE_CUDA : SS_DEVICE_CPU;
  engine.device_ordinal = options.ordinal;
  engine.threads = options.threads;
  const auto times = ss_start_up::measureStart(package.get(), engine);
  if (times.result != SS_OK)
    sinkstate::runtime::fail(times.result, times.error);
  const int32_t layers = sinkstate::Engine(package, engine).layerCount();
  return {layers, times.kernels, models.compileSeconds, times.cold,
          times.cached, times.beside};
}

/// What is measured from period to period.
BenchOptions unconsolidated(BenchOptions options) {
  options.consolidation = {Consolidation::Off};
  return options;
}

/// Ours for every kind of data, beside the dense forms.
BatchResult measureBatch(BenchMachine &machine, const BenchModels &models,
                         const BenchOptions &options,
                         const RankProfile &profile, int32_t batch) {
  BatchResult result;
  result.batch = batch;
  auto bench = [&](const BenchModels::Kernels &package) {
    return package ? std::make_unique<DecodeBench>(machine, options, package,
                                                   profile, batch)
                   : nullptr;
  };
  const bool together = machine.measuresTogether();
  auto ours = bench(models.ours);
  std::vector<DenseForm> forms;
  std::vector<std::unique_ptr<DecodeBench>> beside;
  for (DenseForm form : kDenseForms)
    if (together && models.dense[form]) {
      forms.push_back(form);
      beside.push_back(bench(models.dense[form]));
    }
  for (DataKind kind : options.data)
    for (bool staggered : options.staggered) {
      std::vector<DecodeBench *> all = {ours.get()};
      for (const auto &form : beside)
        all.push_back(form.get());
      result.add(
          measureTogether(machine, all, kind, staggered, options.steps), forms);
    }
  if (together)
    return result;
  // Each on its own: all of them may not fit at the same time.
  ours.reset();
  for (DenseForm form : kDenseForms)
    if (auto alone = bench(models.dense[form]))
      result.dense[form] = measureTogether(
          machine, {alone.get()}, options.data.front(), true, options.steps)[0];
  result.compareAll();
  return result;
}

/// An engine for every kind of consolidation, one after the other.
void serve(BenchMachine &machine, const BenchModels &models,
           const BenchOptions &options, const RankProfile &profile,
           int32_t batch, BenchResult &result) {
  if (options.serve == 0)
    return;
  for (Consolidation kind : options.consolidation) {
    BenchOptions chosen = options;
    chosen.consolidation = {kind};
    DecodeBench bench(machine, chosen, models.ours, profile, batch);
    for (DataKind data : options.data)
      for (bool staggered : options.staggered) {
        result.served.push_back(bench.serve(data, staggered, options.serve));
        result.served.back().consolidation = nameOf(kind);
      }
  }
}

/// "f16"; of layers that differ "fp8 and f16".
std::string storagesOf(const sinkstate::runtime::Manifest &manifest) {
  std::vector<std::string> names;
  for (const auto &layer : manifest.layers) {
    const std::string name = sinkstate::runtime::storageName(layer.storage);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : " and ") + name;
  return text;
}

void describe(BenchResult &result, const BenchModels &models,
              const BenchOptions &options) {
  const auto &layers = models.ours->manifest().layers;
  result.model = models.name;
  result.profile = options.profile;
  result.layers = int32_t(layers.size());
  const auto &first = layers.front();
  result.shape = {first.type, first.heads, first.keyHeads, first.dv, first.dk};
  result.states = ss_tools::readPackageLayers(models.folder);
  result.storage = storagesOf(models.ours->manifest());
  for (DenseForm form : kDenseForms)
    if (models.dense[form])
      result.denseStorage[form] = storagesOf(models.dense[form]->manifest());
}

/// Says where the profile has larger ranks than states may have in factors.
void noteBounds(BenchResult &result, const BenchModels &models,
                const RankProfile &profile) {
  std::set<std::string> seen;
  for (const auto &layer : models.ours->manifest().layers) {
    if (layer.denseForm || !seen.insert(layer.type).second)
      continue;
    const auto breakEven =
        sinkstate::runtime::LayerLayout(layer, 1, true).breakEvenRank;
    const int64_t most = std::min<int64_t>(
        breakEven, layer.rank - layer.buffer - layer.draft);
    const int32_t largest = profile.largest(layer.type);
    if (largest > most)
      result.notes.push_back(
          "The profile has ranks up to " + std::to_string(largest) +
          ", states of " + layer.type + " layers at most " +
          std::to_string(most) +
          " in factors: larger ones have that many, or are dense.");
  }
}

bool allCorrect(const BenchResult &result) {
  for (const BatchResult &batch : result.batches) {
    for (const Measured &m : batch.ours)
      if (!isCorrect(m))
        return false;
    for (DenseForm form : kDenseForms)
      if (batch.dense[form] && !isCorrect(*batch.dense[form]))
        return false;
  }
  return true;
}

int measure(const BenchModels &models, const BenchOptions &options,
            const RankProfile &profile, const Baselines &baselines,
            Outputs &outputs) {
  BenchResult result;
  describe(result, models, options);
  noteBounds(result, models, profile);
  if (options.start)
    result.start = measureStart(models, options);
  const auto machine = options.device == DeviceKind::Cuda
                           ? openCuda(options.ordinal)
                           : openCpu(options.threads, options.processorTime);
  result.device = machine->description();
  result.machine = machine->facts();
  if (options.device == DeviceKind::Cuda)
    result.device += options.rows == RowMemory::Pools
                         ? ", rows in pools"
                         : ", the same number of rows for all states";
  result.copyBandwidth = machine->copyBandwidth(size_t(options.copyMib) << 20);
  print(formatHead(result, baselines) + formatTimeHeader());
  for (int32_t batch : options.batches) {
    result.batches.push_back(
        measureBatch(*machine, models, unconsolidated(options), profile, batch));
    print(formatTimes(result, result.batches.back(), baselines));
    serve(*machine, models, options, profile, batch, result);
  }
  print(formatSizes(result) + formatMemory(result) +
        formatServed(result) + formatStart(result));
  if (const Status failed = outputs.write(
          {formatJson(result, baselines), drawTimes(result, baselines)}))
    return fail(failed->message);
  if (!allCorrect(result))
    return fail("kernels are further from float64 than they may be: see the "
                "last columns of the table");
  return 0;
}

int run(const BenchOptions &options) {
  Result<RankProfile> profile = RankProfile::parse(options.profile);
  if (!profile)
    return fail(profile.error());
  Baselines baselines;
  if (!options.baselines.empty()) {
    Result<Baselines> read = Baselines::read(options.baselines);
    if (!read)
      return fail(read.error());
    baselines = *read;
  }
  Result<Outputs> outputs = Outputs::open({options.json, options.svg});
  if (!outputs)
    return fail(outputs.error());
  auto models = BenchModels::make(options);
  if (!models)
    return fail(models.error());
  if (!options.startOnly)
    return measure(**models, options, *profile, baselines, *outputs);
  BenchResult result;
  describe(result, **models, options);
  result.start = measureStart(**models, options);
  print(formatStart(result));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (const auto wrong = runHandOver(arguments))
      return wrong->empty() ? 0 : fail(*wrong);
    Result<BenchOptions> options = parseOptions(arguments);
    if (!options)
      return fail(options.error());
    if (!options->help.empty()) {
      print(options->help);
      return 0;
    }
    return run(*options);
  } catch (const sinkstate::runtime::Failure &failure) {
    return fail(failure.what(), failure.code() == SS_DEVICE_UNAVAILABLE ? 3 : 1);
  } catch (const std::bad_alloc &) {
    return fail("found too little memory, expected more of it, or a smaller "
                "--batch, --states or --copy-mib");
  } catch (const std::exception &error) {
    return fail(error.what());
  }
}
