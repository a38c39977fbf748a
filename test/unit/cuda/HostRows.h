//===- HostRows.h - The kernels of row pools on the host --------*- C++ -*-===//
//
// The same functions that the kernels of device/pool.cuh and device/rows.cuh
// call, run in order on the host. For the fake driver: each takes the
// parameters of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HOSTROWS_H
#define SINKSTATE_UNIT_HOSTROWS_H

#include "cuda/device/rows.cuh"

namespace sinkstate::test {

/// ss_plan_rows(ss::RowTables, int32_t first, int32_t ahead)
void hostPlanRows(void *, void *const *parameters, unsigned blocks);
void hostForeseeRows(void *, void *const *parameters, unsigned blocks);
/// ss_place_rows(ss::RowTables, int32_t layer, const int32_t *states,
///               const int32_t *rows, int32_t count)
void hostPlaceRows(void *, void *const *parameters, unsigned blocks);
/// ss_provide_rows(ss::RowPool *pools)
void hostProvideRows(void *, void *const *parameters, unsigned blocks);
/// ss_move_rows(ss::RowTables, int32_t layer)
void hostMoveRows(void *, void *const *parameters, unsigned blocks);
/// ss_move_all(ss::RowTables, int32_t except)
void hostMoveAll(void *, void *const *parameters, unsigned blocks);
/// ss_check_range(ss::RowTables, int32_t layer)
void hostCheckRange(void *, void *const *parameters, unsigned blocks);
/// ss_widen_back and ss_round_back(ss::RowTables, int32_t layer)
void hostWidenBack(void *, void *const *parameters, unsigned blocks);
void hostRoundBack(void *, void *const *parameters, unsigned blocks);
/// ss_settle_rows(ss::RowTables, int32_t layer)
void hostSettleRows(void *, void *const *parameters, unsigned blocks);
/// ss_cancel_rows(ss::RowTables, int32_t layer, int32_t again)
void hostCancelRows(void *, void *const *parameters, unsigned blocks);
/// ss_release_rows(ss::RowTables, int32_t slot)
void hostReleaseRows(void *, void *const *parameters, unsigned blocks);

/// All of them, by their names, as kernels of the fake driver.
void addRowKernels();

/// The phases of one provision, each by threads 0 to `threads` - 1 in turn, or
/// the other way round.
void provide(ss::RowPool &pool, int32_t threads, bool backwards = false);

} // namespace sinkstate::test

#endif
