//===- CudaTokens.cpp - Several tokens in one step on a GPU ---------------===//
//
// What handover/Tokens.cpp does on the CPU, with the counting on the device:
// between the tokens of a layer a kernel counts the last one and lists what is
// compacted. All of it can be captured.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"
#include "handover/TokenCursor.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {

/// Layers with draft tokens: what begin or nextToken listed is compacted before
/// the token, with all the pairs that are in the buffer.
void CudaEngine::compactBefore(int32_t index, int32_t batch, CUstream stream) {
  launchCompact(index, batch, 0, stream);
  handOver->settle(schedule(), factoredNumber[size_t(index)], stream);
}

/// Every layer of a step takes the same tokens; the first says which.
void CudaEngine::noteStepTokens(const LayerManifest &layer,
                                const ss_decode_args &args,
                                const TokenCursor &cursor) {
  std::vector<int32_t> counts(size_t(args.batch));
  for (int32_t row = 0; row < args.batch; ++row)
    counts[size_t(row)] = cursor.tokensOf(row);
  if (decodedCount > 0) {
    if (counts != stepTokens) // also where they took one each
      fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
           "' takes other tokens than the layers of this step before it, "
           "expected the same: call ss_end_step between steps");
    return;
  }
  stepTokens = std::move(counts);
  handOver->takeTokens(schedule(), {args.slots, size_t(args.batch)},
                       stepTokens, static_cast<CUstream>(args.stream));
}

void CudaEngine::decodeTokens(int32_t index, const ss_decode_args &args,
                              const ss_token_args &tokens) {
  const LayerManifest &layer = checkedLayer(index);
  checkStep(layer, index, args);
  const TokenCursor cursor(layer, args, tokens);
  if (tokens.tokens == 1 && !tokens.row_tokens)
    return decodeLayer(index, cursor.at(0));
  if (tokens.row_tokens && args.batch > slotCount)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", args.batch,
         " with tokens.row_tokens, expected at most ", slotCount,
         ", the engine's slots");
  CurrentContext current(*context);
  noteStepTokens(layer, args, cursor);
  const auto stream = static_cast<CUstream>(args.stream);
  const std::span<const int32_t> slots(args.slots, size_t(args.batch));
  const int32_t number = factoredNumber[size_t(index)];
  int32_t *rowSlots =
      tokens.row_tokens ? at<int32_t>(layout.rowSlots) : nullptr;
  for (int32_t token = 0; token < tokens.tokens; ++token) {
    ss_decode_args one = cursor.at(token);
    if (rowSlots)
      one.slots = rowSlots;
    if (!layer.denseForm || rowSlots)
      handOver->nextToken(schedule(), number, slots, token, rowSlots, stream);
    const bool late = !layer.denseForm && layer.draft > 0;
    if (late && (token == 0 || token < tokens.tokens - layer.draft))
      compactBefore(index, args.batch, stream);
    launchDecode(index, one);
    if (!layer.denseForm && !late)
      launchCompact(index, args.batch, 1, stream);
  }
  if (!layer.denseForm) // counts the last one
    handOver->nextToken(schedule(), number, slots, tokens.tokens, nullptr,
                        stream);
  decoded[size_t(index)] = true;
  ++decodedCount;
}

} // namespace sinkstate::runtime::cuda
