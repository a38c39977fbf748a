//===- InitialState.cpp - What a dense state becomes ----------------------===//

#include "handover/InitialState.h"

#include "capi/Failure.h"
#include "engine/Sinks.h"

#include "sinkstate/routines.h"
#include "sinkstate/sinkstate.h"

#include <algorithm>

namespace sinkstate::runtime {

using consolidation::SvdStatus;

int32_t mostInitialRows(const LayerManifest &layer) {
  const int32_t side = std::min(layer.dk, layer.dv);
  const int32_t block = std::min(SS_INIT_BLOCK, side);
  return std::min(SS_INIT_MOST_COMPONENTS, side) / block * block;
}

bool hasInitKernel(const LayerManifest &layer, float eps) {
  return layer.init != kNoKernel && eps >= float(SS_INIT_LEAST_EPS);
}

void readInitKernel(const LayerManifest &layer, const LayerLayout &layout,
                    int32_t rank, int32_t status, InitialState &initial) {
  const bool largeIsDense =
      layout.denseFallback &&
      layout.breakEvenRank <= mostInitialRows(layer) + 1;
  initial.found = (rank >= 0 || largeIsDense) &&
                  !(status & SS_STATUS_NOT_CONVERGED);
  initial.factors.status =
      status & SS_STATUS_NOT_FINITE ? SvdStatus::notFinite : SvdStatus::ok;
  initial.factors.rank = rank;
}

bool mayBeDense(const LayerLayout &layout, const InitialState &initial) {
  if (!layout.denseFallback || !initial.found ||
      initial.factors.status != SvdStatus::ok)
    return false;
  return initial.factors.rank < 0 ||
         initial.factors.rank >= layout.breakEvenRank;
}

void checkRange(const LayerLayout &layout, InitialState &initial) {
  initial.fitsDense = keepsDigits(layout.storage, initial.columns.data(),
                                  layout.denseFloats);
  if (!initial.fitsDense && initial.factors.rank < 0)
    initial.found = false;
}

void takeSink(std::span<const float> direction, InitialState &initial) {
  const auto dk = int64_t(initial.columns.size() / direction.size());
  const std::vector<float> key =
      takeSinkOut(direction, initial.columns.data(), dk);
  if (key.empty())
    return;
  initial.sinkRow.resize(key.size() + direction.size());
  initial.sinkWeight = sinkRow(direction, key, initial.sinkRow.data());
}

void factorizeAll(const LayerManifest &layer, const LayerLayout &layout,
                  double eps, int threads, std::span<InitialState> all) {
  const int64_t most = std::min(layer.dv, layer.dk);
  consolidation::Truncation truncation;
  truncation.eps = eps;
  bool outOfMemory = false;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (size_t i = 0; i < all.size(); ++i) {
    try {
      InitialState &initial = all[i];
      if (initial.found)
        continue;
      initial.rows.resize(size_t(most * layout.rowFloats));
      initial.weights.resize(size_t(most));
      initial.factors = consolidation::factorize(
          initial.columns.data(), layer.dk, layer.dv, truncation,
          initial.rows.data(), initial.weights.data());
      checkRange(layout, initial);
    } catch (const std::bad_alloc &) {
#pragma omp atomic write
      outOfMemory = true;
    }
  }
  if (outOfMemory)
    throw std::bad_alloc();
}

InitialForm formOf(const LayerLayout &layout, int32_t most,
                   const InitialState &initial) {
  InitialForm form;
  const SvdStatus found = initial.factors.status;
  form.finite = found != SvdStatus::notFinite;
  if (!form.finite) {
    form.rank = 1;
    form.status = SS_STATUS_NOT_FINITE;
    return form;
  }
  if (found == SvdStatus::notConverged)
    form.status = SS_STATUS_NOT_CONVERGED;
  const int32_t rank = initial.factors.rank;
  form.dense = layout.denseFallback && initial.fitsDense &&
               (found == SvdStatus::notConverged || rank < 0 ||
                rank >= layout.breakEvenRank);
  form.rank = found == SvdStatus::ok && !form.dense ? rank : 0;
  if (form.rank > most) {
    form.rank = most;
    form.status |= layout.fixedRank ? 0 : SS_STATUS_TIGHTENED;
  }
  return form;
}

ss_init_options resolveInitOptions(const LayerLayout &layout,
                                   const ss_init_options &options) {
  if (!(options.eps < 1))
    fail(SS_INVALID_ARGUMENT, "options.eps is ", options.eps,
         ", expected less than 1 (below 0: the layer's policy)");
  ss_init_options chosen = options;
  if (chosen.eps < 0)
    chosen.eps = layout.dropBelow;
  return chosen;
}

} // namespace sinkstate::runtime
