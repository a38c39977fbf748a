//===- CudaStep.cpp - The steps of requests on one GPU --------------------===//
//
// A step is begun, every layer is decoded once, and it ends. What it lists of its
// states' compactions is device memory, so that a step which is left before its end
// has to be tidied up, if any of it runs, before the next one begins.
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaEngine.h"

#include "capi/Failure.h"
#include "engine/DecodeArguments.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::runtime::cuda {
namespace {

/// Programs a multiprocessor from which on a decode has an order.
constexpr int64_t kOrderedPrograms = 8;

CUstream asStream(Stream stream) { return static_cast<CUstream>(stream); }

} // namespace

/// Which capture a stream takes part in; the context is current. Where the driver
/// does not say for a capture's sake, as of the legacy stream while another one is
/// captured: some. What else it refuses is no capture, and fails.
uint64_t CudaEngine::captureOf(CUstream stream) const {
  int status = kCaptureStatusNone;
  unsigned long long id = 0;
  const Driver &driver = context->driver();
  const CUresult result = driver.functions().cuStreamGetCaptureInfo(
      stream, &status, &id, nullptr, nullptr, nullptr);
  if (isOfCapture(result))
    return kSomeCapture;
  driver.check(result, "cuStreamGetCaptureInfo(stream, ...)", __FILE__, __LINE__);
  if (status == kCaptureStatusNone)
    return kNoCapture;
  return status == kCaptureStatusActive ? id : kSomeCapture;
}

/// Forgets a step that another capture than this one holds: it was thrown away, and
/// nothing of it runs.
void CudaEngine::dropLostStep(uint64_t capture) {
  if (stepCapture == kNoCapture || stepCapture == capture)
    return;
  compactions->forget();
  if (pools)
    pools->forget();
  closeStep();
}

/// Whether a step has begun and not ended. Without streams of the engine's own a
/// step may be captured in parts, so that only the next one says that it was lost.
bool CudaEngine::isWithinStep() {
  if (stepCapture != kNoCapture && compactions->ownStream()) {
    CurrentContext current(*context);
    dropLostStep(captureOf(compactions->ownStream()));
  }
  return stepOpen;
}

void CudaEngine::openStep(uint64_t capture) {
  stepOpen = true;
  stepCapture = capture;
  std::fill(decoded.begin(), decoded.end(), false);
  decodedCount = 0;
  aheadCount = 0;
  stepChanges = false;
}

void CudaEngine::closeStep() {
  stepOpen = false;
  stepCapture = kNoCapture;
  stepBatch = 0;
  stepTokens.clear();
  // The next owner's first step is a later one.
  freeSlots.insert(freeSlots.end(), freedWithin.begin(), freedWithin.end());
  freedWithin.clear();
}

/// Work on `stream` comes after the compactions that run: what another stream is
/// captured for does not.
void CudaEngine::joinCompactions(CUstream stream) {
  if (stepCapture == kNoCapture || stepCapture == captureOf(stream))
    compactions->join(stream);
}

/// Takes back what a step has planned that does not come to its end. Layers have
/// changed states as they came, and their slots are noted. Those that compact before
/// their tokens have not: a pair that no count knows of is nothing.
void CudaEngine::giveStepUp(CUstream stream) {
  compactions->join(stream);
  // Layers over whose lists something was launched.
  std::vector<bool> begun = decoded;
  for (size_t i = 0; i < aheadCount; ++i)
    begun[size_t(beforeLayers[i])] = true;
  if (pools)
    pools->cancel(begun, stream, stepCapture == kNoCapture);
  for (size_t i = 0; consolidator && i < begun.size(); ++i)
    if (begun[i])
      consolidator->compacted(int32_t(i), stream);
  if (stepChanges) {
    mayBeLeft = true;
    bookkeeping->leave(schedule(), stepBatch, stream);
  }
  closeStep();
}

void CudaEngine::beginAfter(CUstream stream) {
  const uint64_t capture = captureOf(stream);
  if (isWithinStep() && stepCapture != kNoCapture && stepCapture != capture &&
      compactions->ownStream())
    fail(SS_INVALID_ARGUMENT,
         "a step is being captured by another stream than this call's, expected "
         "that stream or the end of its capture");
  dropLostStep(capture);
  if (stepOpen && stepCapture != capture)
    fail(SS_INVALID_ARGUMENT,
         "a step that has begun outside of this capture has not ended, expected "
         "ss_end_step or ss_cancel_step before a step is captured");
  if (stepOpen)
    giveStepUp(stream);
  else
    compactions->join(stream);
}

void CudaEngine::leaveStep(Stream stream) {
  CurrentContext current(*context);
  beginAfter(asStream(stream));
}

void CudaEngine::beginStep(std::span<const int32_t> slots, Stream stream) {
  if (slots.size() > size_t(layout.mostRows))
    fail(SS_INVALID_ARGUMENT, "batch is ", slots.size(), ", expected at most ",
         layout.mostRows, " rows with padding for ", slotCount, " slots");
  CurrentContext current(*context);
  beginAfter(asStream(stream));
  if (consolidator)
    consolidator->beginStep(slots, asStream(stream));
  tendPools(asStream(stream), 0, true);
  // Where a launch fails, those before it are taken back by the next step.
  openStep(captureOf(asStream(stream)));
  stepOrdered = hasOrder(int32_t(slots.size()));
  planStep(slots, asStream(stream));
  stepSlots = slots.data();
  stepBatch = int32_t(slots.size());
}

/// What is due, and the rows that its compactions need. Few programs leave
/// multiprocessors idle: their decodes do not wait for it, since it changes no
/// count, no rank and no place, and rows move behind them. Where decodes fill the
/// GPU, what runs beside them waits for room, and a compaction that does not stand
/// right behind its decode is in the way of later ones: there the first decode
/// waits for the lists, so that blocks are provided beside it, and the others for
/// their rows. Of several rows the decodes read the list that is made here, in which
/// no slot is named twice, and come behind it.
void CudaEngine::planStep(std::span<const int32_t> slots, CUstream stream) {
  const bool counted = !isCaptured(stream);
  const bool listFirst = slots.size() > 1 && !stepOrdered;
  if (listFirst)
    bookkeeping->list(schedule(), slots, stream);
  const CUstream branch = compactions->plan(stream);
  if (!listFirst)
    bookkeeping->list(schedule(), slots, branch);
  unmoved = kAllLayers;
  if (pools)
    pools->list(1, branch);
  compactions->planned();
  if (stepOrdered)
    bookkeeping->order(schedule(), slots, stream);
  if (!pools) {
    if (stepOrdered)
      compactions->joinPlan(stream);
    return;
  }
  if (stepOrdered)
    compactions->waitForPlan(stream);
  pools->foresee(branch);
  pools->provide(branch, counted);
  compactions->planned();
}

/// The slots of a call of the open step as kernels take them: in these no slot is
/// named twice, and all are slots. A single row is as the caller has it.
std::span<const int32_t>
CudaEngine::rowsOf(std::span<const int32_t> slots, CUstream stream) {
  if (slots.size() == 1)
    return slots;
  if (slots.data() == stepSlots)
    return {at<int32_t>(layout.stepRows), slots.size()};
  auto *rows = at<int32_t>(layout.callRows);
  bookkeeping->takeSlots(schedule(), slots, rows, stream);
  return {rows, slots.size()};
}

/// Moves the rows of all layers but the first one of a large batch's step, which
/// is being decoded: before the second one is.
void CudaEngine::moveBehind(int32_t first) {
  const CUstream branch = compactions->planStream();
  if (!pools || !branch)
    return;
  pools->moveOthers(first, branch);
  compactions->planned();
  unmoved = first;
}

/// An order helps where multiprocessors have several programs each: the large ones
/// are then spread over all of them, and the last ones to begin are short.
bool CudaEngine::hasOrder(int32_t batch) const {
  if (batch > slotCount)
    return false;
  return std::any_of(
      manifest.layers.begin(), manifest.layers.end(),
      [&](const LayerManifest &layer) {
        return !layer.denseForm &&
               int64_t(batch) * layer.heads >=
                   kOrderedPrograms * context->multiprocessors();
      });
}

void CudaEngine::checkStep(const LayerManifest &layer, int32_t index,
                           const ss_decode_args &args) {
  checkDecodeArguments(layer, args);
  // The lists of a step whose capture was lost are those of the step before it.
  if (!isWithinStep() || stepBatch == 0)
    fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
         "' is decoded outside a step, expected ss_begin_step first");
  checkCapture(asStream(args.stream));
  if (args.batch != stepBatch)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", args.batch, ", expected ",
         stepBatch, " as in ss_begin_step");
  if (decoded[size_t(index)])
    fail(SS_BUFFER_FULL, "layer '", layer.name,
         "' has decoded this step already, expected one token per step: call "
         "ss_end_step first");
}

/// A capture holds whole steps, unless the engine has no streams of its own: a part
/// would wait for what runs outside, and find the slots that were converted there.
void CudaEngine::checkCapture(CUstream stream) const {
  if (compactions->ownStream() && captureOf(stream) != stepCapture)
    fail(SS_INVALID_ARGUMENT, "the step has begun ",
         stepCapture == kNoCapture ? "outside of the capture"
                                   : "in a capture that is not the one",
         " of this call's stream, expected all calls of a step in one: part of a "
         "step can be captured with options.compaction_streams -1");
}

/// Layers behind this one within which a compaction that comes before a token
/// begins beside this one's decode: so many that their decodes take as long as it
/// does, and not many more, since decodes get less done beside it.
int32_t CudaEngine::layersAhead(const LayerManifest &layer,
                                int32_t batch) const {
  // Microseconds on an H200, where one warp has a program.
  constexpr double kCompaction = 50, kShortDecode = 5, kDecodeWave = 16;
  constexpr double kWarps = 16; // of decodes on a multiprocessor
  constexpr int32_t kLeast = 2;
  const double waves = double(batch) * layer.heads /
                       (kWarps * context->multiprocessors());
  const double decode = kShortDecode + kDecodeWave * waves;
  return std::max(kLeast, int32_t(std::ceil(kCompaction / decode)));
}

/// Queues what layers not far behind this one compact before their tokens, each on
/// a branch; if this is one of them, its decode comes after its own.
void CudaEngine::compactAhead(int32_t index, int32_t batch, CUstream stream) {
  const int32_t last =
      index + layersAhead(manifest.layers[size_t(index)], batch);
  for (; aheadCount < beforeLayers.size() && beforeLayers[aheadCount] <= last;
       ++aheadCount) {
    const CUstream branch = compactions->forkAhead(stream);
    compactBefore(beforeLayers[aheadCount], batch, branch);
    compactions->finishAhead(aheadCount, branch);
  }
  const auto own =
      std::lower_bound(beforeLayers.begin(), beforeLayers.end(), index);
  if (own != beforeLayers.end() && *own == index)
    compactions->joinAhead(size_t(own - beforeLayers.begin()), stream);
}

void CudaEngine::decodeLayer(int32_t index, const ss_decode_args &args) {
  const LayerManifest &layer = checkedLayer(index);
  CurrentContext current(*context);
  checkStep(layer, index, args);
  checkRowAddresses(layer, args);
  if (!stepTokens.empty()) { // which may be one of each row
    ss_token_args one = {};
    one.tokens = 1;
    return decodeTokens(index, args, one);
  }
  const CUstream stream = asStream(args.stream);
  // In a large batch's step rows of the other layers move behind the first decode.
  const bool movesOthers =
      pools && stepOrdered && decodedCount == 0 && !layer.compactsBefore;
  if (!movesOthers) {
    if (stepOrdered)
      compactions->joinPlan(stream);
    compactAhead(index, args.batch, stream);
  }
  ss_decode_args taken = args;
  taken.slots = rowsOf({args.slots, size_t(args.batch)}, stream).data();
  stepChanges |= !layer.compactsBefore;
  launchDecode(index, taken);
  const bool compacts = !layer.denseForm && !layer.compactsBefore;
  const CUstream branch = compacts ? compactions->fork(stream) : stream;
  if (movesOthers)
    moveBehind(index);
  if (compacts)
    compactDue(index, args.batch, 1, branch, true);
  decoded[size_t(index)] = true;
  ++decodedCount;
}

void CudaEngine::endStep(std::span<const int32_t> slots, Stream stream) {
  CurrentContext current(*context);
  if (!isWithinStep() || stepBatch == 0)
    fail(SS_INVALID_ARGUMENT,
         "a step ends that has not begun, expected ss_begin_step first");
  checkCapture(asStream(stream));
  if (int32_t(slots.size()) != stepBatch)
    fail(SS_INVALID_ARGUMENT, "batch is ", slots.size(), ", expected ",
         stepBatch, " as in ss_begin_step");
  if (decodedCount < layerCount()) {
    const size_t missing =
        size_t(std::find(decoded.begin(), decoded.end(), false) -
               decoded.begin());
    fail(SS_INVALID_ARGUMENT, "the step ends without layer '",
         manifest.layers[missing].name, "' (", decodedCount, " of ",
         layerCount(), " are decoded), expected every layer once");
  }
  compactions->join(asStream(stream));
  if (pools)
    pools->settle(asStream(stream));
  if (consolidator)
    consolidator->endStep(asStream(stream));
  bookkeeping->advance(schedule(), rowsOf(slots, asStream(stream)),
                       asStream(stream));
  closeStep();
}

} // namespace sinkstate::runtime::cuda
