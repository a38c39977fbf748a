//===- CudaRollback.cpp - Positions and forgetting on a GPU ---------------===//
//
// Positions and counts are on the device, since graphs move them on without the
// host. What needs them here reads them; a rollback is checked and done by the
// device, with one answer to wait for.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {

/// Throws while a step is under way. Whose it is the device alone knows.
void CudaEngine::checkNoStep(int32_t slot) {
  if (isWithinStep())
    fail(SS_INVALID_ARGUMENT, "slot ", slot, " may be within a step, expected "
         "this call after ss_end_step or ss_cancel_step");
}

/// For calls that wait for what they queue: a capture would keep what came before
/// they fail.
void CudaEngine::checkNoCapture(CUstream stream) const {
  CurrentContext current(*context);
  if (isCaptured(stream))
    fail(SS_INVALID_ARGUMENT, "the call waits for its stream, which is captured, "
         "expected another one, or this call between replays");
}

/// Also where the slot's states are what a step that was given up left. Which slots
/// those are the device knows: the step may have been in a graph.
void CudaEngine::checkBetweenSteps(int32_t slot) {
  checkSlot(slot);
  checkNoStep(slot);
  if (!mayBeLeft)
    return;
  CurrentContext current(*context);
  waitForAll();
  int32_t left = 0;
  own->copyOut(&left,
               addressOf(layout.left + slot * int64_t(sizeof(int32_t))),
               sizeof left);
  if (left)
    failForLeftSlot(slot);
}

/// After everything that `stream` has; waits for it.
SlotCounters CudaEngine::countersOf(int32_t slot, CUstream stream) const {
  SlotCounters counters;
  counters.pairs.resize(layout.layers.size());
  std::vector<PieceMover::HostPiece> pieces;
  auto add = [&](int64_t offset, int64_t bytes, void *to) {
    pieces.push_back({addressOf(offset + slot * bytes),
                      static_cast<std::byte *>(to), bytes});
  };
  add(layout.position, sizeof counters.position, &counters.position);
  for (size_t i = 0; i < layout.layers.size(); ++i)
    if (!manifest.layers[i].denseForm)
      add(layout.layers[i].count, sizeof(int32_t), &counters.pairs[i]);
  mover->download(pieces, stream);
  return counters;
}

int64_t CudaEngine::position(int32_t slot) const {
  checkSlot(slot);
  CurrentContext current(*context);
  waitForAll();
  return countersOf(slot, own->get()).position;
}

int32_t CudaEngine::rollbackRoom(int32_t slot) const {
  checkSlot(slot);
  CurrentContext current(*context);
  waitForAll();
  return runtime::rollbackRoom(manifest, countersOf(slot, own->get()));
}

void CudaEngine::rollback(std::span<const int32_t> batch,
                          std::span<const int32_t> tokens, Stream given) {
  const auto stream = static_cast<CUstream>(given);
  checkNoCapture(stream);
  for (int32_t slot : batch)
    if (slot >= 0)
      checkBetweenSteps(slot);
  checkDistinct(batch);
  CurrentContext current(*context);
  auto checkAll = [&] {
    for (size_t i = 0; i < batch.size(); ++i)
      if (batch[i] >= 0)
        checkRollback(manifest, batch[i], tokens[i],
                      countersOf(batch[i], stream));
  };
  if (std::any_of(manifest.layers.begin(), manifest.layers.end(),
                  [](const LayerManifest &layer) { return layer.denseForm; }))
    checkAll(); // the device does not know of them
  const CUdeviceptr answer = addressOf(layout.refused);
  int32_t refused = 0;
  SS_CUDA(context->driver(),
          cuMemsetD8Async(answer, 0, sizeof refused, stream));
  handOver->rollback(schedule(), batch, tokens, at<int32_t>(layout.refused),
                     stream);
  copyOut(&refused, at<int32_t>(layout.refused), sizeof refused, stream);
  if (!refused)
    return;
  checkAll();
  fail(SS_INTERNAL, "the device refused a rollback that is possible: report "
                    "it");
}

void CudaEngine::setPosition(int32_t slot, int64_t position, Stream stream) {
  checkNoCapture(static_cast<CUstream>(stream));
  checkBetweenSteps(slot);
  CurrentContext current(*context);
  checkPosition(manifest, slot, position,
                countersOf(slot, static_cast<CUstream>(stream)));
  copyIn(at<int64_t>(layout.position) + slot, &position, sizeof position,
         stream);
  // Other steps compact its states than was foreseen. A rollback has no such
  // effect: what it decodes again was not due then, and is not now.
  unforeseen[size_t(slot)] = true;
}

} // namespace sinkstate::runtime::cuda
