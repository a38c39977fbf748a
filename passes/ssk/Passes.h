//===- Passes.h - passes over kernels ---------------------------*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SSK_PASSES_H
#define SINKSTATE_PASSES_SSK_PASSES_H

#include "dialect/ssk/SSKDialect.h"

#include "mlir/Pass/Pass.h"

namespace sinkstate::ssk {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/ssk/Passes.h.inc"

} // namespace sinkstate::ssk

#endif // SINKSTATE_PASSES_SSK_PASSES_H
