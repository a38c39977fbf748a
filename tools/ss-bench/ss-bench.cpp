//===- ss-bench.cpp - Times of a package's kernels on a GPU ---------------===//
//
//   ss-bench decode --package FOLDER [--batch 1,8,32] [--profile nemo4b]
//            [--order drawn] [--repetitions 30] [--device 0]
//   ss-bench start --package FOLDER [--device 0]
//
// Prints a Markdown table. decode: microseconds per layer and step of a step
// whose compactions are amortised over whole periods, replayed as a CUDA graph,
// and of the decode kernels alone. start: seconds that an engine of one slot
// takes to be made, with an empty kernel cache and with every kernel cached.
//
//===----------------------------------------------------------------------===//

#include "DecodeBench.h"
#include "StartUp.h"

#include "capi/Failure.h"
#include "sinkstate/sinkstate.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

using namespace ss_bench;
using sinkstate::Error;
using sinkstate::Result;

namespace {

const char *const kUsage =
    "expected: ss-bench decode --package FOLDER [--batch N,N,...] [--profile "
    "nemo4b|qwen9b|uniform:R] [--order drawn|descending|ascending] "
    "[--repetitions N] [--device N], or ss-bench "
    "start --package FOLDER [--device N]";

int fail(const std::string &message) {
  std::fprintf(stderr, "ss-bench: %s\n", message.c_str());
  return 1;
}

/// "1,8,32"; nothing if a part is not a number of at least `least`.
std::optional<std::vector<int32_t>> parseNumbers(const std::string &text,
                                                 int32_t least) {
  std::vector<int32_t> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int32_t number = 0;
    auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc() || number < least)
      return std::nullopt;
    numbers.push_back(number);
    if (parsed.ptr == end)
      return numbers;
    if (*parsed.ptr != ',')
      return std::nullopt;
    at = parsed.ptr + 1;
  }
}

Result<BenchOptions> parseOptions(int argc, char **argv) {
  BenchOptions options;
  const bool start = argc >= 2 && std::strcmp(argv[1], "start") == 0;
  if (!start && (argc < 2 || std::strcmp(argv[1], "decode") != 0))
    return Error{kUsage};
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc)
      return Error{"option " + name + " has no value; " + kUsage};
    const std::string value = argv[i + 1];
    auto numbers = parseNumbers(value, name == "--device" ? 0 : 1);
    if (name == "--package")
      options.package = value;
    else if (start && name != "--device")
      return Error{"found '" + name + " " + value + "'; " + kUsage};
    else if (name == "--profile")
      options.profile = value;
    else if (name == "--order") {
      Result<RankOrder> order = parseRankOrder(value);
      if (!order)
        return order.takeError();
      options.order = *order;
    } else if (name == "--batch" && numbers)
      options.batches = *numbers;
    else if (name == "--repetitions" && numbers && numbers->size() == 1)
      options.repetitions = numbers->front();
    else if (name == "--device" && numbers && numbers->size() == 1)
      options.device = numbers->front();
    else
      return Error{"found '" + name + " " + value + "'; " + kUsage};
  }
  if (options.package.empty())
    return Error{kUsage};
  return options;
}

void printHeader(const BenchOptions &options) {
  std::printf("`%s`, ranks `%s`, medians of %d\n\n", options.package.c_str(),
              options.profile.c_str(), options.repetitions);
  std::printf("| batch | us per layer and step | decode alone | compaction's "
              "share | P99 / P50 of a step | decode MB per layer | decode TB/s "
              "| mean rank | live / dense bytes |\n"
              "|---|---|---|---|---|---|---|---|---|\n");
}

void print(const Measured &m) {
  std::printf("| %d | %.2f | %.2f | %.1f %% | %.3f | %.2f | %.2f | %.1f | %.3f "
              "|\n",
              m.batch, m.step, m.decodeOnly,
              100 * (m.step - m.decodeOnly) / m.step, m.p99OverMedian,
              m.decodeBytes / 1e6, m.decodeBytes / m.decodeOnly / 1e6,
              m.meanRank, m.liveBytes / m.denseBytes);
  std::fflush(stdout);
}

/// Layers, kernels and seconds of an engine's start.
int printStart(const BenchOptions &options) {
  const auto package = sinkstate::Package::open(options.package);
  ss_engine_options engine = sinkstate::engineOptions();
  engine.device = SS_DEVICE_CUDA;
  engine.device_ordinal = options.device;
  const auto times = ss_start_up::measureStart(package.get(), engine);
  if (times.result != SS_OK)
    return fail(times.error);
  const int32_t layers = sinkstate::Engine(package, engine).layerCount();
  std::printf("| package | layers | kernels compiled | cold s | cached s |\n"
              "|---|---|---|---|---|\n| %s | %d | %d | %.3f | %.3f |\n",
              options.package.c_str(), layers, times.kernels, times.cold,
              times.cached);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Result<BenchOptions> options = parseOptions(argc, argv);
  if (!options)
    return fail(options.error());
  Result<RankProfile> profile = RankProfile::parse(options->profile);
  if (!profile)
    return fail(profile.error());
  try {
    if (std::strcmp(argv[1], "start") == 0)
      return printStart(*options);
    printHeader(*options);
    for (int32_t batch : options->batches) {
      DecodeBench bench(*options, *profile, batch);
      print(bench.run());
    }
  } catch (const std::exception &error) {
    return fail(error.what());
  }
  return 0;
}
