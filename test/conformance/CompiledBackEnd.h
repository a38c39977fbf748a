//===- CompiledBackEnd.h - Kernels compiled in this process -----*- C++ -*-===//
#ifndef SINKSTATE_CONFORMANCE_COMPILEDBACKEND_H
#define SINKSTATE_CONFORMANCE_COMPILEDBACKEND_H

#include "BackEnd.h"

namespace sinkstate::conformance {

/// Graph texts compiled for this processor. Links the compiler.
std::unique_ptr<BackEnd> makeCompiledBackEnd();

} // namespace sinkstate::conformance

#endif
