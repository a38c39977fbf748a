//===- HostHandOver.h - The hand-over kernels on the host -------*- C++ -*-===//
//
// The same functions that the kernels of device/handover.cuh call, run in order
// on the host. For the fake driver: each takes the parameters of a launch.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HOSTHANDOVER_H
#define SINKSTATE_UNIT_HOSTHANDOVER_H

namespace sinkstate::test {

/// Gives the fake driver the kernels of device/handover.cuh.
void addHandOverKernels();

} // namespace sinkstate::test

#endif
