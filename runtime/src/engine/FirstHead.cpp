//===- FirstHead.cpp - A layer's heads in the whole model -----------------===//

#include "engine/FirstHead.h"

#include "capi/Failure.h"

namespace sinkstate::runtime {

void checkFirstHead(const LayerManifest &layer, int32_t head,
                    int32_t slotInUse) {
  const int32_t most = INT32_MAX - layer.heads;
  if (head < 0 || head > most)
    fail(SS_INVALID_ARGUMENT, "first head ", head, " of layer '", layer.name,
         "', expected 0 to ", most);
  if (slotInUse >= 0)
    fail(SS_INVALID_ARGUMENT, "slot ", slotInUse,
         " has an owner, whose states were rounded by the first head of before; "
         "expected it before ss_slot_alloc");
}

} // namespace sinkstate::runtime
