//===- Counters.h - What rollback and positions need of a slot --*- C++ -*-===//
#ifndef SINKSTATE_HANDOVER_COUNTERS_H
#define SINKSTATE_HANDOVER_COUNTERS_H

#include "package/Manifest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sinkstate::runtime {

/// Positions that a slot can be given: sums of them and of tokens do not overflow.
constexpr int64_t kMostPosition = int64_t(1) << 62;

/// The position of a slot and the pairs in its buffers, wherever they are kept.
struct SlotCounters {
  int64_t position = 0;
  std::vector<int32_t> pairs; ///< per layer; dense form: 0
};

/// The most tokens that can be forgotten.
int32_t rollbackRoom(const Manifest &manifest, const SlotCounters &counters);

/// Throws SS_INVALID_ARGUMENT, or SS_NOT_IN_BUFFER where a layer has not so many
/// tokens.
void checkRollback(const Manifest &manifest, int32_t slot, int32_t tokens,
                   const SlotCounters &counters);

/// Throws SS_INVALID_ARGUMENT where a slot with these buffers cannot be at
/// `position`.
void checkPosition(const Manifest &manifest, int32_t slot, int64_t position,
                   const SlotCounters &counters);

/// Throws SS_INVALID_ARGUMENT where a slot that is not negative occurs twice.
void checkDistinct(std::span<const int32_t> slots);

} // namespace sinkstate::runtime

#endif
