//===- DenseLayout.h - Dense states in a caller's memory --------*- C++ -*-===//
#ifndef SINKSTATE_HANDOVER_DENSELAYOUT_H
#define SINKSTATE_HANDOVER_DENSELAYOUT_H

#include "package/Manifest.h"

#include "sinkstate/sinkstate.h"

#include <cstdint>
#include <span>

namespace sinkstate::runtime {

/// Slots of an engine and their places in a caller's array.
struct DenseStates {
  std::span<const int32_t> slots;
  const int32_t *places; ///< null: place i
  ss_dense_layout layout;

  int64_t placeOf(size_t i) const { return places ? places[i] : int64_t(i); }
};

/// Replaces strides of 0 by packed ones. Throws SS_INVALID_ARGUMENT where the
/// type is unknown, a place is negative or elements of a state overlap.
ss_dense_layout resolveLayout(const LayerManifest &layer,
                              const ss_dense_layout &layout);

/// Reads one H into `columns`, its dk columns of dv floats.
void readDense(const LayerManifest &layer, const ss_dense_layout &layout,
               const void *dense, int64_t place, int64_t head, float *columns);
/// Writes one H, of which `at(v, k)` is the element at v * vStride + k * kStride
/// of `state`.
void writeDense(const LayerManifest &layer, const ss_dense_layout &layout,
                void *out, int64_t place, int64_t head, const float *state,
                int64_t vStride, int64_t kStride);

} // namespace sinkstate::runtime

#endif
