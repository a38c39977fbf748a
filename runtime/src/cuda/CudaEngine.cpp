//===- CudaEngine.cpp - The states of a model on one GPU ------------------===//

#include "cuda/CudaEngine.h"

#include "capi/Failure.h"
#include "cuda/CudaRowConverter.h"
#include "engine/DecodeArguments.h"
#include "engine/FirstHead.h"
#include "engine/Sinks.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

CUstream asStream(Stream stream) { return static_cast<CUstream>(stream); }

// One word has the bits of both.
static_assert(((ss::kSlotOutOfRange | ss::kSlotTwice | ss::kSlotLeft) &
               ss::kSlotUnknown) == 0);

CUdeviceptr asAddress(const void *memory) {
  return CUdeviceptr(reinterpret_cast<uintptr_t>(memory));
}

} // namespace

void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan) {
  const CudaLayout layout(package.manifest(), options);
  plan.worst_case = plan.expected =
      layout.bytes + CudaConsolidator::plannedBytes(package.manifest(), layout,
                                                    options);
  plan.dense = layout.denseBytes;
  plan.hand_over = mostHandOverBytes(package.manifest(), layout);
  if (!layout.pooled)
    return;
  const PoolPlan pools = planPools(package.manifest(), layout);
  plan.worst_case += pools.worst;
  plan.expected += pools.expected;
  if (options.state_bytes_limit > 0)
    plan.worst_case = std::min(plan.worst_case, options.state_bytes_limit);
  plan.expected = std::min(plan.expected, plan.worst_case);
}

CudaEngine::CudaEngine(std::shared_ptr<const Package> loaded,
                       const ss_engine_options &options,
                       std::shared_ptr<const Driver> driver)
    : package(std::move(loaded)), manifest(package->manifest()),
      slotCount(options.slots), layout(manifest, options),
      context(Context::open(std::move(driver), options.device_ordinal)),
      unforeseen(size_t(options.slots)), inUse(size_t(options.slots)),
      requestKeys(size_t(options.slots)), decoded(layout.layers.size()) {
  for (const LayerManifest &layer : manifest.layers)
    sinks.push_back(LayerSinks::of(layer));
  firstHeads.resize(manifest.layers.size());
  CurrentContext current(*context);
  const KernelCompiler compiler(*context);
  kernels = std::make_unique<PackageKernels>(context, *package, compiler);
  bookkeeping = std::make_unique<DeviceSchedule>(context, compiler);
  handOver = std::make_unique<HandOverKernels>(context, compiler);
  mover = std::make_unique<PieceMover>(context, *handOver);
  denseWork = std::make_unique<DenseWork>(context);
  own = std::make_unique<OwnStream>(context);
  for (size_t i = 0; i < manifest.layers.size(); ++i)
    if (manifest.layers[i].compactsBefore)
      beforeLayers.push_back(int32_t(i));
  compactions = std::make_unique<CompactionStreams>(
      context, std::max(0, options.compaction_streams), beforeLayers.size(),
      std::any_of(layout.layers.begin(), layout.layers.end(),
                  [](const LayerPlaces &places) { return places.mostBack > 0; }));
  memory = DeviceMemory(context, size_t(layout.bytes));
  if (layout.pooled)
    makePools(compiler, options);
  prepareMemory();
  makeConsolidator(compiler, options);
  freeSlots.reserve(size_t(slotCount));
  for (int32_t slot = slotCount; slot-- > options.reserved_slots;)
    freeSlots.push_back(slot);
}

void CudaEngine::makeConsolidator(const KernelCompiler &compiler,
                                  const ss_engine_options &options) {
  ConsolidatedStates states{context, manifest, layout, memory.address(), {}};
  if (pools)
    states.readableRows = [this](size_t layer) {
      return pools->readableRows(layer);
    };
  consolidator = CudaConsolidator::create(states, options, compiler);
  if (consolidator && pools)
    pools->addReader();
}

CudaEngine::~CudaEngine() {
  try {
    const Release release(*context);
    // Kernels of the last step may still read what is freed now.
    SS_RELEASE(cuCtxSynchronize());
    consolidator.reset();
    kernels.reset();
    bookkeeping.reset();
    mover.reset();
    denseWork.reset();
    handOver.reset();
    own.reset();
    compactions.reset();
    pools.reset();
    memory = DeviceMemory();
  } catch (const Failure &) {
    // The context is gone, and everything in it.
  }
}

/// Tables that do not change: where every state's rows are, and what the
/// bookkeeping kernels know of the layers. Everything else starts as zero.
void CudaEngine::prepareMemory() {
  own->zero(memory.address(), memory.bytes());
  std::vector<ss::ScheduleLayer> buffered;
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    const LayerPlaces &places = layout.layers[i];
    scheduleNumber.push_back(layer.hasBuffer() ? int32_t(buffered.size()) : -1);
    if (layer.deferred)
      buffered.push_back({at<int32_t>(places.count), nullptr, nullptr, nullptr,
                          nullptr, nullptr, layer.heads, layer.buffer, 0, 1, 0,
                          0, 0});
    if (layer.denseForm)
      continue;
    if (!layout.pooled)
      fixRows(places);
    buffered.push_back({at<int32_t>(places.count), at<int32_t>(places.rank),
                        at<int32_t>(places.status), at<int32_t>(places.due),
                        at<int32_t>(places.dueCount),
                        at<int32_t>(places.order), layer.heads, layer.buffer,
                        layer.phase, 0, int32_t(places.sizes.breakEvenRank),
                        layer.compactsBefore, layer.draft});
  }
  own->copyIn(memory.address() + CUdeviceptr(layout.scheduleLayers),
              buffered.data(), buffered.size() * sizeof(ss::ScheduleLayer));
  own->wait();
}

/// Every state has the same number of rows, for ever.
void CudaEngine::fixRows(const LayerPlaces &places) {
  std::vector<int64_t> base(size_t(places.sizes.states));
  for (size_t state = 0; state < base.size(); ++state)
    base[state] = int64_t(state) * places.capacity;
  own->copyIn(memory.address() + CUdeviceptr(places.rowBase), base.data(),
              base.size() * sizeof(int64_t));
  const std::vector<int32_t> capacity(base.size(), int32_t(places.capacity));
  own->copyIn(memory.address() + CUdeviceptr(places.rowCapacity),
              capacity.data(), capacity.size() * sizeof(int32_t));
}

ss::Schedule CudaEngine::schedule() const {
  ss::Schedule tables = {};
  tables.layers = at<ss::ScheduleLayer>(layout.scheduleLayers);
  tables.position = at<int64_t>(layout.position);
  tables.compactions = at<int64_t>(layout.compactions);
  tables.faults = at<int32_t>(layout.faults);
  tables.step_tokens = at<int32_t>(layout.stepTokens);
  tables.token_position = at<int64_t>(layout.tokenPosition);
  tables.first_rows = at<int32_t>(layout.firstRows);
  tables.step_rows = at<int32_t>(layout.stepRows);
  tables.left = at<int32_t>(layout.left);
  for (const LayerManifest &layer : manifest.layers)
    tables.layer_count += layer.hasBuffer();
  tables.slots = slotCount;
  return tables;
}

const LayerManifest &CudaEngine::checkedLayer(int32_t layer) const {
  if (layer < 0 || layer >= layerCount())
    fail(SS_INVALID_ARGUMENT, "layer ", layer, ", expected 0 to ",
         layerCount() - 1, " (the recurrent layers of model '", manifest.model,
         "')");
  return manifest.layers[size_t(layer)];
}

void CudaEngine::checkSlot(int32_t slot) const {
  if (slot < 0 || slot >= slotCount)
    fail(SS_INVALID_ARGUMENT, "slot ", slot, ", expected 0 to ",
         slotCount - 1);
  if (!inUse[size_t(slot)])
    fail(SS_INVALID_ARGUMENT, "slot ", slot,
         " has no owner, expected a slot from ss_slot_alloc");
}

void CudaEngine::resetStates(int32_t slot, CUstream stream) {
  CurrentContext current(*context);
  if (isCaptured(stream))
    fail(SS_INVALID_ARGUMENT, "slot ", slot, " is made fresh on a stream that is "
         "captured, expected another one: every replay would do it again");
  joinCompactions(stream);
  bookkeeping->reset(schedule(), slot, stream);
  requestKeys[size_t(slot)] = 0;
  SS_CUDA(context->driver(),
          cuMemsetD8Async(memory.address() +
                              CUdeviceptr(layout.requestKeys) +
                              CUdeviceptr(slot) * sizeof(uint64_t),
                          0, sizeof(uint64_t), stream));
  if (pools)
    pools->release(slot, true, stream);
  unforeseen[size_t(slot)] = true;
  noteNewRows(slot, stream);
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    if (!manifest.layers[i].denseForm)
      continue;
    const int64_t bytes =
        manifest.layers[i].heads * layout.layers[i].sizes.denseStateBytes();
    const CUdeviceptr begin =
        memory.address() + CUdeviceptr(layout.layers[i].dense + slot * bytes);
    SS_CUDA(context->driver(),
            cuMemsetD8Async(begin, 0, size_t(bytes), stream));
  }
}

void CudaEngine::setRoundingKey(int32_t slot, uint64_t key, Stream stream) {
  checkNoCapture(asStream(stream));
  checkBetweenSteps(slot);
  copyIn(at<uint64_t>(layout.requestKeys) + slot, &key, sizeof key, stream);
  requestKeys[size_t(slot)] = key;
}

void CudaEngine::setSink(int32_t index, std::span<const float> means) {
  const LayerManifest &layer = checkedLayer(index);
  for (int32_t slot = 0; slot < slotCount; ++slot)
    checkSinks(layer, means, inUse[size_t(slot)] ? slot : -1);
  const LayerPlaces &places = layout.layers[size_t(index)];
  LayerSinks &ofLayer = sinks[size_t(index)];
  ofLayer.set(means);
  copyIn(at<float>(places.sink),
         ofLayer.directions.data(), means.size_bytes(), own->get());
  std::vector<int32_t> shared;
  for (int64_t head = 0; head < layer.heads; ++head)
    shared.push_back(ofLayer.hasSink(head) ? int32_t(places.sizes.sharedBytes())
                                           : 0);
  copyIn(at<int32_t>(places.sharedBytes), shared.data(), shared.size() * 4,
         own->get());
}

void CudaEngine::setFirstHead(int32_t index, int32_t head) {
  const LayerManifest &layer = checkedLayer(index);
  for (int32_t slot = 0; slot < slotCount; ++slot)
    checkFirstHead(layer, head, inUse[size_t(slot)] ? slot : -1);
  firstHeads[size_t(index)] = head;
}

uint64_t CudaEngine::roundingKey(int32_t slot) const {
  checkSlot(slot);
  return requestKeys[size_t(slot)];
}

void CudaEngine::noteNewRows(int32_t slot, CUstream stream) const {
  if (consolidator)
    consolidator->slotChanged(slot, stream);
}

int32_t CudaEngine::allocateSlot(Stream stream) {
  const bool withinStep = isWithinStep();
  if (freeSlots.empty() && withinStep && !freedWithin.empty())
    fail(SS_SLOTS_EXHAUSTED, "all ", slotCount, " slots have owners, or had them "
         "when the step began that has not ended (", freedWithin.size(),
         "): end it, free one before, or create the engine with more");
  if (freeSlots.empty())
    fail(SS_SLOTS_EXHAUSTED, "all ", slotCount,
         " slots have owners: free one first or create the engine with more");
  const int32_t slot = freeSlots.back();
  {
    CurrentContext current(*context);
    tendPools(asStream(stream), 1, false);
  }
  resetStates(slot, asStream(stream));
  freeSlots.pop_back();
  inUse[size_t(slot)] = true;
  std::erase(abandoned, slot);
  return slot;
}

void CudaEngine::freeSlot(int32_t slot) {
  checkSlot(slot);
  inUse[size_t(slot)] = false;
  // What a step has listed is done to the states that it began with.
  (isWithinStep() ? freedWithin : freeSlots).push_back(slot);
  if (pools)
    abandoned.push_back(slot);
}

void CudaEngine::resetSlot(int32_t slot, Stream stream) {
  checkSlot(slot);
  checkNoStep(slot);
  resetStates(slot, asStream(stream));
}

void CudaEngine::bindState(const LayerPlaces &places) {
  values.setPointer(Argument::Rows, at<float>(places.rows));
  values.setPointer(Argument::Weights, at<float>(places.weights));
  values.setPointer(Argument::RowBase, at<int64_t>(places.rowBase));
  values.setPointer(Argument::Rank, at<int32_t>(places.rank));
  values.setPointer(Argument::Status, at<int32_t>(places.status));
  bindBuffers(places);
}

void CudaEngine::bindBuffers(const LayerPlaces &places) {
  values.setPointer(Argument::Count, at<int32_t>(places.count));
  values.setPointer(Argument::BufferK, at<float>(places.bufferK));
  values.setPointer(Argument::BufferU, at<float>(places.bufferU));
  values.setPointer(Argument::BufferG, at<float>(places.bufferG));
}

/// A step of several tokens rounds by the position of each.
void CudaEngine::bindRounding(int32_t index) {
  values.setPointer(Argument::Positions,
                    at<int64_t>(stepTokens.empty() ? layout.position
                                                   : layout.tokenPosition));
  values.setPointer(Argument::RequestKeys, at<int64_t>(layout.requestKeys));
  values.setI32(Argument::Layer, manifest.layers[size_t(index)].index);
  values.setI32(Argument::FirstHead, firstHeads[size_t(index)]);
}

void CudaEngine::launchDecode(int32_t index, const ss_decode_args &args) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  bindDecodeArguments(layer, args, values);
  bindRounding(index);
  if (layer.denseForm)
    values.setPointer(Argument::Dense, at<float>(places.dense));
  else
    bindState(places);
  // Outside a step no order has been made.
  values.setPointer(Argument::Order, at<int32_t>(places.order));
  values.setI32(Argument::Ordered, stepBatch > 0 && stepOrdered);
  if (layer.deferred)
    bindBuffers(places);
  kernels->launch(layer.decode, values, int64_t(args.batch) * layer.heads,
                  asStream(args.stream));
}

/// Over the layer's work list, with the grid of a batch that is due as a whole.
void CudaEngine::launchCompact(int32_t index, int32_t batch,
                               int32_t countAhead, CUstream stream) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  bindState(places);
  values.setPointer(Argument::Work, at<int32_t>(places.work));
  values.setPointer(Argument::WorkCount, at<int32_t>(places.workCount));
  values.setI32(Argument::CountAhead, countAhead);
  values.setF32(Argument::PolicyValue, places.sizes.policyValue);
  // Where consolidation makes room before the next compaction, all rows may
  // be used by this one.
  values.setI32(Argument::MaxRank,
                consolidator ? std::min(places.sizes.maxRank,
                                        int32_t(places.capacity))
                             : places.maxRank);
  values.setPointer(Argument::RowCapacity, at<int32_t>(places.rowCapacity));
  values.setPointer(Argument::Sink, at<float>(places.sink));
  kernels->launch(layer.compact, values, int64_t(batch) * layer.heads, stream);
}

void CudaEngine::compactDue(int32_t index, int32_t batch, int32_t countAhead,
                            CUstream stream, bool beside) {
  bindRounding(index);
  if (pools && (unmoved == kAllLayers || unmoved == index))
    pools->move(size_t(index), stream);
  const LayerLayout &sizes = layout.layers[size_t(index)].sizes;
  if (!sizes.denseFallback)
    return launchCompact(index, batch, countAhead, stream);
  // A matrix of f16 may turn out not to fit, and is compacted then. Otherwise
  // these are different states.
  const bool apart = beside && sizes.storage != Storage::F16;
  const CUstream folding = apart ? compactions->forkFold(stream) : stream;
  if (apart)
    launchCompact(index, batch, countAhead, stream);
  launchFold(index, batch, countAhead, folding);
  if (layout.layers[size_t(index)].mostBack > 0)
    launchReturn(index, batch,
                 beside ? compactions->forkReturn(folding) : folding);
  if (!apart)
    launchCompact(index, batch, countAhead, stream);
}

void CudaEngine::synchronize(Stream stream) {
  CurrentContext current(*context);
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
  const bool withinStep = isWithinStep();
  if (withinStep && stepCapture == kNoCapture)
    compactions->wait();
  // Within a step the device has not been told yet what was compacted in it.
  if (consolidator && !withinStep)
    consolidator->drain(asStream(stream));
  const CUdeviceptr word = memory.address() + CUdeviceptr(layout.faults);
  int32_t faults = 0;
  own->copyOut(&faults, word, sizeof faults);
  if (faults == 0)
    return reportRows();
  own->zero(word, sizeof faults);
  own->wait();
  if (faults == ss::kSlotUnknown)
    fail(SS_INVALID_ARGUMENT, "a batch named a slot that is neither 0 to ",
         slotCount - 1, " nor padding by its rule, expected one of them: its "
         "rows were padding, no state was touched");
  if (faults & ss::kSlotOutOfRange)
    fail(SS_INVALID_ARGUMENT, "a batch named a slot above ", slotCount - 1,
         ", expected slots of this engine or negative ones: where it was the "
         "only row states may be damaged, reset them; else it was padding");
  if (faults & ss::kSlotLeft)
    fail(SS_INVALID_ARGUMENT,
         "a batch named a slot of a step that was given up, expected "
         "ss_slot_reset or ss_slot_free first: its states are of no token");
  fail(SS_INVALID_ARGUMENT,
       "a batch named a slot twice, expected every slot once: the rows after the "
       "first were padding");
}

std::unique_ptr<RowConverter>
CudaEngine::makeRowConverter(int64_t stagingBytes) {
  return std::make_unique<CudaRowConverter>(context, stagingBytes,
                                            at<int32_t>(layout.faults));
}

void *CudaEngine::allocateMemory(size_t bytes) {
  CurrentContext current(*context);
  const IgnoredCaptures ignored(*context);
  CUdeviceptr address = 0;
  SS_CUDA(context->driver(), cuMemAlloc(&address, bytes));
  return reinterpret_cast<void *>(address);
}

void CudaEngine::freeMemory(void *memory) {
  CurrentContext current(*context);
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuMemFree(asAddress(memory)));
}

void CudaEngine::synchronizeStream(CUstream stream) const {
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
}

void CudaEngine::copyIn(void *to, const void *from, size_t bytes,
                        Stream stream) {
  CurrentContext current(*context);
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(),
          cuMemcpyHtoDAsync(asAddress(to), from, bytes, asStream(stream)));
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
}

void CudaEngine::copyOut(void *to, const void *from, size_t bytes,
                         Stream stream) {
  CurrentContext current(*context);
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(),
          cuMemcpyDtoHAsync(to, asAddress(from), bytes, asStream(stream)));
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
}

} // namespace sinkstate::runtime::cuda
