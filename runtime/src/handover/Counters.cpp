//===- Counters.cpp - What rollback and positions need of a slot ----------===//

#include "handover/Counters.h"

#include "capi/Failure.h"

#include <algorithm>
#include <limits>

namespace sinkstate::runtime {

int32_t rollbackRoom(const Manifest &manifest, const SlotCounters &counters) {
  int64_t room = std::min<int64_t>(counters.position,
                                   std::numeric_limits<int32_t>::max());
  for (size_t i = 0; i < manifest.layers.size(); ++i)
    room = std::min<int64_t>(
        room, manifest.layers[i].denseForm ? 0 : counters.pairs[i]);
  return int32_t(room);
}

void checkRollback(const Manifest &manifest, int32_t slot, int32_t tokens,
                   const SlotCounters &counters) {
  if (tokens < 0)
    fail(SS_INVALID_ARGUMENT, tokens, " tokens to forget of slot ", slot,
         ", expected 0 or more");
  if (tokens > counters.position)
    fail(SS_INVALID_ARGUMENT, tokens, " tokens to forget of slot ", slot,
         ", expected at most the ", counters.position, " it has decoded");
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    if (layer.denseForm && tokens > 0)
      fail(SS_NOT_IN_BUFFER, "layer '", layer.name,
           "' has the dense form, which keeps no tokens to forget: give it "
           "the factored form with draft tokens");
    if (!layer.denseForm && tokens > counters.pairs[i])
      fail(SS_NOT_IN_BUFFER, tokens, " tokens to forget of slot ", slot,
           ", expected at most ", counters.pairs[i], ", what layer '",
           layer.name,
           "' has not compacted: declare so many draft tokens in the graph");
  }
}

void checkPosition(const Manifest &manifest, int32_t slot, int64_t position,
                   const SlotCounters &counters) {
  for (size_t i = 0; i < manifest.layers.size(); ++i)
    if (!manifest.layers[i].denseForm && position < counters.pairs[i])
      fail(SS_INVALID_ARGUMENT, "position ", position, " of slot ", slot,
           ", expected at least ", counters.pairs[i],
           ", the pairs in the buffer of layer '", manifest.layers[i].name,
           "'");
  if (position < 0)
    fail(SS_INVALID_ARGUMENT, "position ", position, " of slot ", slot,
         ", expected 0 or more");
  if (position > kMostPosition)
    fail(SS_INVALID_ARGUMENT, "position ", position, " of slot ", slot,
         ", expected at most 2^62");
}

void checkDistinct(std::span<const int32_t> slots) {
  std::vector<int32_t> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end());
  const auto named = std::lower_bound(sorted.begin(), sorted.end(), 0);
  const auto twice = std::adjacent_find(named, sorted.end());
  if (twice != sorted.end())
    fail(SS_INVALID_ARGUMENT, "slot ", *twice,
         " appears twice in the batch, expected every slot once");
}

} // namespace sinkstate::runtime
