//===- FakeKernels.h - A package's CPU code as the fake GPU's ---*- C++ -*-===//
#ifndef SINKSTATE_DEVICE_FAKEKERNELS_H
#define SINKSTATE_DEVICE_FAKEKERNELS_H

#include <string>
#include <vector>

namespace sinkstate::test {

/// Gives the fake GPU the bookkeeping kernels and, for every kernel of these
/// packages, the CPU code of the same name. Throws where a package has none.
void addFakeKernels(const std::vector<std::string> &folders);

} // namespace sinkstate::test

#endif
