//===- Tokens.cpp - Several tokens in one call ----------------------------===//
//
// A call of several tokens is so many launches of the decode kernel, each over
// the rows that have such a token. Some layers compact before their tokens, those
// with draft tokens late: what is due waits for the first token of a later call,
// which says that the tokens before it stay (docs/interfaces.md section 5).
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/device/schedule.cuh"
#include "engine/Engine.h"
#include "handover/TokenCursor.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

constexpr int32_t kPadding = -1;

/// The slots of the rows that have this token; the others are padding.
std::vector<int32_t> slotsWithToken(const TokenCursor &cursor,
                                    std::span<const int32_t> batch,
                                    int32_t token) {
  std::vector<int32_t> slots(batch.begin(), batch.end());
  for (size_t row = 0; row < slots.size(); ++row)
    if (token >= cursor.tokensOf(int32_t(row)))
      slots[row] = kPadding;
  return slots;
}

/// Of those, the slots whose tokens before this one nobody can forget any more:
/// those of earlier calls, and all but the newest draft + 1 of this one.
std::vector<int32_t> settledSlots(const TokenCursor &cursor,
                                  std::span<const int32_t> slots,
                                  int32_t token, int32_t draft) {
  std::vector<int32_t> settled;
  for (size_t row = 0; row < slots.size(); ++row)
    if (token == 0 || token < cursor.tokensOf(int32_t(row)) - draft)
      settled.push_back(slots[row]);
  return settled;
}

} // namespace

/// Every layer of a step takes the same tokens.
void Engine::checkStepTokens(const LayerState &layer,
                             std::span<const int32_t> batch,
                             std::span<const int32_t> tokens) const {
  for (size_t row = 0; row < batch.size(); ++row) {
    if (batch[row] < 0)
      continue;
    const Slot &owner = slots[size_t(batch[row])];
    if (owner.stepTokens != Slot::kNone && owner.stepTokens != tokens[row])
      fail(SS_INVALID_ARGUMENT, "layer '", layer.manifest().name, "' takes ",
           tokens[row], " tokens of slot ", batch[row], ", expected ",
           owner.stepTokens,
           " as in the layers before: call ss_end_step between steps");
  }
}

void Engine::noteStepTokens(std::span<const int32_t> batch,
                            std::span<const int32_t> tokens) {
  for (size_t row = 0; row < batch.size(); ++row)
    if (batch[row] >= 0)
      slots[size_t(batch[row])].stepTokens = tokens[row];
}

/// Before token `token` of a step, in layers that compact there: what became due
/// with the tokens before.
void Engine::compactBefore(LayerState &layer, std::span<const int32_t> batch,
                             int32_t token) {
  const LayerManifest &manifest = layer.manifest();
  if (!manifest.compactsBefore)
    return;
  std::vector<int32_t> ready;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    ss::ScheduleLayer rule = {};
    rule.buffer = manifest.buffer;
    rule.phase = manifest.phase;
    if (ss::is_due_before(rule, slots[size_t(slot)].position + token,
                          layer.count[slot]))
      ready.push_back(slot);
  }
  if (ready.empty())
    return;
  landResults(layer, {}, ready);
  DueWork due;
  for (int32_t slot : ready)
    addDue(layer, slot, 0, due);
  reserveRows(layer, due, 0);
  compact(layer, due);
}

void Engine::decodeTokens(int32_t index, const ss_decode_args &given,
                          const ss_token_args &tokens) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  checkDecode(layer, given);
  const TokenCursor cursor(layer.manifest(), given, tokens);
  const std::span<const int32_t> batch(given.slots, size_t(given.batch));
  std::vector<int32_t> counts;
  for (int32_t row = 0; row < given.batch; ++row)
    counts.push_back(cursor.tokensOf(row));
  checkStepTokens(layer, batch, counts);
  for (int32_t token = 0; token < tokens.tokens; ++token) {
    ss_decode_args args = cursor.at(token);
    const std::vector<int32_t> slots = slotsWithToken(cursor, batch, token);
    args.slots = slots.data();
    compactBefore(
        layer, settledSlots(cursor, slots, token, layer.manifest().draft),
        token);
    decodeToken(layer, args, token);
    if (token == 0)
      noteStepTokens(batch, counts);
  }
}

} // namespace sinkstate::runtime
