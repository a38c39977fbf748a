//===- CudaEngine.h - The states of a model on one GPU ----------*- C++ -*-===//
//
// Everything a step reads and changes (slots, positions, counts, ranks, work
// lists) is device memory, so that the calls of a step only launch kernels and
// can be captured in a graph. The host knows which slots have owners and which
// layers of a step were decoded. Split by concern: CudaEngine.cpp (creation,
// slots), CudaStep.cpp (steps), CudaRows.cpp (the memory of rows),
// CudaInspection.cpp (looking at states), CudaTokens.cpp, CudaRollback.cpp, CudaExchange.cpp and
// CudaDense.cpp (hand-over).
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CUDAENGINE_H
#define SINKSTATE_CUDA_CUDAENGINE_H

#include "cuda/CompactionStreams.h"
#include "cuda/CudaLayout.h"
#include "cuda/DenseWork.h"
#include "cuda/DeviceSchedule.h"
#include "cuda/HandOverKernels.h"
#include "cuda/Memory.h"
#include "cuda/PackageKernels.h"
#include "cuda/RowPools.h"
#include "cuda/consolidation/CudaConsolidator.h"
#include "cuda/PieceMover.h"
#include "engine/StateEngine.h"
#include "handover/Counters.h"
#include "handover/InitialState.h"
#include "handover/TokenCursor.h"

#include <vector>

namespace sinkstate::runtime::cuda {

/// Bytes an engine on CUDA takes: exact, but for hand-over's, of which it is the
/// most, and without looking for a GPU.
void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan);

/// Device memory that hand-over takes at most, beside that: CudaDense.cpp.
int64_t mostHandOverBytes(const Manifest &manifest, const CudaLayout &layout);

/// The engine of the CUDA device. Options are resolved.
class CudaEngine final : public StateEngine {
public:
  CudaEngine(std::shared_ptr<const Package> package,
             const ss_engine_options &options,
             std::shared_ptr<const Driver> driver);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine &) = delete;
  CudaEngine &operator=(const CudaEngine &) = delete;

  int32_t allocateSlot(Stream stream) override;
  void freeSlot(int32_t slot) override;
  void resetSlot(int32_t slot, Stream stream) override;
  void setRoundingKey(int32_t slot, uint64_t key, Stream stream) override;
  uint64_t roundingKey(int32_t slot) const override;
  void setSink(int32_t layer, std::span<const float> means) override;
  void setFirstHead(int32_t layer, int32_t head) override;

  void leaveStep(Stream stream) override;
  void beginStep(std::span<const int32_t> slots, Stream stream) override;
  void decodeLayer(int32_t layer, const ss_decode_args &args) override;
  void endStep(std::span<const int32_t> slots, Stream stream) override;
  void synchronize(Stream stream) override;
  void tend(Stream stream) override;

  int32_t layerCount() const override { return int32_t(layout.layers.size()); }
  void layerInfo(int32_t layer, ss_layer_info &info) const override;
  void densify(int32_t layer, int32_t slot, float *out) override;
  void ranks(int32_t layer, int32_t slot, int32_t *ranks) const override;
  void status(int32_t layer, int32_t slot, int32_t *status) const override;
  void statistics(ss_statistics &out) const override;
  void layerStatistics(int32_t layer, ss_layer_statistics &out) const override;
  MemoryParts memoryParts() const override;

  // Hand-over. What waits, waits for what its stream has; position() and
  // rollbackRoom() wait for the whole GPU.
  void decodeTokens(int32_t layer, const ss_decode_args &args,
                    const ss_token_args &tokens) override;
  void rollback(std::span<const int32_t> slots,
                std::span<const int32_t> tokens, Stream stream) override;
  int32_t rollbackRoom(int32_t slot) const override;
  int64_t position(int32_t slot) const override;
  SlotImage exportSlot(int32_t slot, bool contents, Stream stream) override;
  void importSlot(int32_t slot, int64_t position,
                  std::span<const PlacedLayer> placed, Stream stream) override;
  void fork(int32_t from, int32_t to, Stream stream) override;
  void setPosition(int32_t slot, int64_t position, Stream stream) override;
  void densifyTo(int32_t layer, const DenseStates &states, void *out,
                 Stream stream) override;
  void initialise(int32_t layer, const DenseStates &states, const void *dense,
                  const ss_init_options &options, Stream stream) override;
  const Manifest &manifestOf() const override { return manifest; }
  bool holdsDense(int32_t layer) const override {
    return layout.layers[size_t(layer)].sizes.denseFallback;
  }
  int32_t mostComponents(int32_t layer) const override {
    return int32_t(layout.layers[size_t(layer)].capacity);
  }
  const LayerSinks &sinksOf(int32_t layer) const override {
    return sinks[size_t(layer)];
  }
  std::unique_ptr<RowConverter>
  makeRowConverter(int64_t stagingBytes) override;

  void *allocateMemory(size_t bytes) override;
  void freeMemory(void *memory) override;
  void copyIn(void *to, const void *from, size_t bytes,
              Stream stream) override;
  void copyOut(void *to, const void *from, size_t bytes,
               Stream stream) override;

  /// Where the tables are, for measurements that set them.
  const CudaLayout &places() const { return layout; }
  CUdeviceptr begin() const { return memory.address(); }

  // CudaMeasurement.cpp: decodes alone, and states that are put where they were,
  // again and again.
  /// The decode kernels of all layers, args[i] for layer i, in the order that the
  /// beginning of a step gives their programs; no step begins, so nothing is
  /// compacted: no buffer may be full.
  void launchDecodes(std::span<const int32_t> slots,
                     std::span<const ss_decode_args> args, Stream stream);
  /// Blocks of at least rows[i] rows for states[i] of a layer, all of whose rows
  /// are in pools; where they begin, in rows. What they held is lost, their
  /// rank is 0. Waits for the stream.
  std::vector<int64_t> giveBlocks(int32_t layer,
                                  std::span<const int32_t> states,
                                  std::span<const int32_t> rows,
                                  Stream stream);
  /// What steps change beside rows and buffers, where it is. From then on memory
  /// of rows grows only.
  std::vector<RowPools::Span> keepTables();
  /// Those were copied back, and rows with them: no result of consolidation that
  /// was made from others may land.
  void tablesCameBack(Stream stream) const;
  /// Lets the device say, as steps do, what the next ones will take; waits for it.
  void reportRoom(Stream stream) const;
  /// `pieces` is device memory.
  void copyPieces(const ss::Piece *pieces, int64_t count, Stream stream) const;

private:
  void launchDecode(int32_t layer, const ss_decode_args &args);
  /// What the layer's states that are due need, matrices and compactions.
  /// `beside`: until the end of the step, and nothing on `stream` waits for it.
  void compactDue(int32_t layer, int32_t batch, int32_t countAhead,
                  CUstream stream, bool beside);
  /// `countAhead`: pairs beyond the slots' counts.
  void launchCompact(int32_t layer, int32_t batch, int32_t countAhead,
                     CUstream stream);
  int32_t layersAhead(const LayerManifest &layer, int32_t batch) const;
  void compactAhead(int32_t layer, int32_t batch, CUstream stream);
  const LayerManifest &checkedLayer(int32_t layer) const;
  void checkSlot(int32_t slot) const;
  void resetStates(int32_t slot, CUstream stream);
  void checkStep(const LayerManifest &layer, int32_t index,
                 const ss_decode_args &args);
  bool hasOrder(int32_t batch) const;
  void planStep(std::span<const int32_t> slots, CUstream stream);
  std::span<const int32_t> rowsOf(std::span<const int32_t> slots,
                                  CUstream stream);
  void moveBehind(int32_t first);
  static constexpr uint64_t kNoCapture = 0, kSomeCapture = ~uint64_t(0);
  uint64_t captureOf(CUstream stream) const;
  void dropLostStep(uint64_t capture);
  bool isWithinStep();
  void checkCapture(CUstream stream) const;
  void openStep(uint64_t capture);
  void closeStep();
  void joinCompactions(CUstream stream);
  void giveStepUp(CUstream stream);
  void beginAfter(CUstream stream);
  void makeConsolidator(const KernelCompiler &compiler,
                        const ss_engine_options &options);
  void prepareMemory();
  void bindState(const LayerPlaces &places);
  void bindBuffers(const LayerPlaces &places);
  void bindRounding(int32_t layer);
  void fixRows(const LayerPlaces &places);

  // CudaRows.cpp
  void makePools(const KernelCompiler &compiler,
                 const ss_engine_options &options);
  bool isCaptured(CUstream stream) const;
  int64_t slotsInUse() const;
  PoolDemand::Slots slotsForPools(int32_t joining);
  void tendPools(CUstream stream, int32_t joining, bool stepFollows);
  void launchFold(int32_t layer, int32_t batch, int32_t countAhead,
                  CUstream stream);
  void launchReturn(int32_t layer, int32_t batch, CUstream stream);
  std::vector<int64_t> placeRows(int32_t layer, std::span<const int32_t> states,
                                 std::span<const int32_t> rows,
                                 CUstream stream);
  [[noreturn]] void failForRows(int32_t layer);
  void reportRows();
  void rowStatistics(ss_statistics &out) const;
  ss::Schedule schedule() const;
  /// The device address `offset` bytes into the engine's memory.
  template <typename T> T *at(int64_t offset) const {
    return memory.at<T>(offset);
  }
  void synchronizeStream(CUstream stream) const;

  CUdeviceptr addressOf(int64_t offset) const {
    return memory.address() + CUdeviceptr(offset);
  }

  /// The rows of a slot are about to be others, but not by a step: results of
  /// consolidation that were made from them are stale.
  void noteNewRows(int32_t slot, CUstream stream) const;

  // CudaTokens.cpp
  void prepareToken(int32_t layer, int32_t countAhead, CUstream stream);
  void noteCompacted(int32_t layer, CUstream stream) const;
  void compactBefore(int32_t layer, int32_t batch, CUstream stream);
  void noteStepTokens(const LayerManifest &layer, const ss_decode_args &args,
                      std::span<const int32_t> slots,
                      std::vector<int32_t> counts);
  void decodeOneEach(int32_t layer, const TokenCursor &cursor);

  // CudaRollback.cpp
  void checkNoStep(int32_t slot);
  void checkNoCapture(CUstream stream) const;
  void checkBetweenSteps(int32_t slot);
  SlotCounters countersOf(int32_t slot, CUstream stream) const;

  // CudaExchange.cpp
  /// One layer of a slot, or some heads of it.
  struct SlotTables {
    std::vector<int32_t> rank, status, folds, count;
    std::vector<int32_t> since; ///< one, ss::FrozenLayer::since; 0: no cadence
    std::vector<int64_t> rowBase;
  };
  std::vector<int64_t> takeRows(int32_t layer, std::span<const int32_t> states,
                                std::span<const int64_t> rows,
                                CUstream stream);
  std::vector<int64_t> rowsFor(int32_t layer, std::span<const int32_t> states,
                               std::span<const int32_t> rank,
                               CUstream stream);
  CUdeviceptr cadenceOf(size_t layer, int32_t slot) const;
  std::vector<SlotTables> tablesOf(int32_t slot, CUstream stream);
  std::vector<PieceMover::HostPiece>
  piecesOf(int32_t layer, int32_t slot, const LayerImage &image,
           int64_t firstHead, int64_t firstKeyHead,
           std::span<const int64_t> rowBase, const std::byte *stored) const;
  void addForkedTables(size_t layer, int32_t from, int32_t to,
                       std::vector<PieceMover::Copy> &pieces) const;
  void copySlot(int32_t from, int32_t to, const std::vector<SlotTables> &tables,
                CUstream stream);

  // CudaDense.cpp
  struct DensePart;
  struct InitArrays;
  struct Adoption;
  void checkDenseStates(const DenseStates &states);
  static DensePart partOf(const LayerManifest &layer,
                          const ss_dense_layout &layout,
                          const DenseStates &states);
  template <typename Body>
  static void inParts(const DensePart &all, int64_t most, const Body &body);
  template <typename T>
  void copyTable(T *to, const std::vector<T> &values, CUstream stream);
  ss_dense_layout ownLayout(const LayerManifest &layer) const;
  static ss::DenseMatrices matricesOf(const LayerManifest &layer,
                                      const ss_dense_layout &layout,
                                      const void *elements,
                                      const int64_t *first, int64_t count);
  void copyDenseForm(int32_t layer, const DensePart &all,
                     const ss_dense_layout &callers, void *memory, bool out,
                     CUstream stream);
  void launchInit(const LayerManifest &layer, const LayerPlaces &places,
                  const ss_init_options &options, const InitArrays &arrays,
                  std::vector<InitialState> &states, CUstream stream);
  void takeSinks(const LayerManifest &layer,
                 std::vector<InitialState> &states) const;
  void finishOnHost(const LayerManifest &layer, const LayerPlaces &places,
                    float eps, const InitArrays &arrays,
                    std::vector<InitialState> &states, CUstream stream);
  void placeState(const LayerPlaces &places, const InitArrays &arrays,
                  const InitialState &state, const InitialForm &form,
                  int64_t number, int64_t base, Adoption &adoption) const;
  void adopt(int32_t layer, const InitArrays &arrays,
             const std::vector<InitialState> &states, CUstream stream);

  // CudaMemoryParts.cpp
  void addRows(MemoryParts &parts, size_t layer, int64_t &blockBytes) const;

  // CudaInspection.cpp
  void waitForAll() const;
  void addPairs(const LayerManifest &layer, const LayerPlaces &places,
                int32_t slot, float *states);
  std::vector<int32_t> wholeTable(int64_t offset, int64_t count) const;
  int64_t heldRowBytes(const LayerPlaces &places, bool denseForm) const;
  void readState(int64_t offset, int32_t layer, int32_t slot,
                 int32_t *values) const;

  std::shared_ptr<const Package> package;
  const Manifest &manifest;
  int32_t slotCount;
  CudaLayout layout;
  std::shared_ptr<const Context> context;
  DeviceMemory memory;
  std::unique_ptr<OwnStream> own;
  std::unique_ptr<PackageKernels> kernels;
  std::unique_ptr<DeviceSchedule> bookkeeping;
  std::unique_ptr<CompactionStreams> compactions;
  std::unique_ptr<RowPools> pools; ///< none: every state has its rows
  int32_t exhaustion = SS_EXHAUSTION_REFUSE;
  int64_t refusedCalls = 0;
  /// Freed slots whose rows the device still holds.
  std::vector<int32_t> abandoned;
  /// Of which the last step that looked ahead knew nothing, or another position.
  std::vector<bool> unforeseen;
  std::unique_ptr<HandOverKernels> handOver;
  std::unique_ptr<PieceMover> mover;
  std::unique_ptr<DenseWork> denseWork;
  /// Per layer, its number in the schedule; -1: it has no buffer.
  std::vector<int32_t> scheduleNumber;

  std::vector<bool> inUse;
  std::vector<int32_t> freeSlots; ///< the next one last
  std::vector<int32_t> freedWithin; ///< the open step; free when it is over
  std::vector<uint64_t> requestKeys; ///< as the device has them
  std::vector<LayerSinks> sinks;     ///< as the device has them
  std::vector<int32_t> firstHeads;   ///< of the whole model, per layer

  /// A step has begun to be queued and has not ended, in this capture.
  bool stepOpen = false;
  uint64_t stepCapture = kNoCapture;
  /// Its batch, once it takes layers; 0: none does.
  int32_t stepBatch = 0;
  const int32_t *stepSlots = nullptr; ///< as its beginning names them
  /// Its states are not those of the step before any more.
  bool stepChanges = false;
  /// A step that had changed states was given up, here or in a graph.
  bool mayBeLeft = false;
  bool stepOrdered = false; ///< its decodes have an order of programs
  /// The layer whose rows its own compaction moves in this step: all, or one.
  static constexpr int32_t kAllLayers = -1;
  int32_t unmoved = kAllLayers;
  std::vector<bool> decoded; ///< layers of this step
  int32_t decodedCount = 0;
  /// Layers that compact before their tokens, and so many of them have begun to
  /// in this step.
  std::vector<int32_t> beforeLayers;
  size_t aheadCount = 0;
  /// Tokens that its layers take, by row; empty: one each.
  std::vector<int32_t> stepTokens;

  ArgumentValues values;
  /// Null: frozen parts are left as they are. Last: its threads use the rest.
  std::unique_ptr<CudaConsolidator> consolidator;
};

} // namespace sinkstate::runtime::cuda

#endif
