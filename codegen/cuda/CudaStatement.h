//===- CudaStatement.h - What an operation is in CUDA C++ -------*- C++ -*-===//
#ifndef SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT_H
#define SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OpDefinition.h"

#include <string>

namespace sinkstate::cuda {
class KernelPrinter;
} // namespace sinkstate::cuda

#include "codegen/cuda/CudaStatement.h.inc"

namespace sinkstate::cuda {

/// Attaches a model of CudaStatement to every operation of ssk and scf that can be
/// printed. Not while passes of the context run; a second time does nothing.
void attachCudaStatements(mlir::MLIRContext &context);

} // namespace sinkstate::cuda

#endif // SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT_H
