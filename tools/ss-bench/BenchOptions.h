//===- BenchOptions.h - The command line of ss-bench ------------*- C++ -*-===//
#ifndef SS_BENCH_BENCHOPTIONS_H
#define SS_BENCH_BENCHOPTIONS_H

#include "RankProfile.h"
#include "SteadyState.h"

#include <string>
#include <vector>

namespace ss_bench {

struct BenchOptions {
  bool startOnly = false; ///< "start": nothing but the start-up times
  std::string package;      ///< a folder
  std::string densePackage; ///< of the same graph with dense states; or empty
  std::vector<int32_t> batches = {1, 8, 32, 128, 512};
  std::string profile = "nemo4b";
  RankOrder order = RankOrder::Drawn;
  std::vector<DataKind> data = {DataKind::Synthetic};
  std::vector<bool> staggered = {true, false};
  int32_t steps = 1000; ///< timed at least, for the percentiles
  /// Of the engine, as in ss_engine_options: 0: its default; -1: none.
  int32_t compactionStreams = 0;
  int32_t copyMib = 1280; ///< of the copy that measures the bandwidth
  int32_t device = 0;
  std::string json, svg, baselines; ///< files; or empty
  bool start = false; ///< also the start-up times
};

extern const char *const kUsage;

/// `arguments`: without the program's name.
sinkstate::Result<BenchOptions>
parseOptions(const std::vector<std::string> &arguments);

} // namespace ss_bench

#endif
