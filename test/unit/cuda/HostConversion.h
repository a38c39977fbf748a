//===- HostConversion.h - The conversion kernels on the host ----*- C++ -*-===//
//
// The same functions that the kernels of device/conversion.cuh call, run thread
// by thread on the host. For the fake driver: each takes the parameters of a
// launch.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_UNIT_HOSTCONVERSION_H
#define SINKSTATE_UNIT_HOSTCONVERSION_H

namespace sinkstate::test {

/// Gives the fake driver the kernels of device/conversion.cuh.
void addConversionKernels();

} // namespace sinkstate::test

#endif
