//===- RowPools.h - Rows of all states of an engine on a GPU ----*- C++ -*-===//
//
// The kernels of device/pool.cuh and device/rows.cuh, and the memory that they
// hand out. A step calls list() and provide() once, which may run beside its
// decodes; move() between a layer's decode and the launches over its lists, or
// moveOthers() before the decodes of the others; and settle() after the last
// compaction; all of it can be captured. tend() is for the time between steps.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CUDA_ROWPOOLS_H
#define SINKSTATE_CUDA_ROWPOOLS_H

#include "cuda/CudaLayout.h"
#include "cuda/KernelCompiler.h"
#include "cuda/Module.h"
#include "cuda/PoolMemory.h"
#include "cuda/RowPoolLayout.h"
#include "cuda/device/rows.cuh"

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace sinkstate::runtime::cuda {

/// Bytes of the pools of an engine, tables included.
struct PoolPlan {
  int64_t worst = 0, expected = 0;
  int64_t tables = 0; ///< of those
  /// Of one chunk of every pool: without that nothing works. `unit`: bytes that
  /// are mapped at a time; 0: any number.
  int64_t least(int64_t unit) const;
  std::vector<RowPoolSizes> pools;
};
PoolPlan planPools(const Manifest &manifest, const CudaLayout &layout);

class RowPools {
public:
  /// `begin`: where the offsets of `layout` start. `limit`: most bytes of rows,
  /// weights and tables; 0: none.
  RowPools(std::shared_ptr<const Context> context,
           const KernelCompiler &compiler, const Manifest &manifest,
           const CudaLayout &layout, CUdeviceptr begin, int64_t limit,
           const OwnStream &own);

  /// Rows of a layer's pool, from its beginning, that may be read: for any thread
  /// that keeps tend() from unmapping.
  int64_t readableRows(size_t layer) const {
    return memory[size_t(sizes.poolOf[layer])].readableRows();
  }
  /// Where the rows and the weights of a layer's pool begin.
  CUdeviceptr rowsOf(size_t layer) const;
  CUdeviceptr weightsOf(size_t layer) const;

  /// Lists, from what is due, `work` and `dense_work` of all layers, as far as
  /// they need no other rows, and asks for blocks for the states that do. No
  /// state changes. `ahead`: pairs that will be in a buffer beyond its count.
  void list(int32_t ahead, CUstream stream);
  /// Looks at what the next steps will ask, for the next provide() to report; beside
  /// decodes, and beside nothing that changes a state.
  void foresee(CUstream stream) const;
  /// Provides the blocks; nothing moves yet. `counted`: the launches run, and are
  /// not captured.
  void provide(CUstream stream, bool counted);
  /// Both for one layer, whose list of due states has changed within a step:
  /// for compactions that do not wait for the end of the step, each between this
  /// and settle(). cancel() first, once a step, with nothing begun.
  void planLayer(size_t layer, int32_t ahead, CUstream stream, bool counted);
  /// Moves a layer's states to their blocks and completes its lists: after its
  /// decode, in a step whose compactions come behind the decodes.
  void move(size_t layer, CUstream stream) const;
  /// The same for all layers but this one (-1: for all), before their decodes.
  void moveOthers(int32_t layer, CUstream stream) const;
  /// Nothing more will be launched over the lists of list() and move(). `begun`, by
  /// layer of the model: something was, and its folds are not counted; of the others
  /// what was planned is taken back.
  void cancel(const std::vector<bool> &begun, CUstream stream, bool counted);
  /// What was queued since the last step's end never runs.
  void forget() {
    std::fill(listed.begin(), listed.end(), false);
    unanswered = false;
  }
  /// In layers of f16, after densify and before the compaction: what does not
  /// fit the type stays in factors, and is listed for the compaction.
  void checkRange(size_t layer, CUstream stream) const;
  /// Of layers in 16 bits, before and behind the init kernel that decomposes some of
  /// their matrices.
  void widenBack(size_t layer, CUstream stream) const;
  void roundBack(size_t layer, CUstream stream) const;
  /// Ends what list() has begun: states that went dense take their block.
  void settle(CUstream stream);
  /// The same for one layer, while compactions of others are under way.
  void settleLayer(size_t layer, CUstream stream);
  /// Between steps: blocks of at least rows[i] rows for states[i] of a layer,
  /// whose contents are lost; their rank is 0. False where there is no memory,
  /// and some states may have got theirs. `scratch`: two tables on the device,
  /// one after the other, with room for all of them.
  bool place(size_t layer, std::span<const int32_t> states,
             std::span<const int32_t> rows, int32_t *scratch, CUstream stream);
  /// What place() has queued is done.
  void notePlaced(size_t layer) {
    memory[size_t(sizes.poolOf[layer])].notePlaced();
  }
  /// The states of a slot have no rows any more. `owned`: it has an owner.
  void release(int32_t slot, bool owned, CUstream stream) const;

  /// Looks at what the device has reported, maps more memory, gives back what
  /// nobody uses. Waits for nothing; what it queues on `stream` is no part of a
  /// step and is not to be captured. The worst of all pools. `released`: states
  /// have given rows back since the last step; `isCurrent`: the last report is of
  /// all that was queued; `stepFollows`: a step will report at once; `mayUnmap`:
  /// nobody reads rows during the call.
  PoolMemory::Room tend(const PoolDemand::Slots &slots, bool released,
                        bool isCurrent, bool stepFollows, bool mayUnmap,
                        CUstream stream);
  /// Lets the device report between two steps.
  void report(CUstream stream);
  /// Threads that read rows beside the steps: while there are any, a state moves
  /// in the step of its compaction alone.
  void addReader() { ++readers; }
  void removeReader() { --readers; }

  /// Parts of the tables that steps change, apart from what they count and what
  /// the host has told them: with states' own tables copied back to where they
  /// were, rows are where they were. Memory is not given back any more.
  struct Span {
    CUdeviceptr begin;
    size_t bytes;
  };
  std::vector<Span> keepTables();

  int64_t tableBytes() const { return int64_t(tables.bytes()); }
  int64_t heldBytes() const { return budget.held + tableBytes(); }
  int64_t peakBytes() const { return budget.peak + tableBytes(); }
  int64_t limit() const { return budget.limit; }
  /// Of heldBytes(), without the tables, as of the last step that has reported.
  struct Usage {
    int64_t blocks = 0; ///< of those that are taken, moving states' both
    int64_t chunks = 0; ///< with such a block
    int64_t mapped = 0; ///< whole chunks that may be taken
  };
  Usage usage() const;

  /// What the device has counted; waits for `own`.
  struct Counters {
    int64_t folds = 0, wentDense = 0, wentFactored = 0, tightened = 0,
            outOfRange = 0;
    int64_t steps = 0;
    int64_t blockBytes = 0; ///< of blocks in use, as of the last step
    /// Over the steps: bytes held, tables included, and bytes by the formula.
    double meanHeld = 0, meanLive = 0;
  };
  Counters counters(const OwnStream &own) const;
  /// The fault bits since the last call.
  int32_t takeFaults(const OwnStream &own) const;

private:
  bool mapMemory(const PoolDemand::Slots &slots, bool isCurrent, bool mayUnmap);
  void fillTables(const Manifest &manifest, const CudaLayout &layout,
                  CUdeviceptr begin, const OwnStream &own);
  ss::RowLayer layerTable(const LayerManifest &layer,
                          const LayerPlaces &places, CUdeviceptr begin,
                          int32_t pool) const;
  void list(int32_t first, int32_t count, int32_t ahead, CUstream stream);
  void launch(CUfunction function, unsigned x, unsigned y, unsigned threads,
              CUstream stream, void **parameters) const;
  void launchOverMatrices(CUfunction function, size_t layer, unsigned blocks,
                          CUstream stream) const;
  void launchOverRequests(CUfunction function, int32_t layer, CUstream stream,
                          int32_t again = 0) const;
  unsigned wideGrid() const;

  std::shared_ptr<const Context> context;
  RowPoolLayout sizes;
  Module module;
  /// By layer, as in `tableOf`: it was listed, and neither settled nor cancelled since.
  std::vector<bool> listed;
  bool unanswered = false; ///< something was listed since the last provide()
  CUfunction planFunction, foreseeFunction, placeFunction, provideFunction, moveFunction,
      moveAllFunction, checkFunction, widenFunction, roundFunction, settleFunction,
      cancelFunction, releaseFunction;
  PoolMemory::Budget budget;
  std::deque<PoolMemory> memory; ///< by pool
  DeviceMemory tables;
  ss::RowTables arguments = {};
  std::vector<int32_t> tableOf; ///< by layer: its number among RowTables'
  int32_t readers = 0;
};

} // namespace sinkstate::runtime::cuda

#endif
