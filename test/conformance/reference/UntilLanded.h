//===- UntilLanded.h - Decoding until results have landed -------*- C++ -*-===//
#ifndef SINKSTATE_REFERENCE_UNTILLANDED_H
#define SINKSTATE_REFERENCE_UNTILLANDED_H

#include "WaitUntil.h"

#include "sinkstate/sinkstate.hpp"

namespace sinkstate::test {

/// Decodes, and lets the threads of consolidation finish after every step, until a
/// result has landed and, with `removes`, has removed components. How many steps
/// that takes depends on how long SVDs take beside steps: asynchronous jobs are not
/// begun where their results would be late.
template <typename Step>
void decodeUntilLanded(Engine &engine, const Step &step, bool removes = false) {
  waitUntil("a result of consolidation to land", [&] {
    const ss_statistics s = engine.statistics();
    if (s.consolidations_landed > 0 && (!removes || s.components_removed > 0))
      return true;
    step();
    engine.synchronize();
    return false;
  });
}

} // namespace sinkstate::test

#endif
