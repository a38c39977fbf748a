//===- Sinks.h - Mean values of heads ---------------------------*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_SINKS_H
#define SINKSTATE_ENGINE_SINKS_H

#include "package/Manifest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sinkstate::runtime {

/// The mean values that an engine has for the heads of a layer of form sink.
struct LayerSinks {
  std::vector<float> means;     ///< [heads, dv]; empty: not of that form
  std::vector<uint64_t> hashes; ///< of each head's; 0: zeros, and no sink

  /// Without sinks so far.
  static LayerSinks of(const LayerManifest &layer);
  void set(std::span<const float> values);
  std::span<const float> meanOf(int64_t head) const {
    const size_t width = means.size() / hashes.size();
    return {means.data() + size_t(head) * width, width};
  }
};

/// Throws SS_INVALID_ARGUMENT where a layer does not take these mean values, or
/// a slot (-1: none) has an owner, whose states are of others.
void checkSinks(const LayerManifest &layer, std::span<const float> means,
                int32_t slotInUse);

/// Takes vbar c^T out of a matrix of dk columns of dv; returns c [dk]. A mean
/// value of zeros has no sink: nothing is done, and c is empty.
std::vector<float> takeSinkOut(std::span<const float> mean, float *columns,
                               int64_t dk);

/// The sink as a row [v | u] of unit halves; returns its weight.
float sinkRow(std::span<const float> mean, std::span<const float> key,
              float *row);

} // namespace sinkstate::runtime

#endif
