//===- CudaEngine.h - The states of a model on one GPU ----------*- C++ -*-===//
//
// Everything a step reads and changes (slots, positions, counts, ranks, work
// lists) is device memory, so that the calls of a step only launch kernels and
// can be captured in a graph. The host knows which slots have owners and which
// layers of a step were decoded. Split by concern: CudaEngine.cpp (creation,
// slots, steps), CudaRows.cpp (the memory of rows), CudaInspection.cpp (looking
// at states).
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_CUDAENGINE_H
#define SINKSTATE_CUDA_CUDAENGINE_H

#include "cuda/CompactionStreams.h"
#include "cuda/CudaLayout.h"
#include "cuda/DeviceSchedule.h"
#include "cuda/Memory.h"
#include "cuda/PackageKernels.h"
#include "cuda/RowPools.h"
#include "cuda/consolidation/CudaConsolidator.h"
#include "engine/StateEngine.h"

#include <vector>

namespace sinkstate::runtime::cuda {

/// Bytes an engine on CUDA takes: exact, and without looking for a GPU.
void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan);

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

  void *allocateMemory(size_t bytes) override;
  void freeMemory(void *memory) override;
  void copyIn(void *to, const void *from, size_t bytes,
              Stream stream) override;
  void copyOut(void *to, const void *from, size_t bytes,
               Stream stream) override;

  /// The decode kernel of a layer alone, outside any step: for measurements.
  void launchDecode(int32_t layer, const ss_decode_args &args);
  /// Where the tables are, for measurements that set them.
  const CudaLayout &places() const { return layout; }
  CUdeviceptr begin() const { return memory.address(); }

private:
  void launchCompact(int32_t layer, int32_t batch, CUstream stream);
  const LayerManifest &checkedLayer(int32_t layer) const;
  void checkSlot(int32_t slot) const;
  void resetStates(int32_t slot, CUstream stream);
  void checkStep(const LayerManifest &layer, int32_t index,
                 const ss_decode_args &args) const;
  bool hasOrder(int32_t batch) const;
  void beginAfter(CUstream stream);
  void makeConsolidator(const KernelCompiler &compiler,
                        const ss_engine_options &options);
  void prepareMemory();
  void bindState(const LayerPlaces &places);
  void bindBuffers(const LayerPlaces &places);
  void fixRows(const LayerPlaces &places);

  // CudaRows.cpp
  void makePools(const KernelCompiler &compiler,
                 const ss_engine_options &options);
  bool isCaptured(CUstream stream) const;
  int64_t slotsInUse() const;
  void tendPools(CUstream stream, int32_t joining, bool stepFollows);
  void launchFold(int32_t layer, int32_t batch, int32_t countAhead,
                  CUstream stream);
  void launchReturn(const LayerManifest &layer, const LayerPlaces &places,
                    int32_t batch, CUstream stream);
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

  // CudaInspection.cpp
  void waitForAll() const;
  void addPairs(const LayerManifest &layer, const LayerPlaces &places,
                int32_t slot, float *states);
  std::vector<int32_t> wholeTable(int64_t offset, int64_t count) const;
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

  std::vector<bool> inUse;
  std::vector<int32_t> freeSlots; ///< the next one last

  /// Batch of the step that has begun; 0: none has.
  int32_t stepBatch = 0;
  bool stepOrdered = false; ///< its decodes have an order of programs
  std::vector<bool> decoded; ///< layers of this step
  int32_t decodedCount = 0;

  ArgumentValues values;
  /// Null: frozen parts are left as they are. Last: its threads use the rest.
  std::unique_ptr<CudaConsolidator> consolidator;
};

} // namespace sinkstate::runtime::cuda

#endif
