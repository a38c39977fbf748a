//===- Exchange.cpp - Slots of the CPU engine in and out ------------------===//

#include "capi/Failure.h"
#include "state/DeferredState.h"
#include "engine/Engine.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

/// Appends `floats` floats of a layer's array.
void append(std::vector<float> &to, const float *from, int64_t floats) {
  to.insert(to.end(), from, from + floats);
}

/// The same for rows and dense states, which images have in f32: exact both
/// ways.
void appendStored(std::vector<float> &to, const LayerState &layer,
                  const void *from, int64_t floats) {
  const size_t before = to.size();
  to.resize(before + size_t(floats));
  loadElements(layer.layout().storage, to.data() + before, from, floats);
}

/// The pairs of one head or key head in a buffer: `width` floats each, at the
/// beginning of their capacity.
struct PairsOf {
  int64_t capacity, count, width;

  void append(std::vector<float> &to, const float *buffer, int64_t owner) const {
    runtime::append(to, buffer + owner * capacity * width, count * width);
  }
  void copy(float *buffer, int64_t owner, const std::vector<float> &from,
            int64_t number) const {
    std::copy_n(from.begin() + number * count * width, count * width,
                buffer + owner * capacity * width);
  }
};

} // namespace

void Engine::exportStates(LayerState &layer, int32_t slot, LayerImage &image) {
  const LayerManifest &manifest = layer.manifest();
  const int64_t first = layer.firstState(slot);
  const int64_t capacity = manifest.buffer + manifest.draft;
  for (int64_t state = first; state < first + layer.heads(); ++state) {
    const HeadImage &head = image.heads[size_t(state - first)];
    appendStored(image.rows, layer, layer.rowsOf(state),
                 head.storedFloats(image.shape));
    append(image.weights, layer.weightsOf(state), head.components());
    PairsOf{capacity, image.count, manifest.dv}.append(
        image.bufferU, layer.bufferU.data(), state);
    PairsOf{capacity, image.count, image.shape.decayFloats()}.append(
        image.bufferG, layer.bufferG.data(), state);
  }
  for (int64_t key = 0; key < manifest.keyHeads; ++key)
    PairsOf{capacity, image.count, manifest.dk}.append(
        image.bufferK, layer.bufferK.data(),
        int64_t(slot) * manifest.keyHeads + key);
}

SlotImage Engine::exportSlot(int32_t slot, bool contents, Stream) {
  checkBetweenSteps(slot);
  device.wait();
  SlotImage image;
  image.position = slots[size_t(slot)].position;
  image.roundingKey = requestKeys[size_t(slot)];
  image.fingerprint = package->manifest().fingerprint;
  for (LayerState &layer : layers) {
    refuseDeferred(layer.manifest());
    LayerImage &out = image.layers.emplace_back();
    out.shape = LayerShape::of(layer.manifest());
    out.storage = layer.layout().storage;
    const int64_t first = layer.firstState(slot);
    if (out.shape.denseForm) {
      if (contents)
        appendStored(out.dense, layer, layer.denseOf(first),
                     layer.heads() * out.shape.denseFloats());
      continue;
    }
    out.count = layer.count[slot];
    for (int64_t state = first; state < first + layer.heads(); ++state)
      out.heads.push_back({layer.rank[state], layer.status[state],
                           layer.compactions[size_t(state)],
                           layer.folds[size_t(state)],
                           consolidator && layer.svdDue[size_t(state)] != 0});
    out.noteSinks(sinks[size_t(indexOf(layer))]);
    if (contents)
      exportStates(layer, slot, out);
  }
  return image;
}

void Engine::importStates(LayerState &layer, int32_t slot,
                          const PlacedLayer &placed) {
  const LayerManifest &manifest = layer.manifest();
  const LayerImage &image = placed.image;
  const int64_t capacity = manifest.buffer + manifest.draft;
  const float *rows = image.rows.data(), *weights = image.weights.data();
  for (size_t i = 0; i < image.heads.size(); ++i) {
    const HeadImage &head = image.heads[i];
    const int64_t state = layer.firstState(slot) + placed.firstHead + int64_t(i);
    const int64_t block =
        head.rank < 0 ? layer.layout().denseRows
                      : std::min<int64_t>(head.rank + manifest.buffer,
                                          manifest.rank);
    layer.replaceBlock(state, layer.pool().allocate(block));
    layer.writeRows(state, rows, head.storedFloats(image.shape));
    std::copy_n(weights, head.components(), layer.weightsOf(state));
    rows += head.storedFloats(image.shape);
    weights += head.components();
    layer.rank[state] = head.rank;
    layer.status[state] = head.status;
    layer.compactions[size_t(state)] = head.compactions;
    layer.folds[size_t(state)] = head.folds;
    layer.svdDue[size_t(state)] =
        consolidator && head.svdDue &&
        (head.rank < 0 || head.rank > manifest.active);
    PairsOf{capacity, image.count, manifest.dv}.copy(
        layer.bufferU.data(), state, image.bufferU, int64_t(i));
    PairsOf{capacity, image.count, image.shape.decayFloats()}.copy(
        layer.bufferG.data(), state, image.bufferG, int64_t(i));
  }
  for (int64_t key = 0; key < image.shape.keyHeads; ++key)
    PairsOf{capacity, image.count, manifest.dk}.copy(
        layer.bufferK.data(),
        int64_t(slot) * manifest.keyHeads + placed.firstKeyHead + key,
        image.bufferK, key);
  layer.count[slot] = image.count;
}

void Engine::importSlot(int32_t slot, int64_t position,
                        std::span<const PlacedLayer> placed, Stream) {
  checkBetweenSteps(slot);
  device.wait();
  for (const LayerState &layer : layers)
    refuseDeferred(layer.manifest());
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerState &layer = layers[i];
    const LayerImage &image = placed[i].image;
    layer.decodedTokens[size_t(slot)] = position;
    if (!image.shape.denseForm) {
      importStates(layer, slot, placed[i]);
      layer.noteLive(slot, true);
      noteAllocation(layer);
      continue;
    }
    const int64_t first = layer.firstState(slot) + placed[i].firstHead;
    storeElements(layer.layout().storage, layer.denseOf(first),
                  image.dense.data(), int64_t(image.dense.size()));
  }
  slots[size_t(slot)].position = position;
  resumeConsolidation(slot);
}

void Engine::fork(int32_t from, int32_t to, Stream) {
  checkBetweenSteps(from);
  checkBetweenSteps(to);
  if (from == to)
    fail(SS_INVALID_ARGUMENT, "slot ", from,
         " is forked to itself, expected another slot");
  device.wait();
  for (LayerState &layer : layers) {
    layer.fork(from, to);
    layer.noteLive(to, true);
    noteAllocation(layer);
  }
  slots[size_t(to)].position = slots[size_t(from)].position;
  requestKeys[size_t(to)] = requestKeys[size_t(from)];
  resumeConsolidation(to);
}

/// Results that the original has under way do not go with its rows.
void Engine::resumeConsolidation(int32_t slot) {
  try {
    for (size_t i = 0; consolidator && i < layers.size(); ++i)
      consolidator->resume(int32_t(i), slot);
  } catch (const std::bad_alloc &) {
    // The states are complete without it; it is tried again at their compaction.
  }
}

} // namespace sinkstate::runtime
