//===- StatusBits.h - What an SVD leaves in a state's status ----*- C++ -*-===//
#ifndef SINKSTATE_ENGINE_STATUSBITS_H
#define SINKSTATE_ENGINE_STATUSBITS_H

#include "consolidation/ExactSvd.h"

#include "sinkstate/routines.h"

#include <cstdint>

namespace sinkstate::runtime {

inline int32_t statusBits(consolidation::SvdStatus status) {
  switch (status) {
  case consolidation::SvdStatus::ok:
    return 0;
  case consolidation::SvdStatus::notFinite:
    return SS_STATUS_NOT_FINITE;
  case consolidation::SvdStatus::notConverged:
    return SS_STATUS_NOT_CONVERGED;
  }
  return SS_STATUS_NOT_CONVERGED;
}

} // namespace sinkstate::runtime

#endif
