//===- Restore.h - From an image to a slot of some engine -------*- C++ -*-===//
//
// What is the same for every device: whether an image fits an engine, which of
// its heads go where, and forms that the engine cannot hold.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_RESTORE_H
#define SINKSTATE_HANDOVER_RESTORE_H

#include "engine/StateEngine.h"

namespace sinkstate::runtime {

/// Makes the slot what the image says; its graph is the engine's.
void restoreSlot(StateEngine &engine, int32_t slot, const SlotImage &image,
                 Stream stream);

/// The same for an engine whose graph differs in what shapes no state: policies,
/// forms, storage, drafts. The slot is fresh.
void restoreAllHeads(StateEngine &engine, int32_t slot, const SlotImage &image,
                     Stream stream);

/// Adds some heads of the image to a slot, one range per layer.
void restoreHeads(StateEngine &engine, int32_t slot, const SlotImage &image,
                  std::span<const HeadRange> ranges, Stream stream);

} // namespace sinkstate::runtime

#endif
