//===- Passes.h - from the mathematics to kernels ---------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_PASSES_H
#define SINKSTATE_PASSES_SSTOSSK_PASSES_H

#include "mlir/Pass/Pass.h"

namespace sinkstate {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/ss-to-ssk/Passes.h.inc"

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_PASSES_H
