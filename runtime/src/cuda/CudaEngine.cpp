//===- CudaEngine.cpp - The states of a model on one GPU ------------------===//

#include "cuda/CudaEngine.h"

#include "capi/Failure.h"
#include "engine/DecodeArguments.h"

#include <algorithm>

namespace sinkstate::runtime::cuda {
namespace {

CUstream asStream(Stream stream) { return static_cast<CUstream>(stream); }

CUdeviceptr asAddress(const void *memory) {
  return CUdeviceptr(reinterpret_cast<uintptr_t>(memory));
}

} // namespace

void planMemory(const Package &package, const ss_engine_options &options,
                ss_memory_plan &plan) {
  const CudaLayout layout(package.manifest(), options);
  plan.worst_case = plan.expected = layout.bytes;
  plan.dense = layout.denseBytes;
}

CudaEngine::CudaEngine(std::shared_ptr<const Package> loaded,
                       const ss_engine_options &options,
                       std::shared_ptr<const Driver> driver)
    : package(std::move(loaded)), manifest(package->manifest()),
      slotCount(options.slots), layout(manifest, options),
      context(Context::open(std::move(driver), options.device_ordinal)),
      inUse(size_t(options.slots)), decoded(layout.layers.size()) {
  CurrentContext current(*context);
  const KernelCompiler compiler(context->architecture());
  kernels = std::make_unique<PackageKernels>(context, *package, compiler);
  bookkeeping = std::make_unique<DeviceSchedule>(context, compiler);
  handOver = std::make_unique<HandOverKernels>(context, compiler);
  mover = std::make_unique<PieceMover>(context, *handOver);
  denseWork = std::make_unique<DenseWork>(context);
  own = std::make_unique<OwnStream>(context);
  memory = DeviceMemory(context, size_t(layout.bytes));
  prepareMemory();
  freeSlots.reserve(size_t(slotCount));
  for (int32_t slot = slotCount; slot-- > 0;)
    freeSlots.push_back(slot);
}

CudaEngine::~CudaEngine() {
  try {
    CurrentContext current(*context);
    // Kernels of the last step may still read what is freed now.
    (void)context->driver().functions().cuCtxSynchronize();
    kernels.reset();
    bookkeeping.reset();
    mover.reset();
    denseWork.reset();
    handOver.reset();
    own.reset();
    memory = DeviceMemory();
  } catch (const Failure &) {
    // The context is gone, and everything in it.
  }
}

/// Tables that do not change: where every state's rows are, and what the
/// bookkeeping kernels know of the layers. Everything else starts as zero.
void CudaEngine::prepareMemory() {
  own->zero(memory.address(), memory.bytes());
  std::vector<ss::ScheduleLayer> factored;
  for (size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    const LayerPlaces &places = layout.layers[i];
    factoredNumber.push_back(layer.denseForm ? -1 : int32_t(factored.size()));
    if (layer.denseForm)
      continue;
    std::vector<int64_t> base(size_t(places.sizes.states));
    for (size_t state = 0; state < base.size(); ++state)
      base[state] = int64_t(state) * places.capacity;
    own->copyIn(memory.address() + CUdeviceptr(places.rowBase), base.data(),
                base.size() * sizeof(int64_t));
    const std::vector<int32_t> capacity(base.size(), int32_t(places.capacity));
    own->copyIn(memory.address() + CUdeviceptr(places.rowCapacity),
                capacity.data(), capacity.size() * sizeof(int32_t));
    factored.push_back({at<int32_t>(places.count), at<int32_t>(places.rank),
                        at<int32_t>(places.status), at<int32_t>(places.work),
                        at<int32_t>(places.workCount), layer.heads,
                        layer.buffer, layer.phase, layer.draft});
  }
  own->copyIn(memory.address() + CUdeviceptr(layout.scheduleLayers),
              factored.data(), factored.size() * sizeof(ss::ScheduleLayer));
  own->wait();
}

ss::Schedule CudaEngine::schedule() const {
  ss::Schedule tables = {};
  tables.layers = at<ss::ScheduleLayer>(layout.scheduleLayers);
  tables.position = at<int64_t>(layout.position);
  tables.compactions = at<int64_t>(layout.compactions);
  tables.faults = at<int32_t>(layout.faults);
  tables.step_tokens = at<int32_t>(layout.stepTokens);
  for (const LayerManifest &layer : manifest.layers)
    tables.layer_count += !layer.denseForm;
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
  bookkeeping->reset(schedule(), slot, stream);
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

int32_t CudaEngine::allocateSlot(Stream stream) {
  if (freeSlots.empty())
    fail(SS_SLOTS_EXHAUSTED, "all ", slotCount,
         " slots have owners: free one first or create the engine with more");
  const int32_t slot = freeSlots.back();
  resetStates(slot, asStream(stream));
  freeSlots.pop_back();
  inUse[size_t(slot)] = true;
  return slot;
}

void CudaEngine::freeSlot(int32_t slot) {
  checkSlot(slot);
  inUse[size_t(slot)] = false;
  freeSlots.push_back(slot);
}

void CudaEngine::resetSlot(int32_t slot, Stream stream) {
  checkSlot(slot);
  resetStates(slot, asStream(stream));
}

void CudaEngine::beginStep(std::span<const int32_t> slots, Stream stream) {
  CurrentContext current(*context);
  bookkeeping->begin(schedule(), slots, asStream(stream));
  stepBatch = int32_t(slots.size());
  std::fill(decoded.begin(), decoded.end(), false);
  decodedCount = 0;
  stepTokens.clear();
}

void CudaEngine::checkStep(const LayerManifest &layer, int32_t index,
                           const ss_decode_args &args) const {
  checkDecodeArguments(layer, args);
  if (stepBatch == 0)
    fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
         "' is decoded outside a step, expected ss_begin_step first");
  if (args.batch != stepBatch)
    fail(SS_INVALID_ARGUMENT, "args.batch is ", args.batch, ", expected ",
         stepBatch, " as in ss_begin_step");
  if (decoded[size_t(index)])
    fail(SS_BUFFER_FULL, "layer '", layer.name,
         "' has decoded this step already, expected one token per step: call "
         "ss_end_step first");
}

void CudaEngine::bindState(const LayerPlaces &places) {
  values.setPointer(Argument::Rows, at<float>(places.rows));
  values.setPointer(Argument::Weights, at<float>(places.weights));
  values.setPointer(Argument::RowBase, at<int64_t>(places.rowBase));
  values.setPointer(Argument::Rank, at<int32_t>(places.rank));
  values.setPointer(Argument::Status, at<int32_t>(places.status));
  values.setPointer(Argument::Count, at<int32_t>(places.count));
  values.setPointer(Argument::BufferK, at<float>(places.bufferK));
  values.setPointer(Argument::BufferU, at<float>(places.bufferU));
  values.setPointer(Argument::BufferG, at<float>(places.bufferG));
}

void CudaEngine::launchDecode(int32_t index, const ss_decode_args &args) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  bindDecodeArguments(layer, args, values);
  if (layer.denseForm)
    values.setPointer(Argument::Dense, at<float>(places.dense));
  else
    bindState(places);
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
  values.setI32(Argument::MaxRank, places.maxRank);
  values.setPointer(Argument::RowCapacity, at<int32_t>(places.rowCapacity));
  kernels->launch(layer.compact, values, int64_t(batch) * layer.heads, stream);
}

void CudaEngine::decodeLayer(int32_t index, const ss_decode_args &args) {
  const LayerManifest &layer = checkedLayer(index);
  checkStep(layer, index, args);
  if (!stepTokens.empty())
    fail(SS_INVALID_ARGUMENT, "layer '", layer.name,
         "' takes one token, expected the tokens that the layers of this step "
         "before it took: call ss_end_step between steps");
  CurrentContext current(*context);
  const CUstream stream = asStream(args.stream);
  const bool late = !layer.denseForm && layer.draft > 0;
  if (late)
    compactBefore(index, args.batch, stream);
  launchDecode(index, args);
  if (!layer.denseForm && !late)
    launchCompact(index, args.batch, 1, stream);
  decoded[size_t(index)] = true;
  ++decodedCount;
}

void CudaEngine::endStep(std::span<const int32_t> slots, Stream stream) {
  if (stepBatch == 0)
    fail(SS_INVALID_ARGUMENT,
         "a step ends that has not begun, expected ss_begin_step first");
  if (int32_t(slots.size()) != stepBatch)
    fail(SS_INVALID_ARGUMENT, "batch is ", slots.size(), ", expected ",
         stepBatch, " as in ss_begin_step");
  if (decodedCount < layerCount()) {
    const size_t missing =
        size_t(std::find(decoded.begin(), decoded.end(), false) -
               decoded.begin());
    fail(SS_INVALID_ARGUMENT, "the step ends without layer '",
         manifest.layers[missing].name, "' (", decodedCount, " of ",
         layerCount(), " are decoded), expected every layer once");
  }
  CurrentContext current(*context);
  bookkeeping->advance(schedule(), slots, asStream(stream));
  stepBatch = 0;
}

void CudaEngine::synchronize(Stream stream) {
  CurrentContext current(*context);
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
  const CUdeviceptr word = memory.address() + CUdeviceptr(layout.faults);
  int32_t faults = 0;
  own->copyOut(&faults, word, sizeof faults);
  if (faults == 0)
    return;
  own->zero(word, sizeof faults);
  own->wait();
  if (faults & ss::kSlotOutOfRange)
    fail(SS_INVALID_ARGUMENT, "a batch named a slot above ", slotCount - 1,
         ", expected slots of this engine or negative ones: states may be "
         "damaged, reset them");
  fail(SS_INVALID_ARGUMENT,
       "a batch named a slot twice, expected every slot once: states may be "
       "damaged, reset them");
}

void *CudaEngine::allocateMemory(size_t bytes) {
  CurrentContext current(*context);
  CUdeviceptr address = 0;
  SS_CUDA(context->driver(), cuMemAlloc(&address, bytes));
  return reinterpret_cast<void *>(address);
}

void CudaEngine::freeMemory(void *memory) {
  CurrentContext current(*context);
  SS_CUDA(context->driver(), cuMemFree(asAddress(memory)));
}

void CudaEngine::synchronizeStream(CUstream stream) const {
  SS_CUDA(context->driver(), cuStreamSynchronize(stream));
}

void CudaEngine::copyIn(void *to, const void *from, size_t bytes,
                        Stream stream) {
  CurrentContext current(*context);
  SS_CUDA(context->driver(),
          cuMemcpyHtoDAsync(asAddress(to), from, bytes, asStream(stream)));
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
}

void CudaEngine::copyOut(void *to, const void *from, size_t bytes,
                         Stream stream) {
  CurrentContext current(*context);
  SS_CUDA(context->driver(),
          cuMemcpyDtoHAsync(to, asAddress(from), bytes, asStream(stream)));
  SS_CUDA(context->driver(), cuStreamSynchronize(asStream(stream)));
}

} // namespace sinkstate::runtime::cuda
