//===- HostConsolidation.cpp - Consolidation's kernels on the host --------===//

#include "HostConsolidation.h"

#include <vector>

namespace sinkstate::test {
namespace {

template <typename T> const T &value(void *const *parameters, int index) {
  return *static_cast<const T *>(parameters[index]);
}

} // namespace

void noteCompactions(const ss::Frozen &frozen) {
  for (int32_t block = 0; block < frozen.layer_count; ++block) {
    const ss::FrozenLayer &layer = frozen.layers[block];
    const int32_t count = *layer.work_count;
    for (int32_t i = 0; i < count; ++i)
      if (ss::is_first_of_slot(layer, i))
        ss::note_compaction(layer, layer.work[i] / layer.heads);
    if (count > 0)
      ss::note_layer(layer);
  }
}

void noteSlot(const ss::Frozen &frozen, int32_t slot) {
  for (int32_t block = 0; block < frozen.layer_count; ++block) {
    ss::note_slot(frozen.layers[block], slot);
    ss::note_layer(frozen.layers[block]);
  }
}

void gather(const ss::Gather &work, int32_t states,
            const std::function<void()> &between) {
  std::vector<ss::GatheredState> begun;
  std::vector<int64_t> bases;
  for (int32_t block = 0; block < states; ++block) {
    bases.push_back(0);
    begun.push_back(ss::gather_begin(work, block, bases.back()));
  }
  for (int32_t block = 0; block < states; ++block) {
    // In the middle of a state where there is one alone.
    if (block == states / 2 && between)
      between();
    ss::gather_copy(work, begun[size_t(block)], bases[size_t(block)], 0, 1);
  }
  for (int32_t block = 0; block < states; ++block)
    ss::gather_end(work, block, begun[size_t(block)]);
}

void swapIn(const ss::Frozen &frozen, const ss::Mailboxes &boxes) {
  for (const ss::Mailbox &box : boxes.box) {
    const uint64_t sequence = ss::observe(box.ready);
    const uint64_t count = sequence == 0 ? 0 : *box.count;
    for (uint64_t i = 0; i < count; ++i) {
      const ss::Result result = ss::load_result(box, int64_t(i));
      if (!ss::is_open(box, sequence, int64_t(i), result))
        continue;
      const bool landed = ss::swap_rows(frozen, box, result, 0, 1);
      ss::answer(frozen, box, int64_t(i), result, landed);
    }
  }
}

void hostNoteCompactions(void *, void *const *parameters, unsigned) {
  noteCompactions(value<ss::Frozen>(parameters, 0));
}

void hostNoteSlot(void *, void *const *parameters, unsigned) {
  noteSlot(value<ss::Frozen>(parameters, 0), value<int32_t>(parameters, 1));
}

void hostGather(void *between, void *const *parameters, unsigned blocks) {
  const auto *body = static_cast<const std::function<void()> *>(between);
  gather(value<ss::Gather>(parameters, 0), int32_t(blocks),
         body ? *body : std::function<void()>());
}

void hostSwapIn(void *, void *const *parameters, unsigned) {
  swapIn(value<ss::Frozen>(parameters, 0),
         value<ss::Mailboxes>(parameters, 1));
}

} // namespace sinkstate::test
