// The device library's routines, run by an emulated warp.
#ifndef SINKSTATE_TEST_ROUTINES_EMULATEDDEVICE_H
#define SINKSTATE_TEST_ROUTINES_EMULATEDDEVICE_H

#include "sinkstate/routines.h"

#include <cstdint>

namespace sinkstate::test {

enum class LaneOrder;

/// Status of the emulated run: a status bit outside the contract where lanes
/// did not meet, or did not return the same status.
constexpr int32_t emulationFailed = 1 << 30;

int32_t emulateOrthogonalize(LaneOrder order, int32_t m, double *gram,
                             double *t);
int32_t emulateCoreSvd(LaneOrder order, int32_t m, double *c, double *xt,
                       double *sigma, double *yt);
/// By 1, 2, 4 or 8 warps; memory as the CPU twin's.
int32_t emulateGramSvd(LaneOrder order, int warps, int32_t m, float *vectors,
                       double *sigma, double share);
/// By 1, 2, 4 or 8 warps, of at most 16 columns.
int32_t emulateAddGram(LaneOrder order, int warps, int32_t m, int32_t width,
                       bool columnsAreRows, bool isFirst, const float *chunk,
                       float *vectors);

/// All as a table, lanes ascending.
extern const ss_routine_table emulatedDevice;

} // namespace sinkstate::test
#endif
