//===- CudaDense.cpp - Dense states into and out of a GPU -----------------===//
//
// Matrices are in the caller's device memory and layout; kernels of a package
// read and write columns [dk, dv] in f32. Some matrices at a time are brought
// from one to the other, in work memory of a bounded size.
//
//===----------------------------------------------------------------------===//

#include "capi/Failure.h"
#include "cuda/CudaEngine.h"
#include "state/DeferredState.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <thread>

namespace sinkstate::runtime::cuda {
namespace {

CUdeviceptr asAddress(const void *memory) {
  return CUdeviceptr(reinterpret_cast<uintptr_t>(memory));
}

// Bytes of work memory that one matrix of a layer takes.
int64_t copyBytes(const LayerLayout &sizes) {
  return sizes.denseFloats * 4 + 2 * int64_t(sizeof(int64_t));
}
int64_t densifyBytes(const LayerLayout &sizes) {
  return copyBytes(sizes) + int64_t(sizeof(int32_t));
}
int64_t initBytes(const LayerLayout &sizes, int64_t mostRows) {
  return (sizes.denseFloats + mostRows * sizes.rowFloats + mostRows) * 4 +
         3 * int64_t(sizeof(int64_t)) + 3 * int64_t(sizeof(int32_t));
}

} // namespace

int64_t mostHandOverBytes(const Manifest &manifest, const CudaLayout &layout) {
  int64_t matrices = 0;
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    const LayerLayout &sizes = layout.layers[i].sizes;
    if (layer.deferred)
      continue; // its matrices are not handed over
    // As many as fit: fewer of the larger ones, which may take less.
    matrices = std::max(
        matrices, DenseWork::bytesFor(sizes.states, layer.denseForm
                                                        ? copyBytes(sizes)
                                                        : densifyBytes(sizes)));
    if (!layer.denseForm)
      matrices = std::max(
          matrices,
          DenseWork::bytesFor(sizes.states,
                              initBytes(sizes, mostInitialRows(layer))));
  }
  return matrices + PieceMover::kStagingBytes;
}

/// Some heads of some slots and their matrices in the caller's array.
struct CudaEngine::DensePart {
  std::vector<int32_t> states;
  std::vector<int64_t> first; ///< elements from the beginning of the array
};

void CudaEngine::checkDenseStates(const DenseStates &states) {
  checkDistinct(states.slots);
  for (size_t i = 0; i < states.slots.size(); ++i) {
    checkBetweenSteps(states.slots[i]);
    if (states.placeOf(i) < 0)
      fail(SS_INVALID_ARGUMENT, "places[", i, "] is ", states.placeOf(i),
           ", expected 0 or more");
  }
}

CudaEngine::DensePart CudaEngine::partOf(const LayerManifest &layer,
                                         const ss_dense_layout &layout,
                                         const DenseStates &states) {
  DensePart all;
  for (size_t i = 0; i < states.slots.size(); ++i)
    for (int32_t head = 0; head < layer.heads; ++head) {
      all.states.push_back(states.slots[i] * layer.heads + head);
      all.first.push_back(states.placeOf(i) * layout.slot_stride +
                          head * layout.head_stride);
    }
  return all;
}

template <typename T>
void CudaEngine::copyTable(T *to, const std::vector<T> &values,
                           CUstream stream) {
  const IgnoredCaptures ignored(*context);
  SS_CUDA(context->driver(),
          cuMemcpyHtoDAsync(asAddress(to), values.data(),
                            values.size() * sizeof(T), stream));
}

/// A layer's matrices of dense form, as an array like a caller's.
ss_dense_layout CudaEngine::ownLayout(const LayerManifest &layer) const {
  ss_dense_layout own = {};
  own.struct_size = sizeof own;
  own.type = int32_t(layer.storage); // the same numbers
  return resolveLayout(layer, own);
}

ss::DenseMatrices CudaEngine::matricesOf(const LayerManifest &layer,
                                         const ss_dense_layout &layout,
                                         const void *elements,
                                         const int64_t *first, int64_t count) {
  return {const_cast<void *>(elements), first,     layout.dv_stride,
          layout.dk_stride,             layout.type, layer.dv,
          layer.dk,                     int32_t(count)};
}

/// Calls `body` for parts of `all`, of at most `most` states.
template <typename Body>
void CudaEngine::inParts(const DensePart &all, int64_t most,
                         const Body &body) {
  for (size_t begin = 0; begin < all.states.size(); begin += size_t(most)) {
    const auto end =
        std::min(all.states.size(), begin + size_t(most));
    body(DensePart{{all.states.begin() + std::ptrdiff_t(begin),
                    all.states.begin() + std::ptrdiff_t(end)},
                   {all.first.begin() + std::ptrdiff_t(begin),
                    all.first.begin() + std::ptrdiff_t(end)}});
  }
}

/// Copies matrices between the caller's array and states of dense form.
void CudaEngine::copyDenseForm(int32_t index, const DensePart &all,
                               const ss_dense_layout &callers, void *memory,
                               bool out, CUstream stream) {
  const LayerManifest &layer = manifest.layers[size_t(index)];
  const LayerPlaces &places = layout.layers[size_t(index)];
  const ss_dense_layout own = ownLayout(layer);
  const int64_t floats = places.sizes.denseFloats;
  const int64_t most = denseWork->begin(int64_t(all.states.size()),
                                        copyBytes(places.sizes));
  auto *columns = denseWork->take<float>(most * floats);
  auto *there = denseWork->take<int64_t>(most);
  auto *here = denseWork->take<int64_t>(most);
  inParts(all, most, [&](const DensePart &part) {
    const auto count = int64_t(part.states.size());
    std::vector<int64_t> places64;
    for (int32_t state : part.states)
      places64.push_back(state * floats);
    copyTable(there, part.first, stream);
    copyTable(here, places64, stream);
    const ss::DenseMatrices callersOnes =
        matricesOf(layer, callers, memory, there, count);
    const ss::DenseMatrices ownOnes =
        matricesOf(layer, own, at<std::byte>(places.dense), here, count);
    handOver->readDense(out ? ownOnes : callersOnes, columns, stream);
    handOver->writeDense(out ? callersOnes : ownOnes, columns, stream);
    synchronizeStream(stream);
  });
}

void CudaEngine::densifyTo(int32_t index, const DenseStates &states, void *out,
                           Stream given) {
  const LayerManifest &layer = checkedLayer(index);
  refuseDeferred(layer);
  const LayerPlaces &places = layout.layers[size_t(index)];
  const ss_dense_layout callers = resolveLayout(layer, states.layout);
  checkDenseStates(states);
  const auto stream = static_cast<CUstream>(given);
  const DensePart all = partOf(layer, callers, states);
  CurrentContext current(*context);
  if (layer.denseForm)
    return copyDenseForm(index, all, callers, out, true, stream);
  const int64_t floats = places.sizes.denseFloats;
  const int64_t most = denseWork->begin(int64_t(all.states.size()),
                                        densifyBytes(places.sizes));
  auto *columns = denseWork->take<float>(most * floats);
  auto *first = denseWork->take<int64_t>(most);
  auto *outBase = denseWork->take<int64_t>(most);
  auto *work = denseWork->take<int32_t>(most);
  auto *workCount = denseWork->take<int32_t>(1);
  inParts(all, most, [&](const DensePart &part) {
    const std::vector<int32_t> count = {int32_t(part.states.size())};
    std::vector<int64_t> bases;
    for (int64_t i = 0; i < count[0]; ++i)
      bases.push_back(i * floats);
    copyTable(first, part.first, stream);
    copyTable(outBase, bases, stream);
    copyTable(work, part.states, stream);
    copyTable(workCount, count, stream);
    bindState(places);
    values.setPointer(Argument::Work, work);
    values.setPointer(Argument::WorkCount, workCount);
    values.setI32(Argument::CountAhead, 0);
    values.setPointer(Argument::Out, columns);
    values.setPointer(Argument::OutBase, outBase);
    bindRounding(index);
    kernels->launch(layer.densify, values, count[0], stream);
    handOver->writeDense(matricesOf(layer, callers, out, first, count[0]),
                         columns, stream);
    synchronizeStream(stream);
  });
}

/// Work memory of an initialisation: what an init kernel reads and writes.
struct CudaEngine::InitArrays {
  InitArrays(DenseWork &work, const LayerPlaces &places, int64_t most,
             int64_t states)
      : rowsEach(most) {
    const int64_t width = places.sizes.rowFloats;
    atOnce = work.begin(states, initBytes(places.sizes, most));
    columns = work.take<float>(atOnce * places.sizes.denseFloats);
    rows = work.take<float>(atOnce * most * width);
    weights = work.take<float>(atOnce * most);
    first = work.take<int64_t>(atOnce);
    matrixBase = work.take<int64_t>(atOnce);
    rowBase = work.take<int64_t>(atOnce);
    rank = work.take<int32_t>(atOnce);
    status = work.take<int32_t>(atOnce);
    order = work.take<int32_t>(atOnce);
    count = work.take<int32_t>(1);
  }
  int64_t rowsEach; ///< room for one state's components
  int64_t atOnce;
  float *columns, *rows, *weights;
  int64_t *first, *matrixBase, *rowBase;
  int32_t *rank, *status, *order, *count;
};

/// Runs the init kernel over `columns` and reads what it says of every state.
void CudaEngine::launchInit(const LayerManifest &layer,
                            const LayerPlaces &places,
                            const ss_init_options &options,
                            const InitArrays &arrays,
                            std::vector<InitialState> &states,
                            CUstream stream) {
  const auto n = int32_t(states.size());
  std::vector<int64_t> rowBase, matrixBase;
  std::vector<int32_t> order, rank(states.size()), status(states.size());
  for (int32_t i = 0; i < n; ++i) {
    order.push_back(i); // states are numbered by their place in this part
    rowBase.push_back(i * arrays.rowsEach);
    matrixBase.push_back(i * places.sizes.denseFloats);
  }
  const std::vector<int32_t> count = {n};
  copyTable(arrays.rowBase, rowBase, stream);
  copyTable(arrays.matrixBase, matrixBase, stream);
  copyTable(arrays.order, order, stream);
  copyTable(arrays.count, count, stream);
  values.setPointer(Argument::Factors, arrays.rows);
  values.setPointer(Argument::Weights, arrays.weights);
  values.setPointer(Argument::RowBase, arrays.rowBase);
  values.setPointer(Argument::Rank, arrays.rank);
  values.setPointer(Argument::Status, arrays.status);
  values.setPointer(Argument::Work, arrays.order);
  values.setPointer(Argument::WorkCount, arrays.count);
  values.setPointer(Argument::Matrices, arrays.columns);
  values.setPointer(Argument::MatrixBase, arrays.matrixBase);
  values.setF32(Argument::PolicyValue, options.eps);
  values.setI32(Argument::MaxRank, int32_t(arrays.rowsEach));
  values.setI64(Argument::Seed, int64_t(options.seed));
  kernels->launch(layer.init, values, n, stream);
  copyOut(rank.data(), arrays.rank, rank.size() * 4, stream);
  copyOut(status.data(), arrays.status, status.size() * 4, stream);
  for (size_t i = 0; i < states.size(); ++i)
    readInitKernel(layer, places.sizes, rank[i], status[i], states[i]);
}

/// Takes the heads' sinks out of their matrices.
void CudaEngine::takeSinks(const LayerManifest &layer,
                           std::vector<InitialState> &states) const {
  const LayerSinks &own = sinks[size_t(&layer - manifest.layers.data())];
  for (InitialState &state : states)
    takeSink(own.directionOf(state.state % layer.heads), state);
}

/// What the init kernel did not find is decomposed on the host, exactly.
void CudaEngine::finishOnHost(const LayerManifest &layer,
                              const LayerPlaces &places, float eps,
                              const InitArrays &arrays,
                              std::vector<InitialState> &states,
                              CUstream stream) {
  const int64_t floats = places.sizes.denseFloats;
  const bool narrow = places.sizes.storage == Storage::F16;
  std::vector<PieceMover::HostPiece> pieces;
  for (size_t i = 0; i < states.size(); ++i) {
    InitialState &state = states[i];
    if (state.found && !(narrow && mayBeDense(places.sizes, state)))
      continue;
    state.columns.resize(size_t(floats));
    pieces.push_back({asAddress(arrays.columns + int64_t(i) * floats),
                      reinterpret_cast<std::byte *>(state.columns.data()),
                      floats * 4});
  }
  mover->download(pieces, stream);
  for (InitialState &state : states)
    if (state.found && !state.columns.empty())
      checkRange(places.sizes, state);
  if (layer.sinkForm)
    takeSinks(layer, states);
  factorizeAll(layer, places.sizes, eps,
               int(std::max(1u, std::thread::hardware_concurrency())), states);
}

/// What brings states to their places: copies from what the kernel wrote, and
/// uploads of what the host has.
struct CudaEngine::Adoption {
  std::vector<PieceMover::Copy> copies;
  std::vector<PieceMover::HostPiece> uploads;
  std::vector<std::vector<std::byte>> stored; ///< rows as they are uploaded

  void upload(CUdeviceptr to, const void *from, int64_t bytes) {
    uploads.push_back(
        {to, static_cast<std::byte *>(const_cast<void *>(from)), bytes});
  }
};

/// The matrix or the factors of a state, number `number` of its part, to the
/// block that begins at row `base`.
void CudaEngine::placeState(const LayerPlaces &places,
                            const InitArrays &arrays,
                            const InitialState &state, const InitialForm &form,
                            int64_t number, int64_t base,
                            Adoption &adoption) const {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const LayerLayout &sizes = places.sizes;
  const CUdeviceptr rows = addressOf(places.rows + base * sizes.rowBytes());
  const CUdeviceptr weights = addressOf(places.weights + base * 4);
  if (form.dense) {
    adoption.copies.push_back(
        {asAddress(arrays.columns + number * sizes.denseFloats), rows,
         sizes.denseStateBytes(), sizes.storage});
    return;
  }
  if (form.finite && state.rows.empty()) { // the kernel found it
    const int64_t first = number * arrays.rowsEach;
    adoption.copies.push_back({asAddress(arrays.rows + first * sizes.rowFloats),
                               rows, form.rank * sizes.rowBytes(),
                               sizes.storage});
    adoption.copies.push_back({asAddress(arrays.weights + first), weights,
                               form.rank * int64_t(4)});
    return;
  }
  std::vector<float> all(state.sinkRow); // the sink comes first
  std::vector<float> allWeights(all.empty() ? 0 : 1, state.sinkWeight);
  if (form.finite) {
    all.insert(all.end(), state.rows.begin(),
               state.rows.begin() + form.rank * sizes.rowFloats);
    allWeights.insert(allWeights.end(), state.weights.begin(),
                      state.weights.begin() + form.rank);
  } else {
    allWeights.assign(allWeights.size() + size_t(form.rank), kNone);
    all.assign(allWeights.size() * size_t(sizes.rowFloats), 1.0f);
  }
  if (allWeights.empty()) // a zero state: nothing is stored
    return;
  const auto bytes = int64_t(allWeights.size()) * sizes.rowBytes();
  std::vector<std::byte> &stored =
      adoption.stored.emplace_back(size_t(bytes) + allWeights.size() * 4);
  storeElements(sizes.storage, stored.data(), all.data(), int64_t(all.size()));
  std::memcpy(stored.data() + bytes, allWeights.data(), allWeights.size() * 4);
  adoption.upload(rows, stored.data(), bytes);
  adoption.upload(weights, stored.data() + bytes, int64_t(allWeights.size()) * 4);
}

/// Makes the states what was found, wherever it is.
void CudaEngine::adopt(int32_t index, const InitArrays &arrays,
                       const std::vector<InitialState> &states,
                       CUstream stream) {
  const LayerPlaces &places = layout.layers[size_t(index)];
  // The place of a sink is for nothing else.
  const int32_t most =
      places.maxRank - int32_t(manifest.layers[size_t(index)].sinkForm);
  std::vector<InitialForm> forms;
  std::vector<int32_t> numbers, rank, status;
  for (const InitialState &state : states) {
    const InitialForm &form =
        forms.emplace_back(formOf(places.sizes, most, state));
    numbers.push_back(state.state);
    rank.push_back(form.dense ? -1
                              : form.rank + int32_t(!state.sinkRow.empty()));
    status.push_back(form.status);
  }
  const std::vector<int64_t> bases = rowsFor(index, numbers, rank, stream);
  Adoption adoption;
  for (size_t i = 0; i < states.size(); ++i) {
    const auto table = int64_t(numbers[i]) * 4;
    adoption.upload(addressOf(places.rank + table), &rank[i], 4);
    adoption.upload(addressOf(places.status + table), &status[i], 4);
    placeState(places, arrays, states[i], forms[i], int64_t(i), bases[i],
               adoption);
  }
  mover->copy(adoption.copies, stream);
  mover->upload(adoption.uploads, stream);
}

void CudaEngine::initialise(int32_t index, const DenseStates &states,
                            const void *dense, const ss_init_options &options,
                            Stream given) {
  const LayerManifest &layer = checkedLayer(index);
  refuseDeferred(layer);
  const LayerPlaces &places = layout.layers[size_t(index)];
  const ss_dense_layout callers = resolveLayout(layer, states.layout);
  checkDenseStates(states);
  const ss_init_options chosen = resolveInitOptions(places.sizes, options);
  const auto stream = static_cast<CUstream>(given);
  const DensePart all = partOf(layer, callers, states);
  CurrentContext current(*context);
  if (layer.denseForm)
    return copyDenseForm(index, all, callers, const_cast<void *>(dense), false,
                         stream);
  for (int32_t slot : states.slots)
    noteNewRows(slot, stream);
  for (int32_t slot : states.slots)
    SS_CUDA(context->driver(),
            cuMemsetD8Async(addressOf(places.count + slot * int64_t(4)), 0,
                            sizeof(int32_t), stream));
  const InitArrays arrays(*denseWork, places, mostInitialRows(layer),
                          int64_t(all.states.size()));
  inParts(all, arrays.atOnce, [&](const DensePart &part) {
    std::vector<InitialState> some(part.states.size());
    for (size_t i = 0; i < some.size(); ++i)
      some[i].state = part.states[i];
    copyTable(arrays.first, part.first, stream);
    handOver->readDense(matricesOf(layer, callers, dense, arrays.first,
                                   int64_t(some.size())),
                        arrays.columns, stream);
    // The device's copies round to 16 bits, not to 8: those rows come from the
    // host.
    // Nor does a kernel take sinks out.
    if (hasInitKernel(layer, chosen.eps) && !layer.sinkForm &&
        places.sizes.storage != Storage::FP8)
      launchInit(layer, places, chosen, arrays, some, stream);
    finishOnHost(layer, places, chosen.eps, arrays, some, stream);
    adopt(index, arrays, some, stream);
  });
}

} // namespace sinkstate::runtime::cuda
