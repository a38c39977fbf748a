//===- ReturnAttempts.h - When dense states try factors again ---*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_RETURNATTEMPTS_H
#define SINKSTATE_ENGINE_RETURNATTEMPTS_H

#include <cstdint>

namespace sinkstate::runtime {

/// Whether a dense state's fold of this number, from 1, tries to store it in
/// factors again: the 16th, the 32nd, and so on, twice as many each time, then
/// every 1024th. What did not become less is less likely to. The GPU has the same
/// (tries_factors in cuda/device/row_tables.cuh).
constexpr bool triesFactors(uint32_t folds) {
  constexpr uint32_t kFirst = 16, kMostBetween = 1024;
  return folds >= kFirst &&
         ((folds & (folds - 1)) == 0 || folds % kMostBetween == 0);
}

} // namespace sinkstate::runtime

#endif
