//===- Rollback.cpp - Forgetting the newest tokens ------------------------===//
//
// Between compactions nothing but the buffers changes, and every pair carries
// its own running log-decay: forgetting pairs is a smaller count.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "engine/Engine.h"

#include <algorithm>
#include <limits>

namespace sinkstate::runtime {

/// Throws while some layers of a step are decoded and its end has not come.
void Engine::checkBetweenSteps(int32_t slot) const {
  checkSlot(slot);
  if (slots[size_t(slot)].stepTokens != Slot::kNone)
    fail(SS_INVALID_ARGUMENT, "slot ", slot,
         " is within a step, expected this call after ss_end_step");
}

int64_t Engine::position(int32_t slot) const {
  checkSlot(slot);
  return slots[size_t(slot)].position;
}

int32_t Engine::rollbackRoom(int32_t slot) const {
  checkSlot(slot);
  int64_t room = std::min<int64_t>(slots[size_t(slot)].position,
                                   std::numeric_limits<int32_t>::max());
  for (const LayerState &layer : layers)
    room = std::min<int64_t>(
        room, layer.manifest().denseForm ? 0 : layer.count[slot]);
  return int32_t(room);
}

void Engine::checkRollback(int32_t slot, int32_t tokens) const {
  checkBetweenSteps(slot);
  if (tokens < 0)
    fail(SS_INVALID_ARGUMENT, tokens, " tokens to forget of slot ", slot,
         ", expected 0 or more");
  const int64_t position = slots[size_t(slot)].position;
  if (tokens > position)
    fail(SS_INVALID_ARGUMENT, tokens, " tokens to forget of slot ", slot,
         ", expected at most the ", position, " it has decoded");
  for (const LayerState &layer : layers) {
    const LayerManifest &manifest = layer.manifest();
    if (manifest.denseForm && tokens > 0)
      fail(SS_NOT_IN_BUFFER, "layer '", manifest.name,
           "' has the dense form, which keeps no tokens to forget: give it "
           "the factored form with draft tokens");
    if (!manifest.denseForm && tokens > layer.count[slot])
      fail(SS_NOT_IN_BUFFER, tokens, " tokens to forget of slot ", slot,
           ", expected at most ", layer.count[slot],
           ", what layer '", manifest.name,
           "' has not compacted: declare so many draft tokens in the graph");
  }
}

void Engine::rollback(std::span<const int32_t> batch,
                      std::span<const int32_t> tokens, Stream) {
  ++batches;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] < 0)
      continue;
    checkRollback(batch[i], tokens[i]);
    Slot &owner = slots[size_t(batch[i])];
    if (owner.lastBatch == batches)
      fail(SS_INVALID_ARGUMENT, "slot ", batch[i],
           " appears twice in the batch, expected every slot once");
    owner.lastBatch = batches;
  }
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
