//===- Engine.h - Slots, decoding and compaction ----------------*- C++ -*-===//
//
// Holds the states of all layers and slots and drives the kernels over them.
// Split by concern: Engine.cpp (slots, inspection), Decode.cpp (one token),
// Compaction.cpp (a full buffer), Consolidation.cpp (exact SVDs on the host),
// MemoryPlan.cpp. What an engine does besides decoding is in ../handover.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_ENGINE_ENGINE_H
#define SINKSTATE_ENGINE_ENGINE_H

#include "consolidation/ExactSvd.h"
#include "device/CpuDevice.h"
#include "engine/Consolidator.h"
#include "engine/StateEngine.h"
#include "handover/Counters.h"
#include "handover/InitialState.h"
#include "package/Package.h"
#include "state/LayerState.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sinkstate::runtime {

/// `out_base` of a densify kernel for a matrix that begins at a row of the
/// pool.
int64_t storedPlace(const LayerLayout &layout, int64_t row);

/// Bytes an engine on the CPU would need; nothing is allocated.
void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan);

/// The engine of the CPU device. Options are resolved.
class Engine final : public StateEngine {
public:
  Engine(std::shared_ptr<const Package> package,
         const ss_engine_options &options);
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  // Slots.
  int32_t allocateSlot(Stream) override;
  void freeSlot(int32_t slot) override;
  void resetSlot(int32_t slot, Stream) override;
  void setRoundingKey(int32_t slot, uint64_t key, Stream stream) override;
  uint64_t roundingKey(int32_t slot) const override;
  void setSink(int32_t layer, std::span<const float> means) override;
  void setFirstHead(int32_t layer, int32_t head) override;

  // Decoding.
  void leaveStep(Stream) override;
  void beginStep(std::span<const int32_t> slots, Stream) override;
  void decodeLayer(int32_t layer, const ss_decode_args &args) override;
  void endStep(std::span<const int32_t> slots, Stream) override;
  void synchronize(Stream) override;

  // Inspection.
  int32_t layerCount() const override { return int32_t(layers.size()); }
  void layerInfo(int32_t layer, ss_layer_info &info) const override;
  void densify(int32_t layer, int32_t slot, float *out) override;
  void ranks(int32_t layer, int32_t slot, int32_t *ranks) const override;
  void status(int32_t layer, int32_t slot, int32_t *status) const override;
  void statistics(ss_statistics &out) const override;
  void layerStatistics(int32_t layer, ss_layer_statistics &out) const override;
  MemoryParts memoryParts() const override;

  // Hand-over: handover/Tokens.cpp, Rollback.cpp, Exchange.cpp, Dense.cpp.
  void decodeTokens(int32_t layer, const ss_decode_args &args,
                    const ss_token_args &tokens) override;
  void rollback(std::span<const int32_t> slots,
                std::span<const int32_t> tokens, Stream) override;
  int32_t rollbackRoom(int32_t slot) const override;
  int64_t position(int32_t slot) const override;
  SlotImage exportSlot(int32_t slot, bool contents, Stream) override;
  void importSlot(int32_t slot, int64_t position,
                  std::span<const PlacedLayer> placed, Stream) override;
  void setPosition(int32_t slot, int64_t position, Stream) override;
  void densifyTo(int32_t layer, const DenseStates &states, void *out,
                 Stream) override;
  void initialise(int32_t layer, const DenseStates &states, const void *dense,
                  const ss_init_options &options, Stream) override;
  void fork(int32_t from, int32_t to, Stream) override;
  const Manifest &manifestOf() const override { return package->manifest(); }
  bool holdsDense(int32_t layer) const override {
    return layers[size_t(layer)].layout().denseFallback;
  }
  int32_t mostComponents(int32_t layer) const override {
    return layers[size_t(layer)].manifest().rank;
  }
  const LayerSinks &sinksOf(int32_t layer) const override {
    return sinks[size_t(layer)];
  }

  // Memory.
  std::unique_ptr<RowConverter>
  makeRowConverter(int64_t stagingBytes) override;

  void *allocateMemory(size_t bytes) override;
  void freeMemory(void *memory) override;
  void copyIn(void *to, const void *from, size_t bytes, Stream) override;
  void copyOut(void *to, const void *from, size_t bytes, Stream) override;

  /// For tests and measurements of the tables themselves.
  LayerState &layerState(int32_t layer) { return layers[size_t(layer)]; }
  /// The decode kernel of a layer alone, outside any step: for measurements.
  void launchDecode(int32_t layer, const ss_decode_args &args) {
    launchDecode(layers[size_t(layer)], args);
    device.wait();
  }

private:
  using States = std::vector<int32_t>;

  /// What follows a decode step in one layer. Made before it, so that nothing
  /// between the token and its compaction can run out of memory.
  struct DueWork {
    std::vector<int32_t> slots;
    States factored, dense;
    States atBound; ///< factored, and too large with the buffer's pairs
    /// Factored, and without memory for more rows than they have.
    States limited;
    std::vector<int32_t> limitedStatus; ///< of those, before the compaction
    std::vector<int64_t> foldBase; ///< storedPlace() of dense states
  };

  const LayerState &checkedLayer(int32_t layer) const;
  int32_t indexOf(const LayerState &layer) const {
    return int32_t(&layer - layers.data());
  }
  void checkSlot(int32_t slot) const;
  void checkStepEnds(int32_t slot) const;
  void checkNotLeft(int32_t slot) const;
  void resetStates(int32_t slot);
  /// Brings the counters of allocated bytes up to date.
  void noteAllocation(const LayerState &layer);
  void checkLimit() const;
  void checkMemory() const;

  // handover/Tokens.cpp
  void compactBefore(LayerState &layer, std::span<const int32_t> batch,
                     int32_t token);
  void checkStepTokens(const LayerState &layer,
                       std::span<const int32_t> batch,
                       std::span<const int32_t> tokens) const;
  void noteStepTokens(std::span<const int32_t> batch,
                      std::span<const int32_t> tokens);

  // handover/Rollback.cpp
  void checkBetweenSteps(int32_t slot) const;
  SlotCounters countersOf(int32_t slot) const;

  // handover/Exchange.cpp
  void exportStates(LayerState &layer, int32_t slot, LayerImage &image);
  void resumeConsolidation(int32_t slot);
  void importStates(LayerState &layer, int32_t slot, const PlacedLayer &placed);

  // handover/Dense.cpp
  void checkDenseStates(const LayerState &layer, const DenseStates &states);
  /// By the layer's init kernel, where it has one that is precise enough for
  /// this eps.
  void launchInit(const LayerState &layer, const ss_init_options &options,
                  std::vector<InitialState> &all);
  void adopt(LayerState &layer, const InitialState &initial);

  // Decode.cpp
  void decodeToken(LayerState &layer, const ss_decode_args &args,
                   int32_t token);
  void checkDecode(const LayerState &layer, const ss_decode_args &args);
  void checkBatchSlots(const LayerState &layer,
                       std::span<const int32_t> slots);
  bool isDue(const LayerState &layer, int32_t slot, int32_t token) const;
  /// `ahead`: pairs that will be in the buffer beyond its count, 0 or 1.
  void addDue(const LayerState &layer, int32_t slot, int32_t ahead,
              DueWork &due) const;
  DueWork dueWork(const LayerState &layer, std::span<const int32_t> slots,
                  int32_t token) const;
  void reserveRows(LayerState &layer, DueWork &due, int32_t ahead);
  int64_t rowsToCompact(const LayerState &layer, int32_t state,
                        int32_t ahead) const;
  template <typename Take> void withMemory(const Take &take);
  void growRows(LayerState &layer, DueWork &due, int32_t state, int64_t rows);
  void landResults(LayerState &layer, std::span<const int32_t> batch,
                   std::span<const int32_t> compacting);
  void launchDecode(LayerState &layer, const ss_decode_args &args);

  // Compaction.cpp
  void compact(LayerState &layer, const DueWork &due);
  /// What follows a compaction: consolidation, changes of form, smaller blocks.
  void settle(LayerState &layer, const DueWork &due);
  void launchCompact(LayerState &layer, const States &work);
  void compactWithin(LayerState &layer, const DueWork &due);
  void goDense(LayerState &layer, const States &work);
  void goDenseAtOnce(LayerState &layer, std::span<const int32_t> work);
  void bindState(LayerState &layer);
  void bindBuffers(LayerState &layer);
  void bindRounding(const LayerState &layer);
  std::span<const float> sinkOf(const LayerState &layer, int64_t state) const;
  void launchDensify(LayerState &layer, std::span<const int32_t> work,
                     float *out, std::span<const int64_t> outBase);
  /// The same where rows, weights and tables are bound.
  void launchBoundDensify(const LayerState &layer,
                          std::span<const int32_t> work, float *out,
                          std::span<const int64_t> outBase);

  // Consolidation.cpp
  void consolidate(LayerState &layer, const States &work);
  void consolidateAtBreakEven(LayerState &layer, States &work);
  void fitIntoBound(LayerState &layer, const States &work);
  void returnToFactors(LayerState &layer, const States &work);
  struct Factors {
    std::vector<float> rows, weights;
    std::optional<consolidation::SvdResult> result; ///< none: no memory to try
  };
  /// Of a matrix, columns of H.
  Factors factorsOf(const LayerState &layer, const float *matrix) const;
  /// Makes them the state; false where they were not found or are more than
  /// `mostRank`.
  bool takeFactors(LayerState &layer, int32_t state, const Factors &factors,
                   int64_t mostRank);

  // Folds.cpp
  bool storeFactors(LayerState &layer, int32_t state,
                    const std::vector<float> &matrix);
  void fold(LayerState &layer, const DueWork &due);
  States foldBeyondRange(LayerState &layer, const States &work);

  std::shared_ptr<const Package> package;
  ss_engine_options options;
  CpuDevice device;
  MemoryBudget budget;
  std::vector<LayerState> layers;

  struct Slot {
    bool inUse = false;
    int64_t position = 0;
    uint64_t lastBatch = 0; ///< number of the last batch that named it
    /// Tokens that the layers of this step take; kNone: no layer was decoded.
    int32_t stepTokens = kNone;
    static constexpr int32_t kNone = -1;
    /// A step was given up when some layers had taken its tokens.
    bool isLeft = false;

    /// Of the step that ends; a layer has at least one to decode.
    int32_t tokens() const { return stepTokens == kNone ? 1 : stepTokens; }
    void leaveStep() {
      isLeft |= stepTokens != kNone;
      stepTokens = kNone;
    }
    void endStep() {
      position += tokens();
      stepTokens = kNone;
    }
  };
  std::vector<Slot> slots;
  std::vector<int32_t> freeSlots; ///< the next one last
  std::vector<uint64_t> requestKeys; ///< per slot, of its random bits
  /// Per layer; empty where it is not of form sink.
  std::vector<LayerSinks> sinks;
  std::vector<int32_t> firstHeads; ///< of the whole model, per layer
  uint64_t batches = 0;

  ArgumentValues values;
  int32_t workCount = 0; ///< of the launch that was queued last
  ss_statistics counters = {};
  std::vector<int64_t> allocated; ///< per layer, as last noted
  double allocatedSum = 0, liveSum = 0; ///< over the steps
  /// None: consolidation is inline or off. Last: its threads use the rest.
  std::unique_ptr<Consolidator> consolidator;
};

/// Whether a matrix in the pool keeps its digits in its storage.
bool isInRange(const LayerLayout &layout, const std::byte *matrix);
/// `out` of a densify kernel whose matrices stay in the pool: the pool itself,
/// or nothing where they have to be rounded and negative places say so.
float *storedOut(LayerState &layer);

} // namespace sinkstate::runtime

#endif
