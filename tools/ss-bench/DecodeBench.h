//===- DecodeBench.h - Time of decode steps on a GPU ------------*- C++ -*-===//
#ifndef SS_BENCH_DECODEBENCH_H
#define SS_BENCH_DECODEBENCH_H

#include "RankProfile.h"

#include "cuda/CudaEngine.h"
#include "sinkstate/sinkstate.h"

#include <memory>
#include <string>
#include <vector>

namespace ss_bench {

struct BenchOptions {
  std::string package;
  std::vector<int32_t> batches = {1, 8, 32, 128, 512};
  std::string profile = "nemo4b";
  RankOrder order = RankOrder::Drawn;
  int32_t repetitions = 30;
  int32_t device = 0;
};

/// Of one batch size. Times are microseconds per layer and step, medians.
struct Measured {
  int32_t batch = 0;
  double step = 0;       ///< decode and compaction over whole periods
  double decodeOnly = 0; ///< the decode kernels alone, half a buffer full
  double p99OverMedian = 0;
  double meanRank = 0;
  double decodeBytes = 0; ///< that a decode must move, per layer
  double liveBytes = 0, denseBytes = 0;
};

/// An engine at one batch size whose states have ranks of a profile. Ranks
/// return to the profile after every period of compactions, outside the timing.
class DecodeBench {
public:
  DecodeBench(const BenchOptions &options, const RankProfile &profile,
              int32_t batch);
  ~DecodeBench();
  Measured run();

private:
  using Engine = sinkstate::runtime::cuda::CudaEngine;
  struct LayerArrays {
    float *q, *k, *v, *gate, *beta, *y, *aLog, *dtBias;
  };

  float *randomArray(int64_t count, float mean, float deviation);
  void makeInputs();
  void fillStates(const RankProfile &profile);
  void restoreRanks();
  void setCounts(int32_t count);
  ss_decode_args argsOf(size_t layer) const;
  void enqueueStep();
  void enqueueDecode();
  /// Captures what `enqueue` queues.
  sinkstate::runtime::cuda::CUgraphExec capture(void (DecodeBench::*enqueue)());
  /// Milliseconds of `launches` replays, once.
  double replay(sinkstate::runtime::cuda::CUgraphExec graph, int launches);
  double bytesOfDecode(int32_t layer) const;

  BenchOptions options;
  int32_t batch;
  std::shared_ptr<const sinkstate::runtime::Package> package;
  std::shared_ptr<const sinkstate::runtime::cuda::Driver> driver;
  std::shared_ptr<const sinkstate::runtime::cuda::Context> context;
  std::unique_ptr<sinkstate::runtime::cuda::CurrentContext> current;
  std::unique_ptr<Engine> engine;
  sinkstate::runtime::cuda::CUstream stream = nullptr;
  sinkstate::runtime::cuda::CUevent begin = nullptr, end = nullptr;
  std::vector<LayerArrays> arrays;
  std::vector<std::vector<int32_t>> ranks; ///< by layer
  int32_t *slots = nullptr;
  std::mt19937_64 random{1};
};

} // namespace ss_bench

#endif
