//===- MachineCode.h - Printed kernels for known GPUs -----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_PACKAGE_MACHINECODE_H
#define SINKSTATE_CODEGEN_PACKAGE_MACHINECODE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace sinkstate {

/// A printed kernel, and the architecture ("sm_90a") to compile it for.
struct MachineCodeInput {
  std::string kernel;
  llvm::StringRef source;
  std::string architecture;
};

/// Fails unless every name is one of a GPU's machine code, `sm_` and its number with
/// `a` or `f` behind it or without, and no two are the same.
llvm::Error checkArchitectures(llvm::ArrayRef<std::string> architectures);

/// The cubins of the inputs, in their order, compiled by NVRTC with the flags that
/// engines use, on as many threads as there are processors. No GPU is needed. Fails
/// where NVRTC is missing or does not know an architecture.
llvm::Expected<std::vector<std::string>>
compileToMachineCode(llvm::ArrayRef<MachineCodeInput> inputs);

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_PACKAGE_MACHINECODE_H
