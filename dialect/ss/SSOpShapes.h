//===- SSOpShapes.h - Shape checks shared by operations ---------*- C++ -*-===//
#ifndef SINKSTATE_DIALECT_SS_SSOPSHAPES_H
#define SINKSTATE_DIALECT_SS_SSOPSHAPES_H

#include "dialect/ss/SS.h"

namespace sinkstate::ss {

/// `what` of the operation has the given shape; `meaning` names its dimensions.
mlir::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef what,
                                mlir::RankedTensorType type,
                                llvm::ArrayRef<int64_t> shape,
                                llvm::StringRef meaning);

/// The operation works on the factors of a state: the state has some.
mlir::LogicalResult verifyFactored(mlir::Operation *op, StateType state);

/// `what` is a block of `rows` components of the state's sizes.
mlir::LogicalResult verifyFactors(mlir::Operation *op, llvm::StringRef what,
                                  FactorsType factors, StateType state,
                                  int64_t rows, llvm::StringRef rowsMeaning);

} // namespace sinkstate::ss

#endif // SINKSTATE_DIALECT_SS_SSOPSHAPES_H
