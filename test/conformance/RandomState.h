//===- RandomState.h - States of every kind, in a layer's tables -*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_RANDOMSTATE_H
#define SINKSTATE_CONFORMANCE_RANDOMSTATE_H

#include "LayerMemory.h"
#include "Reference.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace sinkstate::conformance {

/// Draws vectors and fills states with them.
class StateFiller {
public:
  StateFiller(LayerMemory &memory, int64_t state, uint64_t seed)
      : memory(memory), state(state), layer(memory.layer), random(seed) {}

  using Doubles = std::vector<double>;

  Doubles normal(int64_t size, double scale = 1);
  Doubles unit(int64_t size, double scale = 1);

  /// `count` components, orthonormal on both sides; component i of weight
  /// `weightOf(i)`.
  void addOrthonormal(int64_t count, std::function<double(int64_t)> weightOf);
  /// Pairs [0, count) of these keys and updates with random decays; sets the
  /// slot's count.
  void setPairs(int64_t count, std::function<Doubles(int64_t)> keyOf,
                std::function<Doubles(int64_t)> updateOf,
                double decayPerPair = -0.1);
  /// Unit keys and updates of length `scale`.
  void setRandomPairs(int64_t count, double scale = 1);

  LayerMemory &memory;
  const int64_t state;
  const reference::LayerSpec &layer;

private:
  std::mt19937_64 random;
};

/// A state in float64, decays folded in.
numerics::FactoredState factoredOf(LayerMemory &memory, int64_t state);

/// |a - b|_F and |a|_F.
double distance(const std::vector<double> &a, const std::vector<double> &b);
double norm(const std::vector<double> &a);

/// The weights of a state, descending.
std::vector<float> sortedWeights(LayerMemory &memory, int64_t state);

/// Largest |Q Q^T - I| over the rows that `isNew` admits, both sides. Where the
/// layer's core is qr the right sides are of unit length and no more.
double orthogonality(LayerMemory &memory, int64_t state,
                     const std::function<bool(int64_t)> &isNew);

} // namespace sinkstate::conformance

#endif
