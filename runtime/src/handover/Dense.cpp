//===- Dense.cpp - Dense states into and out of the CPU engine ------------===//

#include "capi/Failure.h"
#include "consolidation/ExactSvd.h"
#include "engine/Engine.h"

#include "sinkstate/routines.h"

#include <algorithm>
#include <limits>

namespace sinkstate::runtime {

using consolidation::SvdResult;
using consolidation::SvdStatus;

/// A state on its way in.
struct Engine::InitialState {
  int32_t state;
  std::vector<float> columns; ///< H, dk columns of dv
  std::vector<float> rows, weights;
  SvdResult factors;
};

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
  for (const LayerState &layer : layers)
    if (!layer.manifest().denseForm && position < layer.count[slot])
      fail(SS_INVALID_ARGUMENT, "position ", position, " of slot ", slot,
           ", expected at least ", layer.count[slot],
           ", the pairs in the buffer of layer '", layer.manifest().name, "'");
  if (position < 0)
    fail(SS_INVALID_ARGUMENT, "position ", position, " of slot ", slot,
         ", expected 0 or more");
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

void Engine::factorizeAll(const LayerState &layer, double eps,
                          std::vector<InitialState> &all) {
  const LayerManifest &manifest = layer.manifest();
  const int64_t most = std::min(manifest.dv, manifest.dk);
  consolidation::Truncation truncation;
  truncation.eps = eps;
  bool outOfMemory = false;
#pragma omp parallel for num_threads(device.threads()) schedule(dynamic, 1)
  for (size_t i = 0; i < all.size(); ++i) {
    try {
      InitialState &initial = all[i];
      initial.rows.resize(size_t(most * layer.layout().rowFloats));
      initial.weights.resize(size_t(most));
      initial.factors = consolidation::factorize(
          initial.columns.data(), manifest.dk, manifest.dv, truncation,
          initial.rows.data(), initial.weights.data());
    } catch (const std::bad_alloc &) {
#pragma omp atomic write
      outOfMemory = true;
    }
  }
  if (outOfMemory)
    throw std::bad_alloc();
}

/// Makes the state what was found: factors, dense, or one NaN component.
void Engine::adopt(LayerState &layer, const InitialState &initial) {
  const LayerLayout &layout = layer.layout();
  const LayerManifest &manifest = layer.manifest();
  const int32_t state = initial.state;
  const SvdStatus found = initial.factors.status;
  int32_t rank = found == SvdStatus::notFinite ? 1 : initial.factors.rank;
  int32_t status = found == SvdStatus::notFinite ? SS_STATUS_NOT_FINITE : 0;
  const bool goesDense =
      layout.denseFallback && found != SvdStatus::notFinite &&
      (rank >= layout.breakEvenRank || found == SvdStatus::notConverged);
  if (found == SvdStatus::notConverged)
    status |= SS_STATUS_NOT_CONVERGED;
  const int32_t most =
      std::min(layout.maxRank, manifest.rank - manifest.buffer - manifest.draft);
  if (!goesDense && rank > most) {
    rank = most;
    status |= layout.fixedRank ? 0 : SS_STATUS_TIGHTENED;
  }
  layer.replaceBlock(state, layer.pool().allocate(
                                goesDense ? layout.denseRows
                                          : rank + manifest.buffer));
  layer.rank[state] = goesDense ? -1 : rank;
  layer.status[state] = status;
  layer.compactions[size_t(state)] = layer.folds[size_t(state)] = 0;
  if (goesDense) {
    layer.writeRows(state, initial.columns.data(), layout.denseFloats);
  } else if (found == SvdStatus::notFinite) {
    const std::vector<float> ones(size_t(layout.rowFloats), 1.0f);
    layer.writeRows(state, ones.data(), layout.rowFloats);
    *layer.weightsOf(state) = std::numeric_limits<float>::quiet_NaN();
  } else {
    layer.writeRows(state, initial.rows.data(), rank * layout.rowFloats);
    std::copy_n(initial.weights.begin(), rank, layer.weightsOf(state));
  }
}

void Engine::initialise(int32_t index, const DenseStates &states,
                        const void *dense, const ss_init_options &options,
                        Stream) {
  checkedLayer(index);
  LayerState &layer = layers[size_t(index)];
  const LayerManifest &manifest = layer.manifest();
  const ss_dense_layout layout = resolveLayout(manifest, states.layout);
  checkDenseStates(layer, states);
  if (!(options.eps < 1))
    fail(SS_INVALID_ARGUMENT, "options.eps is ", options.eps,
         ", expected less than 1 (below 0: the layer's policy)");
  const double eps = options.eps < 0 ? layer.layout().dropBelow : options.eps;
  std::vector<InitialState> all;
  std::vector<float> columns(size_t(layer.layout().denseFloats));
  std::vector<float> rows(manifest.denseForm ? columns.size() : 0);
  for (size_t i = 0; i < states.slots.size(); ++i)
    for (int32_t head = 0; head < manifest.heads; ++head) {
      readDense(manifest, layout, dense, states.placeOf(i), head,
                columns.data());
      const int64_t state = layer.firstState(states.slots[i]) + head;
      if (manifest.denseForm) { // [dv, dk]
        for (int64_t k = 0; k < manifest.dk; ++k)
          for (int64_t v = 0; v < manifest.dv; ++v)
            rows[size_t(v * manifest.dk + k)] =
                columns[size_t(k * manifest.dv + v)];
        storeElements(layer.layout().storage, layer.denseOf(state), rows.data(),
                      layer.layout().denseFloats);
      } else {
        all.push_back({int32_t(state), columns, {}, {}, {}});
      }
    }
  if (manifest.denseForm)
    return;
  factorizeAll(layer, eps, all);
  for (int32_t slot : states.slots)
    layer.count[slot] = 0;
  for (const InitialState &initial : all)
    adopt(layer, initial);
  noteAllocation(layer);
}

} // namespace sinkstate::runtime
