//===- Tokens.cpp - Several tokens in one call ----------------------------===//
//
// A call of several tokens is so many launches of the decode kernel, each over
// the rows that have such a token. Layers that declare draft tokens compact
// late: what is due waits for the first token of a later call, which says that
// the tokens before it stay (docs/interfaces.md section 5).
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "engine/Engine.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

/// The arrays of one token after the other.
class TokenCursor {
public:
  TokenCursor(const LayerManifest &layer, const ss_decode_args &args,
              const ss_token_args &tokens)
      : first(args), given(tokens), rowSlots(size_t(args.batch)) {
    const int64_t key = int64_t(layer.keyHeads) * layer.dk;
    const int64_t value = int64_t(layer.heads) * layer.dv;
    const int64_t decay = layer.channelDecay ? layer.dk : 1;
    pack("q", first.q.stride, given.q_token_stride, key);
    pack("k", first.k.stride, given.k_token_stride, key);
    pack("v", first.v.stride, given.v_token_stride, value);
    pack("gate", first.gate.stride, given.gate_token_stride,
         layer.heads * decay);
    if (layer.hasBeta)
      pack("beta", first.beta.stride, given.beta_token_stride, layer.heads);
    pack("y", first.y_stride, given.y_token_stride, value);
  }

  /// The arguments of token `token`; valid until the next call.
  const ss_decode_args &at(int32_t token) {
    current = first;
    for (auto [array, stride] :
         {std::pair(&current.q, given.q_token_stride),
          {&current.k, given.k_token_stride},
          {&current.v, given.v_token_stride},
          {&current.gate, given.gate_token_stride},
          {&current.beta, given.beta_token_stride}})
      if (array->data)
        array->data += token * stride;
    current.y += token * given.y_token_stride;
    for (int32_t row = 0; row < first.batch; ++row)
      rowSlots[size_t(row)] =
          token < tokensOf(row) ? first.slots[row] : kPadding;
    current.slots = rowSlots.data();
    return current;
  }

  /// The rows whose tokens before `token` nobody can forget any more: those of
  /// earlier calls, and all but the newest draft + 1 of this one.
  std::vector<int32_t> settledRows(int32_t token, int32_t draft) const {
    std::vector<int32_t> settled;
    for (int32_t row = 0; row < first.batch; ++row)
      if (token < tokensOf(row) &&
          (token == 0 || token < tokensOf(row) - draft))
        settled.push_back(first.slots[row]);
    return settled;
  }

private:
  static constexpr int32_t kPadding = -1;

  int32_t tokensOf(int32_t row) const {
    return given.row_tokens ? given.row_tokens[row] : given.tokens;
  }

  void pack(const char *name, int64_t &rowStride, int64_t &tokenStride,
            int64_t width) {
    if (tokenStride == 0)
      tokenStride = width;
    if (tokenStride < width)
      fail(SS_INVALID_ARGUMENT, "tokens.", name, "_token_stride is ",
           tokenStride, ", expected 0 (packed) or at least ", width,
           " floats");
    if (rowStride == 0)
      rowStride = given.tokens * tokenStride;
  }

  ss_decode_args first, current;
  ss_token_args given;
  std::vector<int32_t> rowSlots;
};

void checkTokenArguments(const ss_decode_args &args,
                         const ss_token_args &tokens) {
  if (tokens.tokens < 1)
    fail(SS_INVALID_ARGUMENT, "tokens.tokens is ", tokens.tokens,
         ", expected at least 1");
  for (int32_t row = 0; tokens.row_tokens && row < args.batch; ++row)
    if (tokens.row_tokens[row] < 0 || tokens.row_tokens[row] > tokens.tokens)
      fail(SS_INVALID_ARGUMENT, "tokens.row_tokens[", row, "] is ",
           tokens.row_tokens[row], ", expected 0 to ", tokens.tokens);
}

/// Whether a multiple of `period`, moved by `phase`, lies in (from, to].
bool passesPhase(int64_t from, int64_t to, int64_t period, int64_t phase) {
  auto passed = [&](int64_t position) { // rounds towards minus infinity
    return (position - phase + period) / period;
  };
  return passed(to) > passed(from);
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

/// Before token `token` of a step: compacts what was due in the tokens before.
void Engine::compactDeferred(LayerState &layer, std::span<const int32_t> batch,
                             int32_t token) {
  const LayerManifest &manifest = layer.manifest();
  if (manifest.denseForm || manifest.draft == 0)
    return;
  std::vector<int32_t> ready;
  for (int32_t slot : batch) {
    if (slot < 0)
      continue;
    const int64_t decoded = slots[size_t(slot)].position + token;
    const int64_t pairs = layer.count[slot];
    if (pairs >= manifest.buffer ||
        passesPhase(decoded - pairs, decoded, manifest.buffer, manifest.phase))
      ready.push_back(slot);
  }
  if (ready.empty())
    return;
  if (consolidator)
    consolidator->beforeDecode(indexOf(layer), {}, ready);
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
  checkTokenArguments(given, tokens);
  const std::span<const int32_t> batch(given.slots, size_t(given.batch));
  std::vector<int32_t> counts(batch.size(), tokens.tokens);
  if (tokens.row_tokens)
    counts.assign(tokens.row_tokens, tokens.row_tokens + given.batch);
  checkStepTokens(layer, batch, counts);
  TokenCursor cursor(layer.manifest(), given, tokens);
  for (int32_t token = 0; token < tokens.tokens; ++token) {
    const ss_decode_args &args = cursor.at(token);
    compactDeferred(layer, cursor.settledRows(token, layer.manifest().draft),
                    token);
    decodeToken(layer, args, token);
    if (token == 0)
      noteStepTokens(batch, counts);
  }
}

} // namespace sinkstate::runtime
