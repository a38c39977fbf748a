//===- BenchOptions.h - The command line of ss-bench ------------*- C++ -*-===//
#ifndef SS_BENCH_BENCHOPTIONS_H
#define SS_BENCH_BENCHOPTIONS_H

#include "RankProfile.h"
#include "SteadyState.h"

#include <string>
#include <vector>

namespace ss_bench {

enum class DeviceKind { Cpu, Cuda };
enum class RowMemory { Pools, Fixed };
enum class Consolidation { Off, Asynchronous };
const char *nameOf(Consolidation kind);

struct BenchOptions {
  std::string help; ///< what to print instead of anything else, or empty
  bool startOnly = false; ///< "start": nothing but the start-up times
  // What is measured: one of these.
  std::string package; ///< a folder
  std::string preset;  ///< a published model
  std::string model;   ///< a config.json, or the folder that has one
  std::string graph;   ///< a file as ss-import writes it
  // Of a package: its dense forms, or empty.
  std::string densePackage, deferredPackage, denseF32Package;
  // Of what is compiled here. Empty or 0: what ss-import does.
  std::string storage, policy, core;
  int32_t active = 0, buffer = 0;
  bool dense = true; ///< also the dense forms
  bool explain = false; ///< say what the compiler chose, and why

  std::vector<int32_t> batches = {1, 8, 32, 128, 512};
  std::string profile = "nemo4b";
  RankOrder order = RankOrder::Drawn;
  std::vector<DataKind> data = {DataKind::Synthetic};
  std::vector<bool> staggered = {true, false};
  int32_t steps = 1000; ///< timed at least, for the percentiles
  /// Of the engine, as in ss_engine_options: 0: its default; -1: none.
  int32_t compactionStreams = 0;
  RowMemory rows = RowMemory::Pools; ///< CUDA
  /// Of the engines that `serve` measures, one after the other.
  std::vector<Consolidation> consolidation = {Consolidation::Off};
  int32_t serve = 0; ///< steps timed without coming back in between; 0: none
  int32_t copyMib = 1280; ///< of the copy that measures the bandwidth
  DeviceKind device = DeviceKind::Cuda;
  int32_t ordinal = 0; ///< of the GPU
  int32_t threads = 0; ///< on the CPU; 0: one per processor
  /// Count the processor's time instead: of one thread, on a machine that does
  /// other work too.
  bool processorTime = false;
  std::string json, svg, baselines; ///< files; or empty
  bool start = false; ///< also the start-up times

  /// The package, preset, model or graph.
  const std::string &source() const;
};

/// `arguments`: without the program's name.
sinkstate::Result<BenchOptions>
parseOptions(const std::vector<std::string> &arguments);

} // namespace ss_bench

#endif
