//===- HandOverOptions.h - The command lines of init and hand-over -*- C++ -*-===//
#ifndef SS_BENCH_HANDOVEROPTIONS_H
#define SS_BENCH_HANDOVEROPTIONS_H

#include "result/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ss_bench {

/// ss-bench init: the package's init kernel.
struct InitOptions {
  std::string help;    ///< what to print instead of anything else, or empty
  std::string package; ///< a folder
  std::string beside;  ///< another one to time in the same run, or empty
  std::string profile = "nemo4b";
  float eps = 3e-3f;
  int32_t states = 0;         ///< 0: 258048 on a GPU, 1024 on a CPU
  int32_t chunk = 0;          ///< states at a time; 0: as many as fit
  int32_t solverStates = 8192; ///< of those for cuSOLVER; 0: none
  int32_t repeats = 5;
  int32_t copyMib = 1280;
  bool cuda = true;
  int32_t device = 0;  ///< with `cuda`
  int32_t threads = 0; ///< on the CPU; 0: one per processor
  std::string json; ///< a file, or empty
};
sinkstate::Result<InitOptions>
parseInitOptions(const std::vector<std::string> &arguments);

/// ss-bench hand-over: snapshots and forks of one request.
struct HandOverOptions {
  std::string help;    ///< what to print instead of anything else, or empty
  std::string package; ///< a folder
  std::string profile = "nemo4b";
  bool cuda = false;
  int32_t device = 0; ///< with `cuda`
  int32_t repeats = 25;
  std::string json; ///< a file, or empty
};
sinkstate::Result<HandOverOptions>
parseHandOverOptions(const std::vector<std::string> &arguments);

} // namespace ss_bench

#endif
