//===- Dense.cpp - Dense states into and out of the CPU engine ------------===//

#include "capi/Failure.h"
#include "engine/Engine.h"
#include "state/DeferredState.h"

#include <algorithm>
#include <limits>

namespace sinkstate::runtime {

namespace {
/// States that are decomposed together: bounds the memory on the way.
constexpr size_t kStatesAtOnce = 256;

/// Columns of H to [dv, dk].
std::vector<float> transposed(const std::vector<float> &columns,
                              const LayerManifest &layer) {
  std::vector<float> h(columns.size());
  for (int64_t k = 0; k < layer.dk; ++k)
    for (int64_t v = 0; v < layer.dv; ++v)
      h[size_t(v * layer.dk + k)] = columns[size_t(k * layer.dv + v)];
  return h;
}
} // namespace

void Engine::checkDenseStates(const LayerState &layer,
                              const DenseStates &states) {
  checkBatchSlots(layer, states.slots);
  for (size_t i = 0; i < states.slots.size(); ++i) {
    checkBetweenSteps(states.slots[i]);
    if (states.placeOf(i) < 0)
      fail(SS_INVALID_ARGUMENT, "places[", i, "] is ", states.placeOf(i),
           ", expected 0 or more");
  }
}

void Engine::setPosition(int32_t slot, int64_t position, Stream) {
  checkBetweenSteps(slot);
  checkPosition(package->manifest(), slot, position, countersOf(slot));
  slots[size_t(slot)].position = position;
  for (LayerState &layer : layers)
    layer.decodedTokens[size_t(slot)] = position;
}

void Engine::densifyTo(int32_t index, const DenseStates &states, void *out,
                       Stream) {
  const LayerManifest &manifest = checkedLayer(index).manifest();
  DenseStates resolved = states;
  resolved.layout = resolveLayout(manifest, states.layout);
  checkDenseStates(layers[size_t(index)], states);
  const int64_t floats = int64_t(manifest.dv) * manifest.dk;
  std::vector<float> state(size_t(manifest.heads * floats));
  for (size_t i = 0; i < states.slots.size(); ++i) {
    densify(index, states.slots[i], state.data());
    for (int64_t head = 0; head < manifest.heads; ++head)
      writeDense(manifest, resolved.layout, out, resolved.placeOf(i), head,
                 state.data() + head * floats, manifest.dk, 1);
  }
}

void Engine::launchInit(const LayerState &layer, const ss_init_options &options,
                        std::vector<InitialState> &all) {
  const LayerManifest &manifest = layer.manifest();
  if (!hasInitKernel(manifest, options.eps))
    return;
  const int64_t most = mostInitialRows(manifest);
  const int64_t width = layer.layout().rowFloats;
  const int64_t floats = layer.layout().denseFloats;
  const size_t n = all.size();
  // Tables of their own: states are numbered by their place in this call.
  std::vector<float> matrices, rows(n * size_t(most * width)),
      weights(n * size_t(most));
  std::vector<int64_t> rowBase, matrixBase;
  std::vector<int32_t> rank(n), status(n), work;
  for (size_t i = 0; i < n; ++i) {
    matrices.insert(matrices.end(), all[i].columns.begin(),
                    all[i].columns.end());
    rowBase.push_back(int64_t(i) * most);
    matrixBase.push_back(int64_t(i) * floats);
    work.push_back(int32_t(i));
  }
  const auto workCount = int32_t(n);
  values.setPointer(Argument::Factors, rows.data());
  values.setPointer(Argument::Weights, weights.data());
  values.setPointer(Argument::RowBase, rowBase.data());
  values.setPointer(Argument::Rank, rank.data());
  values.setPointer(Argument::Status, status.data());
  values.setPointer(Argument::Work, work.data());
  values.setPointer(Argument::WorkCount, &workCount);
  values.setPointer(Argument::Matrices, matrices.data());
  values.setPointer(Argument::MatrixBase, matrixBase.data());
  values.setF32(Argument::PolicyValue, options.eps);
  values.setI32(Argument::MaxRank, int32_t(most));
  values.setI64(Argument::Seed, int64_t(options.seed));
  device.launch({*package, manifest.init, values, workCount});
  device.wait();
  for (size_t i = 0; i < n; ++i) {
    InitialState &initial = all[i];
    readInitKernel(manifest, layer.layout(), rank[i], status[i], initial);
    if (mayBeDense(layer.layout(), initial))
      checkRange(layer.layout(), initial);
    if (rank[i] < 0)
      continue;
    const auto row = rows.begin() + rowBase[i] * width;
    initial.rows.assign(row, row + rank[i] * width);
    const auto weight = weights.begin() + rowBase[i];
    initial.weights.assign(weight, weight + rank[i]);
  }
}

/// The direction of the sink of a state's head.
std::span<const float> Engine::sinkOf(const LayerState &layer,
                                      int64_t state) const {
  return sinks[size_t(indexOf(layer))].directionOf(state % layer.heads());
}

/// Makes the state what was found: factors, dense, or one NaN component.
void Engine::adopt(LayerState &layer, const InitialState &initial) {
  const LayerLayout &layout = layer.layout();
  const LayerManifest &manifest = layer.manifest();
  const int32_t state = initial.state;
  const int32_t most =
      std::min(layout.maxRank, manifest.rank - manifest.buffer - manifest.draft);
  const int32_t sinkRows = initial.sinkRow.empty() ? 0 : 1;
  // The place of a sink is for nothing else.
  const InitialForm form =
      formOf(layout, most - int32_t(manifest.sinkForm), initial);
  layer.replaceBlock(state,
                     layer.pool().allocate(
                         form.dense ? layout.denseRows
                                    : form.rank + sinkRows + manifest.buffer));
  layer.rank[state] = form.dense ? -1 : form.rank + sinkRows;
  layer.status[state] = form.status;
  layer.compactions[size_t(state)] = layer.folds[size_t(state)] = 0;
  layer.svdDue[size_t(state)] = 0; // of rows that are no more
  if (form.dense) {
    layer.writeRows(state, initial.columns.data(), layout.denseFloats);
  } else if (!form.finite) {
    const std::vector<float> ones(size_t((1 + sinkRows) * layout.rowFloats),
                                  1.0f);
    layer.writeRows(state, ones.data(), int64_t(ones.size()));
    std::fill_n(layer.weightsOf(state), 1 + sinkRows,
                std::numeric_limits<float>::quiet_NaN());
  } else {
    // The sink comes first.
    std::vector<float> rows(initial.sinkRow);
    float *weights = layer.weightsOf(state);
    if (sinkRows > 0)
      *weights = initial.sinkWeight;
    rows.insert(rows.end(), initial.rows.begin(),
                initial.rows.begin() + form.rank * layout.rowFloats);
    layer.writeRows(state, rows.data(), int64_t(rows.size()));
    std::copy_n(initial.weights.begin(), form.rank, weights + sinkRows);
  }
}

void Engine::initialise(int32_t index, const DenseStates &states,
                        const void *dense, const ss_init_options &options,
                        Stream) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  const LayerManifest &manifest = layer.manifest();
  const ss_dense_layout layout = resolveLayout(manifest, states.layout);
  refuseDeferred(manifest);
  checkDenseStates(layer, states);
  const ss_init_options chosen =
      resolveInitOptions(layer.layout(), options);
  std::vector<InitialState> part;
  auto finishPart = [&] {
    if (!part.empty()) {
      launchInit(layer, chosen, part);
      factorizeAll(manifest, layer.layout(), chosen.eps, device.threads(),
                   part);
    }
    for (const InitialState &initial : part)
      adopt(layer, initial);
    part.clear();
  };
  for (size_t i = 0; i < states.slots.size(); ++i) {
    const int32_t slot = states.slots[i];
    if (!manifest.denseForm)
      layer.count[slot] = 0;
    for (int32_t head = 0; head < manifest.heads; ++head) {
      InitialState initial;
      initial.state = int32_t(layer.firstState(slot) + head);
      initial.columns.resize(size_t(layer.layout().denseFloats));
      readDense(manifest, layout, dense, states.placeOf(i), head,
                initial.columns.data());
      if (manifest.denseForm) {
        const std::vector<float> h = transposed(initial.columns, manifest);
        storeElements(layer.layout().storage, layer.denseOf(initial.state),
                      h.data(), layer.layout().denseFloats);
        continue;
      }
      if (manifest.sinkForm)
        takeSink(sinkOf(layer, initial.state), initial);
      part.push_back(std::move(initial));
      if (part.size() == kStatesAtOnce)
        finishPart();
    }
  }
  finishPart();
  for (int32_t slot : states.slots)
    layer.noteLive(slot, true);
  if (!manifest.denseForm)
    noteAllocation(layer);
}

} // namespace sinkstate::runtime
