//===- HostConsolidation.h - Consolidation's kernels on the host *- C++ -*-===//
//
// The same functions that the kernels of device/consolidation.cuh call, run in
// order on the host. For the fake driver: each takes the parameters of a
// launch.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HOSTCONSOLIDATION_H
#define SINKSTATE_UNIT_HOSTCONSOLIDATION_H

#include "cuda/device/consolidation.cuh"

#include <functional>

namespace sinkstate::test {

void noteCompactions(const ss::Frozen &frozen);
void noteSlot(const ss::Frozen &frozen, int32_t slot);
/// `between`: after half of the states' rows have been copied.
void gather(const ss::Gather &work, int32_t states,
            const std::function<void()> &between = {});
void swapIn(const ss::Frozen &frozen, const ss::Mailboxes &boxes);

/// ss_note_compactions(ss::Frozen)
void hostNoteCompactions(void *, void *const *parameters, unsigned blocks);
/// ss_note_slot(ss::Frozen, int32_t slot)
void hostNoteSlot(void *, void *const *parameters, unsigned blocks);
/// ss_gather(ss::Gather); the context is null or a std::function<void()> to
/// call in the middle.
void hostGather(void *between, void *const *parameters, unsigned blocks);
/// ss_swap_in(ss::Frozen, ss::Mailboxes)
void hostSwapIn(void *, void *const *parameters, unsigned blocks);

} // namespace sinkstate::test

#endif
