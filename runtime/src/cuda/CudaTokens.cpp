//===- CudaTokens.cpp - Several tokens in one step on a GPU ---------------===//
//
// What handover/Tokens.cpp does on the CPU, with the counting on the device:
// between the tokens of a layer a kernel counts the last one and lists what is
// compacted. All of it can be captured.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"
#include "engine/DecodeArguments.h"
#include "handover/TokenCursor.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

std::vector<int32_t> countsOf(const TokenCursor &cursor, int32_t batch) {
  std::vector<int32_t> counts(static_cast<size_t>(batch));
  for (int32_t row = 0; row < batch; ++row)
    counts[size_t(row)] = cursor.tokensOf(row);
  return counts;
}

bool areOneEach(const std::vector<int32_t> &counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [](int32_t count) { return count == 1; });
}

} // namespace

/// What begin or nextToken listed of a layer that compacts before its tokens, with
/// all the pairs that are in the buffer.
void CudaEngine::compactBefore(int32_t index, int32_t batch, CUstream stream) {
  compactDue(index, batch, 0, stream, false);
  // The token reads what went dense as a matrix.
  if (pools)
    pools->settleLayer(size_t(index), stream);
  handOver->settle(schedule(), scheduleNumber[size_t(index)], stream);
}

/// Blocks for what has just been listed. Compactions of a call of several tokens
/// stay on its stream: the tables of a pool serve one layer at a time.
void CudaEngine::prepareToken(int32_t index, int32_t countAhead,
                              CUstream stream) {
  if (!pools)
    return;
  const bool counted = !isCaptured(stream);
  // What one step takes at most is mapped; so many tokens take more. Where there
  // is no memory the device says so.
  if (counted)
    (void)pools->tend(slotsForPools(0), false, false, true, false, stream);
  pools->planLayer(size_t(index), countAhead, stream, counted);
}

/// The list of what was due is made anew for the next token.
void CudaEngine::noteCompacted(int32_t index, CUstream stream) const {
  if (consolidator)
    consolidator->compacted(index, stream);
}

/// Every layer of a step takes the same tokens; the first says which, and how they
/// are counted.
void CudaEngine::noteStepTokens(const LayerManifest &layer,
                                const ss_decode_args &args,
                                std::span<const int32_t> slots,
                                std::vector<int32_t> counts) {
  if (decodedCount > 0) {
    if (counts != stepTokens)
      fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
           "' takes other tokens than the layers of this step before it, "
           "expected the same: call ss_end_step between steps");
    return;
  }
  stepTokens = std::move(counts);
  // Each token makes lists of its own.
  compactions->joinPlan(static_cast<CUstream>(args.stream));
  if (pools)
    pools->cancel(decoded, static_cast<CUstream>(args.stream),
                  stepCapture == kNoCapture);
  unmoved = kAllLayers;
  handOver->takeTokens(schedule(), slots, stepTokens,
                       static_cast<CUstream>(args.stream));
}

/// One token of every row in a step whose other layers have begun so; what else the
/// arrays have room for is padding.
void CudaEngine::decodeOneEach(int32_t index, const TokenCursor &cursor) {
  const ss_decode_args args = cursor.at(0);
  decodeLayer(index, args);
  if (cursor.tokens() == 1)
    return;
  CurrentContext current(*context);
  const auto stream = static_cast<CUstream>(args.stream);
  auto *padding = at<int32_t>(layout.rowSlots);
  handOver->nextToken(schedule(), -1,
                      rowsOf({args.slots, size_t(args.batch)}, stream), 1,
                      padding, stream);
  for (int32_t token = 1; token < cursor.tokens(); ++token) {
    ss_decode_args empty = cursor.at(token);
    empty.slots = padding;
    launchDecode(index, empty);
  }
}

void CudaEngine::decodeTokens(int32_t index, const ss_decode_args &args,
                              const ss_token_args &tokens) {
  const LayerManifest &layer = checkedLayer(index);
  CurrentContext current(*context);
  checkStep(layer, index, args);
  const TokenCursor cursor(layer, args, tokens);
  std::vector<int32_t> counts = countsOf(cursor, args.batch);
  const bool oneEach = stepTokens.empty() && areOneEach(counts);
  if (oneEach && tokens.tokens == 1)
    return decodeLayer(index, cursor.at(0));
  for (int32_t token : {0, tokens.tokens - 1})
    checkRowAddresses(layer, cursor.at(std::min(token, 1)));
  if (tokens.row_tokens && args.batch > slotCount)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", args.batch,
         " with tokens.row_tokens, expected at most ", slotCount,
         ", the engine's slots");
  if (oneEach && decodedCount > 0)
    return decodeOneEach(index, cursor);
  const auto stream = static_cast<CUstream>(args.stream);
  const std::span<const int32_t> slots =
      rowsOf({args.slots, size_t(args.batch)}, stream);
  stepChanges = true; // counts, too
  noteStepTokens(layer, args, slots, std::move(counts));
  const int32_t number = scheduleNumber[size_t(index)];
  int32_t *rowSlots =
      tokens.row_tokens ? at<int32_t>(layout.rowSlots) : nullptr;
  for (int32_t token = 0; token < tokens.tokens; ++token) {
    ss_decode_args one = cursor.at(token);
    one.slots = rowSlots ? rowSlots : slots.data();
    if (layer.hasBuffer() || layer.stochastic || rowSlots)
      handOver->nextToken(schedule(), number, slots, token, rowSlots, stream);
    const bool before = layer.compactsBefore;
    if (before && (token == 0 || token < tokens.tokens - layer.draft)) {
      prepareToken(index, 0, stream);
      compactBefore(index, args.batch, stream);
      noteCompacted(index, stream);
    }
    if (!layer.denseForm && !before)
      prepareToken(index, 1, stream);
    launchDecode(index, one);
    if (layer.denseForm || before)
      continue;
    compactDue(index, args.batch, 1, stream, false);
    if (pools)
      pools->settleLayer(size_t(index), stream);
    noteCompacted(index, stream);
  }
  if (layer.hasBuffer()) // counts the last one
    handOver->nextToken(schedule(), number, slots, tokens.tokens, nullptr,
                        stream);
  decoded[size_t(index)] = true;
  ++decodedCount;
}

} // namespace sinkstate::runtime::cuda
