//===- SlotImage.cpp - Everything of a slot, in host memory ---------------===//

#include "handover/SlotImage.h"

#include "capi/Failure.h"
#include "consolidation/ExactSvd.h"

#include <algorithm>
#include <cmath>

namespace sinkstate::runtime {

LayerShape LayerShape::of(const LayerManifest &layer) {
  return {layer.type, layer.index, layer.heads,     layer.keyHeads,
          layer.dv,   layer.dk,    layer.denseForm, layer.channelDecay};
}

int64_t LayerImage::storedFloats() const {
  int64_t floats = 0;
  for (const HeadImage &head : heads)
    floats += head.storedFloats(shape);
  return floats;
}

int64_t LayerImage::components() const {
  int64_t components = 0;
  for (const HeadImage &head : heads)
    components += head.components();
  return components;
}

void LayerImage::noteSinks(const LayerSinks &means) {
  sinks.clear();
  if (means.hashes.empty())
    return;
  for (size_t i = 0; i < heads.size(); ++i)
    sinks.push_back(heads[i].rank > 0 ? means.hashes[i] : 0);
  if (std::all_of(sinks.begin(), sinks.end(),
                  [](uint64_t hash) { return hash == 0; }))
    sinks.clear();
}

namespace {

/// Appends `count` pieces of `width` floats from number `first` on.
void appendPieces(std::vector<float> &to, const std::vector<float> &from,
                  int64_t first, int64_t count, int64_t width) {
  if (from.empty())
    return;
  const auto begin = from.begin() + first * width;
  to.insert(to.end(), begin, begin + count * width);
}

/// The image's key head of every key head of the target that the range uses.
std::vector<int32_t> keyHeadsOf(const LayerShape &shape,
                                const LayerManifest &target,
                                const HeadRange &range) {
  const int32_t group = shape.heads / shape.keyHeads;
  const int32_t targetGroup = target.heads / target.keyHeads;
  const int32_t first = range.to / targetGroup;
  std::vector<int32_t> keyHeads;
  for (int32_t i = 0; i < range.count; ++i) {
    const int32_t key = (range.from + i) / group;
    const size_t place = size_t((range.to + i) / targetGroup - first);
    if (place == keyHeads.size())
      keyHeads.push_back(key);
    else if (keyHeads[place] != key)
      fail(SS_FOREIGN_SNAPSHOT, "heads ", range.from + i - 1, " and ",
           range.from + i, " of layer '", target.name,
           "' have different keys in the snapshot, expected the key they "
           "share in this engine: cut between groups of ", group, " heads");
  }
  return keyHeads;
}

} // namespace

PlacedLayer cutHeads(const LayerImage &layer, const LayerManifest &target,
                     const HeadRange &range) {
  PlacedLayer placed;
  placed.firstHead = range.to;
  LayerImage &cut = placed.image;
  cut.shape = layer.shape;
  cut.shape.heads = range.count;
  cut.count = layer.count;
  cut.storage = layer.storage;
  cut.saysSinks = layer.saysSinks;
  if (layer.shape.denseForm) { // no tables, no keys
    appendPieces(cut.dense, layer.dense, range.from, range.count,
                 layer.shape.denseFloats());
    return placed;
  }
  const std::vector<int32_t> keyHeads = keyHeadsOf(layer.shape, target, range);
  placed.firstKeyHead = range.to / (target.heads / target.keyHeads);
  cut.shape.keyHeads = int32_t(keyHeads.size());
  const auto firstHead = layer.heads.begin() + range.from;
  cut.heads.assign(firstHead, firstHead + range.count);
  if (!layer.sinks.empty())
    cut.sinks.assign(layer.sinks.begin() + range.from,
                     layer.sinks.begin() + range.from + range.count);
  int64_t skippedFloats = 0, skippedWeights = 0;
  for (auto head = layer.heads.begin(); head != firstHead; ++head) {
    skippedFloats += head->storedFloats(layer.shape);
    skippedWeights += head->components();
  }
  appendPieces(cut.rows, layer.rows, skippedFloats, cut.storedFloats(), 1);
  appendPieces(cut.weights, layer.weights, skippedWeights, cut.components(),
               1);
  for (int32_t key : keyHeads)
    appendPieces(cut.bufferK, layer.bufferK, key, 1,
                 layer.count * int64_t(layer.shape.dk));
  appendPieces(cut.bufferU, layer.bufferU, range.from, range.count,
               layer.count * int64_t(layer.shape.dv));
  appendPieces(cut.bufferG, layer.bufferG, range.from, range.count,
               layer.count * layer.shape.decayFloats());
  return placed;
}

bool mayBeNarrowed(Storage storage, std::span<const float> matrix) {
  const bool isFinite = std::all_of(matrix.begin(), matrix.end(),
                                    [](float x) { return std::isfinite(x); });
  return !isFinite ||
         keepsDigits(storage, matrix.data(), int64_t(matrix.size()));
}

void storeInFactors(LayerImage &layer, double eps,
                    std::optional<Storage> dense) {
  const LayerShape &shape = layer.shape;
  const int64_t most = std::min(shape.dk, shape.dv);
  std::vector<float> rows, weights;
  const float *row = layer.rows.data(), *weight = layer.weights.data();
  for (HeadImage &head : layer.heads) {
    const HeadImage before = head;
    const bool stays =
        before.rank < 0 && dense &&
        mayBeNarrowed(*dense, {row, size_t(before.storedFloats(shape))});
    if (before.rank >= 0 || stays) {
      rows.insert(rows.end(), row, row + before.storedFloats(shape));
      weights.insert(weights.end(), weight, weight + before.components());
    } else {
      std::vector<float> some(size_t(most * shape.rowFloats()));
      std::vector<float> someWeights(static_cast<size_t>(most));
      consolidation::Truncation truncation;
      truncation.eps = eps;
      const consolidation::SvdResult result =
          consolidation::factorize(row, shape.dk, shape.dv, truncation,
                                   some.data(), someWeights.data());
      if (result.status != consolidation::SvdStatus::ok)
        fail(SS_FOREIGN_SNAPSHOT, "a dense state of layer ", shape.index,
             " is not finite or its SVD failed, expected one that this "
             "engine can keep in factors: restore it with dense_fallback 1");
      head.rank = result.rank;
      head.folds = head.compactions = 0;
      head.svdDue = false;
      rows.insert(rows.end(), some.begin(),
                  some.begin() + result.rank * shape.rowFloats());
      weights.insert(weights.end(), someWeights.begin(),
                     someWeights.begin() + result.rank);
    }
    row += before.storedFloats(shape);
    weight += before.components();
  }
  layer.rows = std::move(rows);
  layer.weights = std::move(weights);
}

void addEmptySink(LayerImage &layer, size_t head, const LayerSinks &sinks,
                  int64_t place) {
  int64_t row = 0;
  for (size_t i = 0; i < head; ++i)
    row += layer.heads[i].components();
  const std::vector<float> key(size_t(layer.shape.dk));
  std::vector<float> sink(size_t(layer.shape.rowFloats()));
  const float weight = sinkRow(sinks.directionOf(place), key, sink.data());
  layer.rows.insert(layer.rows.begin() + row * layer.shape.rowFloats(),
                    sink.begin(), sink.end());
  layer.weights.insert(layer.weights.begin() + row, weight);
  ++layer.heads[head].rank;
}

} // namespace sinkstate::runtime
