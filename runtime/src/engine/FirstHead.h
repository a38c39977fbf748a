//===- FirstHead.h - A layer's heads in the whole model ---------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_FIRSTHEAD_H
#define SINKSTATE_ENGINE_FIRSTHEAD_H

#include "package/Manifest.h"

namespace sinkstate::runtime {

/// Throws SS_INVALID_ARGUMENT where `head` is no place for the first of a layer's
/// heads, or a slot (-1: none) has an owner, whose states were rounded by another.
void checkFirstHead(const LayerManifest &layer, int32_t head,
                    int32_t slotInUse);

} // namespace sinkstate::runtime

#endif
