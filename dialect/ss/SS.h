//===- SS.h - The ss dialect ------------------------------------*- C++ -*-===//
//
// Everything of the ss dialect: enums, attributes, types, the fusion interface
// and the operations.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DIALECT_SS_SS_H
#define SINKSTATE_DIALECT_SS_SS_H

#include "dialect/ss/SSEnums.h"
#include "dialect/ss/SSLayerTypes.h"
#include "dialect/ss/SSSizes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/ss/SSDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ss/SSAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/ss/SSTypes.h.inc"

#include "dialect/ss/SSInterfaces.h.inc"

namespace sinkstate::ss {
class LayerOp;
class ScheduleOp;
} // namespace sinkstate::ss

#define GET_OP_CLASSES
#include "dialect/ss/SSOps.h.inc"

#endif // SINKSTATE_DIALECT_SS_SS_H
