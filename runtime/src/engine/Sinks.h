//===- Sinks.h - Mean values of heads ---------------------------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_SINKS_H
#define SINKSTATE_ENGINE_SINKS_H

#include "package/Manifest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sinkstate::runtime {

/// The sinks that an engine has for the heads of a layer of form sink.
struct LayerSinks {
  /// [heads, dv], vbar / |vbar| of the mean values; zeros: the head has no sink.
  /// Empty: not of that form.
  std::vector<float> directions;
  std::vector<uint64_t> hashes; ///< of each head's mean value; 0: no sink

  /// Without sinks so far.
  static LayerSinks of(const LayerManifest &layer);
  /// A mean value of zeros is no sink. Every other one has a direction, that of
  /// the smallest float32 numbers too, whose squares float64 holds.
  void set(std::span<const float> means);
  bool hasSink(int64_t head) const {
    return !hashes.empty() && hashes[size_t(head)] != 0;
  }
  std::span<const float> directionOf(int64_t head) const {
    const size_t width = directions.size() / hashes.size();
    return {directions.data() + size_t(head) * width, width};
  }
};

/// Throws SS_INVALID_ARGUMENT where a layer does not take these mean values, or
/// a slot (-1: none) has an owner, whose states are of others.
void checkSinks(const LayerManifest &layer, std::span<const float> means,
                int32_t slotInUse);

/// Takes n c^T, n a sink's direction, out of a matrix of dk columns of dv;
/// returns c [dk]. Zeros are no sink: nothing is done, and c is empty.
std::vector<float> takeSinkOut(std::span<const float> direction, float *columns,
                               int64_t dk);

/// The sink as a row [v | u] of unit halves; returns its weight.
float sinkRow(std::span<const float> direction, std::span<const float> key,
              float *row);

} // namespace sinkstate::runtime

#endif
