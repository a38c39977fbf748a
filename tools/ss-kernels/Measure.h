//===- Measure.h - Compiles a folder of printed kernels ---------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_KERNELS_MEASURE_H
#define SINKSTATE_TOOLS_SS_KERNELS_MEASURE_H

#include "ResourceTable.h"

namespace ss_kernels {

/// Why nothing can be compiled here; "" where NVRTC is there.
std::string nvrtcUnavailable();

/// Compiles every .cu file of `folder` for every architecture, in parallel.
/// What was compiled before, with the same NVRTC, comes from the kernel cache.
sinkstate::Result<ResourceTable>
measure(const std::string &folder,
        const std::vector<std::string> &architectures);

} // namespace ss_kernels

#endif // SINKSTATE_TOOLS_SS_KERNELS_MEASURE_H
