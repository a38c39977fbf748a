//===- InitialState.h - What a dense state becomes --------------*- C++ -*-===//
//
// The part of initialisation that is the same on every device: which kernel can
// be used, what is left to an exact SVD, and whether a state ends in factors or
// dense.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_INITIALSTATE_H
#define SINKSTATE_HANDOVER_INITIALSTATE_H

#include "consolidation/ExactSvd.h"
#include "state/LayerLayout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sinkstate::runtime {

/// A state on its way in.
struct InitialState {
  int32_t state = 0;
  std::vector<float> columns; ///< H, dk columns of dv
  std::vector<float> rows, weights;
  consolidation::SvdResult factors;
  bool found = false; ///< `factors` is what the state becomes
  /// The sink as a row and its weight; empty: the head has none.
  std::vector<float> sinkRow;
  float sinkWeight = 0;
  /// Whether the matrix keeps its digits in its storage.
  bool fitsDense = true;
};

/// What a state becomes: `rank` rows (one of NaN where it is not finite) behind
/// that of its sink, or its matrix.
struct InitialForm {
  bool dense = false, finite = true;
  int32_t rank = 0, status = 0;
};

/// Components that the layer's init kernel finds at most.
int32_t mostInitialRows(const LayerManifest &layer);

/// Whether the layer has an init kernel that is precise enough for this eps.
bool hasInitKernel(const LayerManifest &layer, float eps);

/// Takes over what an init kernel said of a state: its `rank` and `status`.
/// What it could not do well is left to the exact SVD.
void readInitKernel(const LayerManifest &layer, const LayerLayout &layout,
                    int32_t rank, int32_t status, InitialState &initial);

/// Whether the state will be dense, unless its matrix is out of range.
bool mayBeDense(const LayerLayout &layout, const InitialState &initial);

/// Sets `fitsDense` by `columns`; a state that does not fit has to be found in
/// factors.
void checkRange(const LayerLayout &layout, InitialState &initial);

/// Takes the sink of this direction out of `columns` (LayerSinks).
void takeSink(std::span<const float> direction, InitialState &initial);

/// Exact SVDs of those that are not found yet, on so many threads.
void factorizeAll(const LayerManifest &layer, const LayerLayout &layout,
                  double eps, int threads, std::span<InitialState> all);

/// `most`: components that the engine keeps of a state after a compaction.
InitialForm formOf(const LayerLayout &layout, int32_t most,
                   const InitialState &initial);

/// Checks options.eps and replaces "the layer's policy" by a number.
ss_init_options resolveInitOptions(const LayerLayout &layout,
                                   const ss_init_options &options);

} // namespace sinkstate::runtime

#endif
