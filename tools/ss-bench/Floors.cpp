//===- Floors.cpp - Bytes and operations that a step cannot avoid ---------===//

#include "Floors.h"

#include <algorithm>
#include <numeric>

using namespace ss_bench;
using sinkstate::runtime::elementBytes;
using sinkstate::runtime::LayerManifest;

namespace {

constexpr double kFloatBytes = 4;
/// Status, rank, capacity and first row of a state.
constexpr double kTableBytes = 20;

/// Of a row [v | u] and its weight.
double componentBytes(const LayerManifest &layer) {
  return double(elementBytes(layer.storage)) * (layer.dk + layer.dv) +
         kFloatBytes;
}

double sumOf(std::span<const int32_t> ranks) {
  return std::accumulate(ranks.begin(), ranks.end(), 0.0);
}

/// Products with this many vectors are computed: of the query, and of the key
/// where pairs are corrected by what the state says already.
double products(const LayerManifest &layer) { return layer.hasBeta ? 2 : 1; }

} // namespace

Floor ss_bench::floorOf(const LayerManifest &layer, int32_t batch,
                        std::span<const int32_t> ranks) {
  const double states = double(batch) * layer.heads;
  const double groups = double(batch) * layer.keyHeads;
  const double decays = layer.channelDecay ? layer.dk : 1;
  const double size = double(layer.dv) * layer.dk;
  double floats = states * (2.0 * layer.dv + decays + layer.hasBeta) +
                  groups * 2.0 * layer.dk;
  Floor floor;
  if (layer.denseForm) {
    floor.decodeBytes = kFloatBytes * floats +
                        double(elementBytes(layer.storage)) * states * 2 * size;
    // Decay, update and readout, and the correction.
    floor.flops = states * size * (3 + 2 * products(layer));
    return floor;
  }
  const double components = sumOf(ranks);
  const double pairs = (layer.buffer - 1) / 2.0;
  // The buffered pairs are read, one more is written.
  floats += states * (pairs + 1) * (layer.dv + decays) +
            groups * (pairs + 1) * layer.dk;
  const double width = layer.dk + layer.dv;
  floor.decodeBytes =
      kFloatBytes * floats + components * componentBytes(layer);
  // A product with the key side and a sum over the value side per vector.
  floor.flops = (components + states * (pairs + 1)) * 2 * width * products(layer);
  // A block of the largest components and all pairs is read, as many rows are
  // written as were read.
  double active = 0;
  for (int32_t rank : ranks)
    active += std::min(rank, layer.active);
  floor.compactBytes = (2 * active * componentBytes(layer) +
                        states * layer.buffer * kFloatBytes * (width + 1)) /
                       layer.buffer;
  return floor;
}

double ss_bench::stateBytes(const LayerManifest &layer, int32_t batch,
                            std::span<const int32_t> ranks) {
  const double states = double(batch) * layer.heads;
  if (layer.denseForm)
    return double(elementBytes(layer.storage)) * states * layer.dv * layer.dk;
  const double pairs = layer.buffer + layer.draft;
  const double decays = layer.channelDecay ? layer.dk : 1;
  return sumOf(ranks) * componentBytes(layer) +
         kFloatBytes * (states * pairs * (layer.dv + decays) +
                        double(batch) * layer.keyHeads * pairs * layer.dk) +
         states * kTableBytes;
}
