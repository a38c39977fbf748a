//===- StartUp.h - How long an engine takes to start ------------*- C++ -*-===//
//
// For the tools that report start-up times. Sees the C API alone.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TOOLS_START_UP_STARTUP_H
#define SINKSTATE_TOOLS_START_UP_STARTUP_H

#include "sinkstate/sinkstate.h"

#include <string>

namespace ss_start_up {

/// An empty kernel cache in a folder of its own, which engines use while it
/// lives: SS_CACHE_DIR and SS_CACHE are set for this process, and put back.
/// Throws std::runtime_error where no folder can be made.
class PrivateCache {
public:
  PrivateCache();
  ~PrivateCache();
  PrivateCache(const PrivateCache &) = delete;
  PrivateCache &operator=(const PrivateCache &) = delete;

  /// Kernels that it keeps now.
  int kernels() const;

private:
  struct Saved {
    std::string name, value;
    bool wasSet;
  };
  void set(const char *name, const std::string &value);

  std::string folder;
  Saved saved[2];
  int savedCount = 0;
};

/// Seconds that ss_engine_create takes. The first two include making the GPU's
/// context, which a process that computes on the GPU has already.
struct StartTimes {
  double cold = 0;   ///< nothing is cached
  double cached = 0; ///< right after that, every kernel is
  double beside = 0; ///< every kernel is cached, and another engine lives
  int kernels = 0;   ///< compiled by the cold start
  ss_result result = SS_OK;
  std::string error; ///< one line where `result` is not SS_OK
};

/// Makes three engines and destroys them, with a private cache. Never throws.
StartTimes measureStart(const ss_package *package,
                        const ss_engine_options &options);

} // namespace ss_start_up

#endif // SINKSTATE_TOOLS_START_UP_STARTUP_H
