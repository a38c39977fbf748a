//===- Floors.cpp - Bytes and operations that a step cannot avoid ---------===//

#include "Floors.h"

#include <algorithm>

using namespace ss_bench;
using sinkstate::runtime::elementBytes;
using sinkstate::runtime::LayerManifest;

namespace {

constexpr double kFloatBytes = 4;
/// Status, rank, capacity and first row of a state.
constexpr double kTableBytes = 20;

/// States in factors, their components together, and states held dense.
struct Held {
  double factored = 0, components = 0, dense = 0;
  explicit Held(std::span<const int32_t> ranks) {
    for (int32_t rank : ranks)
      rank < 0 ? ++dense : (++factored, components += rank);
  }
};

/// Products with this many vectors are computed: of the query, and of the key
/// where pairs are corrected by what the state says already.
double products(const LayerManifest &layer) { return layer.hasBeta ? 2 : 1; }

/// Of a matrix that is read in every step and written in one of K, which has
/// read all pairs: `floats` are those of the token's inputs and outputs.
Floor floorOfDeferred(const LayerManifest &layer, double states, double groups,
                      double floats) {
  const double size = double(layer.dv) * layer.dk;
  const double decays = layer.channelDecay ? layer.dk : 1;
  // One to K pairs are read, one is written.
  const double pairs = (layer.buffer + 1) / 2.0;
  floats += states * (pairs + 1) * (layer.dv + decays) +
            groups * (pairs + 1) * layer.dk;
  Floor floor;
  floor.decodeBytes = kFloatBytes * floats + double(elementBytes(layer.storage)) *
                                                 states * size *
                                                 (1 + 1.0 / layer.buffer);
  // Every pair is added once; products, with the pairs too.
  const double width = layer.dk + layer.dv;
  floor.flops = states * (2 * size + products(layer) *
                                         (2 * size + pairs * 2 * width));
  return floor;
}

} // namespace

Floor ss_bench::floorOf(const LayerManifest &layer, int32_t batch,
                        std::span<const int32_t> ranks) {
  const double states = double(batch) * layer.heads;
  const double groups = double(batch) * layer.keyHeads;
  const double decays = layer.channelDecay ? layer.dk : 1;
  const double size = double(layer.dv) * layer.dk;
  const double element = double(elementBytes(layer.storage));
  double floats = states * (2.0 * layer.dv + decays + layer.hasBeta) +
                  groups * 2.0 * layer.dk;
  Floor floor;
  if (layer.deferred)
    return floorOfDeferred(layer, states, groups, floats);
  if (layer.denseForm) {
    floor.decodeBytes = kFloatBytes * floats + element * states * 2 * size;
    // Decay, update and readout, and the correction.
    floor.flops = states * size * (3 + 2 * products(layer));
    return floor;
  }
  const Held held(ranks);
  const double pairs = (layer.buffer - 1) / 2.0;
  // The buffered pairs are read, one more is written.
  floats += states * (pairs + 1) * (layer.dv + decays) +
            groups * (pairs + 1) * layer.dk;
  const double width = layer.dk + layer.dv;
  const double rowBytes = element * width + kFloatBytes;
  floor.decodeBytes = kFloatBytes * floats + rowBytes * held.components +
                      element * held.dense * size;
  // A product with the key side and a sum over the value side per vector; a
  // dense state is multiplied with it.
  floor.flops = ((held.components + states * (pairs + 1)) * 2 * width +
                 held.dense * 2 * size) *
                products(layer);
  // A block of the largest components and all pairs is read, as many rows are
  // written as were read; a dense state takes its pairs in.
  const double pairBytes = kFloatBytes * (width + 1) * layer.buffer;
  double block = 0;
  for (int32_t rank : ranks)
    block += pairBytes + (rank < 0 ? 2 * element * size
                                   : 2 * rowBytes * std::min(rank, layer.active));
  floor.compactBytes = block / layer.buffer;
  return floor;
}

double ss_bench::stateBytes(const LayerManifest &layer, int32_t batch,
                            std::span<const int32_t> ranks) {
  const double states = double(batch) * layer.heads;
  const double element = double(elementBytes(layer.storage));
  const double size = double(layer.dv) * layer.dk;
  const double decays = layer.channelDecay ? layer.dk : 1;
  if (layer.deferred) // keys have two halves
    return element * states * size +
           kFloatBytes * layer.buffer *
               (states * (layer.dv + decays) +
                double(batch) * layer.keyHeads * 2 * layer.dk);
  if (layer.denseForm)
    return element * states * size;
  const Held held(ranks);
  const double pairs = layer.buffer + layer.draft;
  const double rowBytes = element * (layer.dk + layer.dv) + kFloatBytes;
  return rowBytes * held.components + element * held.dense * size +
         kFloatBytes * (states * pairs * (layer.dv + decays) +
                        double(batch) * layer.keyHeads * pairs * layer.dk) +
         states * kTableBytes;
}
