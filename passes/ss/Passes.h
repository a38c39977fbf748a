//===- Passes.h - Passes over the ss dialect --------------------*- C++ -*-===//
#ifndef SINKSTATE_PASSES_SS_PASSES_H
#define SINKSTATE_PASSES_SS_PASSES_H

#include "dialect/ss/SS.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace sinkstate::ss {

#define GEN_PASS_DECL
#include "passes/ss/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/ss/Passes.h.inc"

} // namespace sinkstate::ss

#endif // SINKSTATE_PASSES_SS_PASSES_H
