//===- ss-bench.cpp - Times of a package's kernels on a GPU ---------------===//
//
//   ss-bench --package FOLDER --dense-package FOLDER --profile nemo4b
//            --batch 1,8,32,128,512 --baselines FILE --json FILE --svg FILE
//   ss-bench start --package FOLDER [--device 0]
//   ss-bench init --package FOLDER        (made with ss-compile --init)
//   ss-bench hand-over --package FOLDER --profile nemo4b --device cpu
//
// Prints Markdown tables: microseconds per layer and step of a step whose
// compactions are amortised over whole periods, replayed as CUDA graphs, and of
// the decode kernels alone; bytes, bandwidth, memory, and the error of the timed
// kernels against float64. start: seconds that an engine of one slot takes to be
// made, with an empty kernel cache and with every kernel cached. init: the package's
// init kernel over many states of known spectra, beside cuSOLVER's. hand-over:
// snapshots and forks of one request. The exit code is
// 1 where anything failed or a kernel computed something else, 3 where there is
// no GPU.
//
//===----------------------------------------------------------------------===//

#include "BenchOptions.h"
#include "BenchReport.h"
#include "DecodeBench.h"
#include "HandOverMain.h"
#include "StartUp.h"
#include "TimePlot.h"

#include "capi/Failure.h"
#include "sinkstate/sinkstate.hpp"

#include <cstdio>
#include <fstream>

using namespace ss_bench;
using sinkstate::Result;

namespace {

int fail(const std::string &message, int code = 1) {
  std::fprintf(stderr, "ss-bench: %s\n", message.c_str());
  return code;
}

void print(const std::string &text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

StartResult measureStart(const BenchOptions &options) {
  const auto package = sinkstate::Package::open(options.package);
  ss_engine_options engine = sinkstate::engineOptions();
  engine.device = SS_DEVICE_CUDA;
  engine.device_ordinal = options.device;
  const auto times = ss_start_up::measureStart(package.get(), engine);
  if (times.result != SS_OK)
    sinkstate::runtime::fail(times.result, times.error);
  const int32_t layers = sinkstate::Engine(package, engine).layerCount();
  return {layers, times.kernels, times.cold, times.cached};
}

BatchResult measureBatch(CudaSession &session, const BenchOptions &options,
                         const RankProfile &profile, int32_t batch) {
  BatchResult result;
  result.batch = batch;
  {
    DecodeBench bench(session, options, options.package, profile, batch);
    for (DataKind kind : options.data)
      for (bool staggered : options.staggered)
        result.ours.push_back(bench.run(kind, staggered));
  }
  if (!options.densePackage.empty()) {
    DecodeBench bench(session, options, options.densePackage, profile, batch);
    result.dense = bench.run(options.data.front(), true);
  }
  return result;
}

void describe(BenchResult &result, const BenchOptions &options) {
  const auto package = sinkstate::runtime::Package::open(options.package);
  const auto &layers = package->manifest().layers;
  result.package = options.package;
  result.densePackage = options.densePackage;
  result.profile = options.profile;
  result.layers = int32_t(layers.size());
  const auto &first = layers.front();
  result.shape = {first.type, first.heads, first.keyHeads, first.dv, first.dk};
}

/// Empty where it is written.
std::string write(const std::string &file, const std::string &content) {
  if (file.empty())
    return "";
  std::ofstream stream(file, std::ios::trunc);
  stream << content;
  stream.close();
  return stream ? "" : file + ": cannot be written, expected a path to a file";
}

bool allCorrect(const BenchResult &result) {
  for (const BatchResult &batch : result.batches) {
    for (const Measured &m : batch.ours)
      if (!isCorrect(m))
        return false;
    if (batch.dense && !isCorrect(*batch.dense))
      return false;
  }
  return true;
}

int measure(const BenchOptions &options, const RankProfile &profile,
            const Baselines &baselines) {
  BenchResult result;
  describe(result, options);
  if (options.start)
    result.start = measureStart(options);
  CudaSession session(options.device);
  result.device = session.description();
  result.copyBandwidth = session.copyBandwidth(size_t(options.copyMib) << 20);
  print(formatHead(result, baselines) + formatTimeHeader());
  for (int32_t batch : options.batches) {
    result.batches.push_back(measureBatch(session, options, profile, batch));
    print(formatTimes(result, result.batches.back(), baselines));
  }
  print(formatSizes(result) + formatStart(result));
  for (const std::string &problem :
       {write(options.json, formatJson(result, baselines)),
        write(options.svg, drawTimes(result, baselines))})
    if (!problem.empty())
      return fail(problem);
  if (!allCorrect(result))
    return fail("kernels are further from float64 than they may be: see the "
                "last columns of the table");
  return 0;
}

int run(const BenchOptions &options) {
  if (options.startOnly) {
    BenchResult result;
    describe(result, options);
    result.start = measureStart(options);
    print(formatStart(result));
    return 0;
  }
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
  return measure(options, *profile, baselines);
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
    return run(*options);
  } catch (const sinkstate::runtime::Failure &failure) {
    return fail(failure.what(), failure.code() == SS_DEVICE_UNAVAILABLE ? 3 : 1);
  } catch (const std::exception &error) {
    return fail(error.what());
  }
}
