//===- CpuIsa.h - Instruction-set levels of x86-64 --------------*- C++ -*-===//
#ifndef SINKSTATE_PACKAGE_CPUISA_H
#define SINKSTATE_PACKAGE_CPUISA_H

#include <string_view>

namespace sinkstate::runtime {

/// 2, 3 or 4 for x86-64-v2, -v3, -v4; 0 for any other spelling.
int cpuIsaLevel(std::string_view isa);

/// The highest level this processor (and its operating system) can run; 1 is
/// plain x86-64, 0 another architecture.
int hostCpuIsaLevel();

} // namespace sinkstate::runtime

#endif
