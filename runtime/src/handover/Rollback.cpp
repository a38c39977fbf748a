//===- Rollback.cpp - Forgetting the newest tokens ------------------------===//
//
// Between compactions nothing but the buffers changes, and every pair carries
// its own running log-decay: forgetting pairs is a smaller count.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "engine/Engine.h"

#include <algorithm>

namespace sinkstate::runtime {

/// Throws while some layers of a step are decoded and its end has not come.
void Engine::checkBetweenSteps(int32_t slot) const {
  checkSlot(slot);
  if (slots[size_t(slot)].stepTokens != Slot::kNone)
    fail(SS_INVALID_ARGUMENT, "slot ", slot,
         " is within a step, expected this call after ss_end_step or "
         "ss_cancel_step");
  checkNotLeft(slot);
}

SlotCounters Engine::countersOf(int32_t slot) const {
  checkSlot(slot);
  SlotCounters counters{slots[size_t(slot)].position, {}};
  for (const LayerState &layer : layers)
    counters.pairs.push_back(layer.manifest().denseForm ? 0
                                                        : layer.count[slot]);
  return counters;
}

int64_t Engine::position(int32_t slot) const {
  checkSlot(slot);
  return slots[size_t(slot)].position;
}

int32_t Engine::rollbackRoom(int32_t slot) const {
  return runtime::rollbackRoom(package->manifest(), countersOf(slot));
}

void Engine::rollback(std::span<const int32_t> batch,
                      std::span<const int32_t> tokens, Stream) {
  for (size_t i = 0; i < batch.size(); ++i)
    if (batch[i] >= 0) {
      checkBetweenSteps(batch[i]);
      checkRollback(package->manifest(), batch[i], tokens[i],
                    countersOf(batch[i]));
    }
  checkDistinct(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] < 0)
      continue;
    Slot &owner = slots[size_t(batch[i])];
    owner.position -= tokens[i];
    for (LayerState &layer : layers) {
      if (!layer.manifest().denseForm)
        layer.count[batch[i]] -= tokens[i];
      layer.decodedTokens[size_t(batch[i])] =
          std::min(layer.decodedTokens[size_t(batch[i])], owner.position);
    }
  }
}

} // namespace sinkstate::runtime
