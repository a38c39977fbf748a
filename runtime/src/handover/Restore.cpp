//===- Restore.cpp - From an image to a slot of some engine ---------------===//

#include "handover/Restore.h"

#include "capi/Failure.h"

#include <algorithm>

namespace sinkstate::runtime {
namespace {

template <typename... Parts> [[noreturn]] void foreign(const Parts &...parts) {
  fail(SS_FOREIGN_SNAPSHOT, parts...);
}

std::string sizesOf(const LayerShape &shape) {
  return text(shape.denseForm ? "dense " : "", shape.type, " ", shape.dv, "x",
              shape.dk, shape.channelDecay ? " with channel decay" : "",
              " at index ", shape.index);
}

/// The layers agree but for their heads.
void checkShape(const LayerManifest &layer, const LayerImage &image) {
  LayerShape here = LayerShape::of(layer), there = image.shape;
  here.heads = there.heads = here.keyHeads = there.keyHeads = 1;
  if (!(here == there))
    foreign("the snapshot has ", sizesOf(image.shape), ", expected ",
            sizesOf(LayerShape::of(layer)), " in layer '", layer.name,
            "': it is of another model");
  if (image.count > layer.mostPairs())
    foreign("the snapshot has ", image.count, " buffered pairs in layer '",
            layer.name, "', expected at most ", layer.mostPairs(),
            ": restore it with a graph of that buffer and draft",
            layer.compactsBefore ? "" : ", compiled to compact this layer "
                                        "before its tokens");
}

void checkRange(const LayerManifest &layer, const LayerImage &image,
                const HeadRange &range) {
  auto within = [&](int32_t first, int32_t heads) {
    return first >= 0 && range.count >= 0 && first <= heads - range.count;
  };
  if (range.count < 1 || !within(range.from, image.shape.heads) ||
      !within(range.to, layer.heads))
    fail(SS_INVALID_ARGUMENT, "heads ", range.from, " + ", range.count,
         " of the snapshot to heads ", range.to, " + ", range.count,
         " in layer '", layer.name, "', expected a range of its ",
         image.shape.heads, " and of the engine's ", layer.heads);
}

/// First rows that are sinks where the layer's states have one, of the same mean
/// value, and nowhere else. A sink is an ordinary component in a layer without.
void fitSinks(const StateEngine &engine, int32_t index,
              const LayerManifest &layer, PlacedLayer &placed) {
  if (!layer.sinkForm)
    return;
  const LayerSinks &means = engine.sinksOf(index);
  LayerImage &image = placed.image;
  for (size_t i = 0; i < image.heads.size(); ++i) {
    const int64_t head = placed.firstHead + int64_t(i);
    const uint64_t here = means.hashes[size_t(head)], there = image.sinkOf(i);
    if (image.heads[i].rank == 0 || here == there)
      continue;
    if (there != 0)
      foreign("the snapshot has a sink of another mean value for head ", head,
              " of layer '", layer.name, "', expected ",
              here == 0 ? "none: give" : "this engine's: give",
              " it the mean values of the snapshot's (ss_engine_set_sink)");
    if (!image.saysSinks)
      foreign("the snapshot does not say whether head ", head, " of layer '",
              layer.name,
              "' has a sink, expected one that does (format 1.1): write it "
              "with a newer library");
    addEmptySink(image, i, means, head);
  }
}

/// Components that a state of the layer may come with.
int32_t mostRows(const StateEngine &engine, int32_t index,
                 const LayerManifest &layer, int64_t head) {
  const int32_t most = engine.mostComponents(index);
  if (layer.policy.kind != PolicyKind::Fixed)
    return most;
  // Its compactions take all components for active ones.
  const bool hasSink =
      layer.sinkForm && engine.sinksOf(index).hashes[size_t(head)] != 0;
  return std::min(most, int32_t(layer.policy.value) + hasSink);
}

/// Ranks that the engine can hold, forms that it knows.
void fitForms(const StateEngine &engine, int32_t index,
              const LayerManifest &layer, PlacedLayer &placed) {
  LayerImage &image = placed.image;
  const bool narrows = image.storage != layer.storage;
  if (image.shape.denseForm) {
    if (narrows && !mayBeNarrowed(layer.storage, image.dense))
      foreign("the snapshot has elements in layer '", layer.name,
              "' that ", storageName(layer.storage),
              " does not hold, expected states in its range: restore it with a "
              "graph of storage bf16 or f32");
    return;
  }
  const bool anyDense =
      std::any_of(image.heads.begin(), image.heads.end(),
                  [](const HeadImage &head) { return head.rank < 0; });
  const bool holdsDense = engine.holdsDense(index);
  if (anyDense && (!holdsDense || narrows))
    storeInFactors(
        image,
        layer.policy.kind == PolicyKind::Relative ? layer.policy.value : 0,
        holdsDense ? std::optional(layer.storage) : std::nullopt);
  fitSinks(engine, index, layer, placed);
  for (size_t i = 0; i < image.heads.size(); ++i) {
    const int32_t rank = image.heads[i].rank;
    const int32_t most =
        mostRows(engine, index, layer, placed.firstHead + int64_t(i));
    if (rank <= most)
      continue;
    const bool byPolicy = most < engine.mostComponents(index);
    foreign("the snapshot has a state of rank ", rank, " in layer '",
            layer.name, "', expected at most ", most, " in this engine: ",
            byPolicy ? "restore it with a graph of a larger fixed rank"
                     : "give it more rows (row_capacity)");
  }
}

std::vector<PlacedLayer> place(const StateEngine &engine,
                               const SlotImage &image,
                               std::span<const HeadRange> ranges) {
  const Manifest &manifest = engine.manifestOf();
  if (image.layers.size() != manifest.layers.size())
    foreign("the snapshot has ", image.layers.size(), " layers, expected ",
            manifest.layers.size(), ": it is of another model");
  std::vector<PlacedLayer> placed;
  for (size_t i = 0; i < image.layers.size(); ++i) {
    const LayerManifest &layer = manifest.layers[i];
    checkShape(layer, image.layers[i]);
    checkRange(layer, image.layers[i], ranges[i]);
    placed.push_back(cutHeads(image.layers[i], layer, ranges[i]));
    fitForms(engine, int32_t(i), layer, placed.back());
  }
  return placed;
}

/// Fresh, or of the same position and pairs in every layer.
void checkJoins(const SlotImage &there, const SlotImage &image, int32_t slot) {
  bool fresh = there.position == 0;
  for (const LayerImage &layer : there.layers)
    fresh &= layer.count == 0;
  if (fresh)
    return;
  if (there.position != image.position)
    foreign("the snapshot is at position ", image.position, ", expected ",
            there.position, " of the heads that slot ", slot, " holds");
  for (size_t i = 0; i < there.layers.size(); ++i)
    if (there.layers[i].count != image.layers[i].count)
      foreign("the snapshot has ", image.layers[i].count,
              " buffered pairs in layer ", i, ", expected ",
              there.layers[i].count, " as the heads that slot ", slot,
              " holds: the engines must share phases and drafts");
}

/// All heads of every layer, which the engine must have as the image does.
std::vector<HeadRange> wholeRanges(const Manifest &manifest,
                                   const SlotImage &image) {
  std::vector<HeadRange> ranges;
  for (size_t i = 0; i < image.layers.size(); ++i) {
    const LayerShape &shape = image.layers[i].shape;
    ranges.push_back({0, 0, shape.heads});
    if (i < manifest.layers.size() &&
        (shape.heads != manifest.layers[i].heads ||
         shape.keyHeads != manifest.layers[i].keyHeads))
      foreign("the snapshot has ", shape.heads, " heads and ", shape.keyHeads,
              " key heads in layer '", manifest.layers[i].name,
              "', expected ", manifest.layers[i].heads, " and ",
              manifest.layers[i].keyHeads,
              ": take a range of them with ss_snapshot_restore_heads");
  }
  return ranges;
}

} // namespace

void restoreSlot(StateEngine &engine, int32_t slot, const SlotImage &image,
                 Stream stream) {
  (void)engine.exportSlot(slot, false, stream); // the slot is between steps
  const Manifest &manifest = engine.manifestOf();
  const std::vector<PlacedLayer> placed =
      place(engine, image, wholeRanges(manifest, image));
  if (image.fingerprint != manifest.fingerprint)
    foreign("the snapshot is of graph '", image.fingerprint.substr(0, 12),
            "', expected '", manifest.fingerprint.substr(0, 12),
            "': restore it with the package it was made with, or, where the "
            "graphs differ in policy, form, storage or drafts alone, with "
            "ss_snapshot_restore_heads (ranges NULL)");
  engine.resetSlot(slot, stream);
  try {
    engine.importSlot(slot, image.position, placed, stream);
    engine.setRoundingKey(slot, image.roundingKey, stream);
  } catch (...) {
    engine.resetSlot(slot, stream);
    throw;
  }
}

void restoreAllHeads(StateEngine &engine, int32_t slot, const SlotImage &image,
                     Stream stream) {
  const Manifest &manifest = engine.manifestOf();
  std::vector<HeadRange> ranges = wholeRanges(manifest, image);
  ranges.resize(manifest.layers.size()); // another number is refused below
  restoreHeads(engine, slot, image, ranges, stream);
}

void restoreHeads(StateEngine &engine, int32_t slot, const SlotImage &image,
                  std::span<const HeadRange> ranges, Stream stream) {
  if (ranges.size() != engine.manifestOf().layers.size())
    fail(SS_INVALID_ARGUMENT, ranges.size(), " ranges of heads, expected ",
         engine.manifestOf().layers.size(), ", one per layer");
  const std::vector<PlacedLayer> placed = place(engine, image, ranges);
  checkJoins(engine.exportSlot(slot, false, stream), image, slot);
  engine.importSlot(slot, image.position, placed, stream);
  engine.setRoundingKey(slot, image.roundingKey, stream);
}

} // namespace sinkstate::runtime
