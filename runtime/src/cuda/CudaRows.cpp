//===- CudaRows.cpp - The memory of rows on a GPU -------------------------===//

#include "cuda/CudaEngine.h"

#include "capi/Failure.h"
#include "observe/Log.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {

/// Blocks of a fold on each multiprocessor.
static constexpr int kFoldBlocks = 4;
/// Blocks that decompose matrices of a layer. In nearly every step there are none, and
/// each that finds that out has taken a decode's place. Where there are some, several
/// layers have them in the same step, whose blocks together fill the GPU.
static constexpr int64_t kReturnBlocks = 32;

void CudaEngine::makePools(const KernelCompiler &compiler,
                           const ss_engine_options &options) {
  exhaustion = options.exhaustion;
  int64_t limit = options.state_bytes_limit;
  if (limit > 0) {
    const int64_t consolidation =
        CudaConsolidator::plannedBytes(manifest, layout, options);
    limit -= layout.bytes + consolidation;
    const PoolPlan plan = planPools(manifest, layout);
    const int64_t least = plan.tables + plan.least(context->mappingUnit());
    if (limit < least)
      fail(SS_OUT_OF_MEMORY, "options.state_bytes_limit is ",
           options.state_bytes_limit, ", expected at least the ",
           layout.bytes + consolidation + least, " bytes that buffers, tables and the first "
           "rows of ", slotCount, " slots take: use fewer slots");
  }
  pools = std::make_unique<RowPools>(context, compiler, manifest, layout,
                                     memory.address(), limit, *own);
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    if (manifest.layers[i].denseForm)
      continue;
    layout.layers[i].rows = int64_t(pools->rowsOf(i) - memory.address());
    layout.layers[i].weights = int64_t(pools->weightsOf(i) - memory.address());
  }
}

/// Also where the driver cannot say: the legacy stream while another one is
/// captured.
bool CudaEngine::isCaptured(CUstream stream) const {
  return captureOf(stream) != kNoCapture;
}

int64_t CudaEngine::slotsInUse() const {
  return std::count(inUse.begin(), inUse.end(), true);
}

/// What the pools are told once; `joining`: slots that are handed out behind that.
PoolDemand::Slots CudaEngine::slotsForPools(int32_t joining) {
  const int64_t joined = std::count(unforeseen.begin(), unforeseen.end(), true);
  unforeseen.assign(unforeseen.size(), false);
  return {slotsInUse() + joining, joined, joining};
}

/// Memory for the steps to come, unless the step is captured: then it is the
/// caller who calls for it between replays. Not within a step, whose requests
/// are not settled.
void CudaEngine::tendPools(CUstream stream, int32_t joining,
                           bool stepFollows) {
  if (!pools || isWithinStep() || isCaptured(stream))
    return;
  const IgnoredCaptures ignored(*context);
  const bool released = !abandoned.empty();
  for (int32_t slot : abandoned) {
    pools->release(slot, false, stream);
    if (consolidator)
      consolidator->slotChanged(slot, stream);
  }
  abandoned.clear();
  // What is being read now stays where it is, and is unmapped by a later call.
  std::unique_lock<std::mutex> reads;
  if (consolidator)
    reads = consolidator->tryHoldReads();
  const bool mayUnmap = !consolidator || reads.owns_lock();
  auto isEnough = [&](bool newlyReleased, bool isCurrent) {
    const PoolMemory::Room room =
        pools->tend(slotsForPools(joining), newlyReleased, isCurrent, stepFollows,
                    mayUnmap, stream);
    return room == PoolMemory::Room::Enough ||
           (room == PoolMemory::Room::Short && exhaustion == SS_EXHAUSTION_TIGHTEN);
  };
  if (isEnough(released, false))
    return;
  // What pools have for steps to come may serve others, once the device has said
  // that no state is there, and what the next step takes is then known: waited for,
  // rather than refused.
  pools->report(stream);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  if (isEnough(false, true))
    return;
  ++refusedCalls;
  fail(SS_OUT_OF_MEMORY, "the states hold ", layout.bytes + pools->heldBytes(),
       " bytes, and the next step may need more than the GPU",
       pools->limit() > 0 ? " or options.state_bytes_limit" : "",
       " has: free slots and try again");
}

void CudaEngine::tend(Stream stream) {
  if (isWithinStep())
    fail(SS_INVALID_ARGUMENT,
         "a step has begun and not ended, expected ss_end_step first");
  CurrentContext current(*context);
  tendPools(static_cast<CUstream>(stream), 0, false);
}

/// Rows for states whose contents come from outside a step: see
/// RowPools::place. Returns their first rows; waits for the stream.
std::vector<int64_t> CudaEngine::placeRows(int32_t index,
                                           std::span<const int32_t> states,
                                           std::span<const int32_t> rows,
                                           CUstream stream) {
  const IgnoredCaptures ignored(*context);
  const LayerPlaces &places = layout.layers[size_t(index)];
  // What is known to be in use is then what is.
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  auto *scratch = at<int32_t>(places.placing);
  if (!pools->place(size_t(index), states, rows, scratch, stream))
    failForRows(index);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
  pools->notePlaced(size_t(index));
  const std::vector<int32_t> capacity =
      wholeTable(places.rowCapacity, places.sizes.states);
  std::vector<int64_t> bases(static_cast<size_t>(places.sizes.states));
  own->copyOut(bases.data(), memory.address() + CUdeviceptr(places.rowBase),
               bases.size() * sizeof(int64_t));
  std::vector<int64_t> result;
  for (size_t i = 0; i < states.size(); ++i) {
    if (capacity[size_t(states[i])] < rows[i])
      failForRows(index);
    result.push_back(bases[size_t(states[i])]);
  }
  return result;
}

void CudaEngine::failForRows(int32_t index) {
  ++refusedCalls;
  fail(SS_OUT_OF_MEMORY, "the states hold ", layout.bytes + pools->heldBytes(),
       " bytes, and there is no more for the rows of layer '",
       manifest.layers[size_t(index)].name, "': free slots and try again");
}

/// Matrices of states that are due: those that are dense already, in place, and
/// those that become so.
void CudaEngine::launchFold(int32_t index, int32_t batch, int32_t countAhead,
                            CUstream stream) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  bindState(places);
  values.setPointer(Argument::Work, at<int32_t>(places.denseWork));
  values.setPointer(Argument::WorkCount, at<int32_t>(places.denseCount));
  values.setI32(Argument::CountAhead, countAhead);
  values.setPointer(Argument::Out, places.sizes.storage == Storage::F32
                                       ? at<float>(places.rows)
                                       : nullptr);
  values.setPointer(Argument::OutBase, at<int64_t>(places.densePlace));
  // Few states are held as matrices, and blocks without work stand in the way of
  // the next decode's.
  kernels->launch(layer.densify, values, int64_t(batch) * layer.heads, stream,
                  int64_t(kFoldBlocks) * context->multiprocessors());
  if (places.sizes.storage == Storage::F16)
    pools->checkRange(size_t(index), stream);
}

/// Decomposes some of the matrices that were just written, into blocks beside
/// them: what comes of it is decided when the step ends.
void CudaEngine::launchReturn(int32_t index, int32_t batch, CUstream stream) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  const bool isStaged = places.mostStaged > 0;
  if (isStaged)
    pools->widenBack(size_t(index), stream);
  values.setPointer(Argument::Factors, at<float>(isStaged ? places.stagedFactors
                                                          : places.rows));
  values.setPointer(Argument::Weights, at<float>(isStaged ? places.stagedWeights
                                                          : places.weights));
  values.setPointer(Argument::RowBase, at<int64_t>(places.backBase));
  values.setPointer(Argument::Rank, at<int32_t>(places.backRank));
  values.setPointer(Argument::Status, at<int32_t>(places.backStatus));
  values.setPointer(Argument::Work, at<int32_t>(places.backWork));
  values.setPointer(Argument::WorkCount, at<int32_t>(places.backCount));
  values.setPointer(Argument::Matrices, at<float>(isStaged ? places.stagedMatrix
                                                           : places.rows));
  values.setPointer(Argument::MatrixBase, at<int64_t>(places.backMatrix));
  values.setF32(Argument::PolicyValue, places.sizes.dropBelow);
  // One more than is taken: so many are too many.
  values.setI32(Argument::MaxRank, places.mostBack + 1);
  values.setI64(Argument::Seed, 0);
  const int64_t most = int64_t(batch) * layer.heads;
  kernels->launch(layer.init, values,
                  isStaged ? std::min<int64_t>(most, places.mostStaged) : most,
                  stream, kReturnBlocks);
  if (isStaged)
    pools->roundBack(size_t(index), stream);
}

void CudaEngine::rowStatistics(ss_statistics &out) const {
  const RowPools::Counters counters = pools->counters(*own);
  const int64_t tables = pools->tableBytes();
  const int64_t fixed =
      layout.bytes + (consolidator ? consolidator->bytes() : 0);
  out.allocated_bytes = fixed + pools->heldBytes();
  out.allocated_peak = fixed + pools->peakBytes();
  out.used_bytes += tables;
  out.folds = counters.folds;
  out.compactions -= counters.folds; // the schedule counts what was due
  out.went_dense = counters.wentDense;
  out.went_factored = counters.wentFactored;
  out.tightened = counters.tightened;
  out.out_of_range = counters.outOfRange;
  out.refused = refusedCalls;
  out.steps = counters.steps;
  if (counters.steps == 0)
    return;
  out.mean_allocated_bytes = double(fixed) + counters.meanHeld;
  out.mean_live_bytes = counters.meanLive;
  for (size_t i = 0; i < layout.layers.size(); ++i)
    if (manifest.layers[i].denseForm)
      out.mean_live_bytes += double(slotsInUse() * manifest.layers[i].heads *
                                    layout.layers[i].sizes.liveBytes(-1, false));
}

/// After a synchronization: what the device could not ask anybody about.
void CudaEngine::reportRows() {
  if (!pools)
    return;
  const int32_t faults = pools->takeFaults(*own);
  if (faults & ss::kTooManyRequests)
    fail(SS_INVALID_ARGUMENT,
         "a batch named a slot twice, expected every slot once: states may be "
         "damaged, reset them");
  if (!(faults & ss::kRowsDenied))
    return;
  if (exhaustion == SS_EXHAUSTION_TIGHTEN) {
    writeLog(SS_LOG_WARNING, "memory",
             "states were compacted within the rows they have");
    return;
  }
  ++refusedCalls;
  fail(SS_OUT_OF_MEMORY,
       "states were compacted within the rows they have, which dropped some "
       "that the policy would have kept (status bit 8): free slots, or call "
       "ss_engine_tend between the replays of a graph");
}

} // namespace sinkstate::runtime::cuda
