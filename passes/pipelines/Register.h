//===- Register.h - Dialects and passes of the tools ------------*- C++ -*-===//
//
// The one list of what ss-opt, ss-translate, ss-compile and ss-run know. A new
// dialect or pass library adds its line in Register.cpp and nowhere else.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_PIPELINES_REGISTER_H
#define SINKSTATE_PASSES_PIPELINES_REGISTER_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace sinkstate {

/// Inserts the project's dialects and the upstream ones that its passes
/// produce.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers every pass and pipeline under its command line name.
void registerPasses();

} // namespace sinkstate

#endif // SINKSTATE_PASSES_PIPELINES_REGISTER_H
