//===- Consolidator.h - Consolidation beside decoding -----------*- C++ -*-===//
//
// The asynchronous and the deterministic mode of consolidation on the CPU
// device: the scheduler decides, the pipeline works, and what it has done is
// swapped in between two launches of the engine's own thread, which is decode
// order. Frozen rows do not change between compactions and decays live beside
// them, so that a result that lands tokens late is as good as one at once.
//
// Asynchronous: decoding never waits, and when a result lands depends on time.
// Deterministic: a result lands right before the next compaction of its rows, or,
// where `lag` is 0, before the first token behind the compaction that made it due.
// Nowhere between: a rollback could then forget tokens behind which it landed. A
// decode that comes there earlier than the result waits for it, which is counted.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_ENGINE_CONSOLIDATOR_H
#define SINKSTATE_ENGINE_CONSOLIDATOR_H

#include "consolidation/Pipeline.h"
#include "consolidation/Scheduler.h"
#include "state/LayerState.h"

#include "sinkstate/sinkstate.h"

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace sinkstate::runtime {

class Consolidator final : private consolidation::StateTransfer {
public:
  Consolidator(std::vector<LayerState> &layers,
               const ss_engine_options &options, ss_statistics &counters);
  ~Consolidator() override;

  /// Slots of a layer were compacted and settled; states whose SVD is due say
  /// so in LayerState::svdDue.
  void compacted(int32_t layer, std::span<const int32_t> slots);

  /// A slot was given the rows of another one, and says in LayerState::svdDue
  /// which of their SVDs have not landed: deterministic mode makes them again, of
  /// the same rows, and lands them where those of the other one land.
  void resume(int32_t layer, int32_t slot);

  /// Before a layer is decoded. `compacting`: slots of the batch that are
  /// compacted in this step. On an error nothing has changed.
  void beforeDecode(int32_t layer, std::span<const int32_t> batch,
                    std::span<const int32_t> compacting);

  /// Asynchronous mode: waits for everything under way and swaps it in.
  void drain();

private:
  using HostJob = consolidation::HostJob;
  using StateCopy = consolidation::StateCopy;
  /// What deterministic mode knows of a slot in a layer.
  struct Landing {
    uint64_t job = 0;             ///< 0: nothing is under way
    std::unique_ptr<HostJob> done; ///< stays until there is memory to land it
  };

  void download(HostJob &job) override;
  void upload(HostJob &job) override;

  double now() const;
  uint64_t epochOf(int32_t layer, int32_t slot) const {
    return layers[size_t(layer)].epoch(slot);
  }
  /// Tokens that the layer has decoded of the slot's request.
  int64_t positionOf(int32_t layer, int32_t slot) const {
    return layers[size_t(layer)].decodedTokens[size_t(slot)];
  }
  Landing &landing(int32_t layer, int32_t slot) {
    return landings[size_t(layer) * slotCount + size_t(slot)];
  }
  void startAll();
  std::unique_ptr<HostJob> prepare(const consolidation::Job &job);
  bool submit(consolidation::Job job);
  void addStates(HostJob &job, int32_t target);
  void landFinished();
  void land(HostJob &job);
  int64_t rowsFor(const LayerState &layer, const StateCopy &copy) const;
  std::vector<RowBlock> ownBlocks(LayerState &layer, const HostJob &job);
  void landState(LayerState &layer, StateCopy &copy, RowBlock own);
  void landFactors(LayerState &layer, StateCopy &copy);
  void landDense(LayerState &layer, StateCopy &copy);
  void waitFor(int32_t layer, int32_t slot);
  void startDeterministic(int32_t layer, int32_t slot);

  std::vector<LayerState> &layers;
  ss_statistics &counters;
  size_t slotCount;
  bool deterministic;
  int32_t lag;
  std::chrono::steady_clock::time_point start;
  consolidation::Scheduler scheduler;
  std::function<uint64_t(int32_t, int32_t)> epochs;
  std::vector<Landing> landings;  ///< deterministic mode only
  std::vector<int64_t> startedAt; ///< positions, per layer and slot
  consolidation::Pipeline pipeline; ///< last: its threads use the others
};

} // namespace sinkstate::runtime

#endif
