//===- Soak.h - Random traffic against a plain reference --------*- C++ -*-===//
//
// One engine serves requests that join, leave, pause and change places at
// random, beside rows of padding, with consolidation on threads of its own that
// lands at fixed tokens. Every request has a second engine to itself, of one
// slot and one thread: outputs and, at its end, states must have the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_SOAK_SOAK_H
#define SINKSTATE_SOAK_SOAK_H

#include <cstdint>
#include <string>

namespace sinkstate::soak {

struct SoakOptions {
  int64_t steps = 1000;
  uint64_t seed = 1;
  int32_t slots = 6;
  /// With a limit on memory: calls are refused, and requests evicted.
  bool pressure = false;
  bool progress = false;
};

struct SoakResult {
  std::string failure; ///< "" or one line
  int64_t tokens = 0, joined = 0, left = 0, evicted = 0, padding = 0;
  int64_t refused = 0, landed = 0, dropped = 0, waits = 0, folds = 0;
  int64_t startBytes = 0, endBytes = 0, peakBytes = 0;
};

SoakResult runSoak(const SoakOptions &options);
std::string describe(const SoakResult &result);

} // namespace sinkstate::soak

#endif
