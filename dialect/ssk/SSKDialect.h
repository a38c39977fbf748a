//===- SSKDialect.h - the kernel dialect --------------------------*- C++
//-*-===//
//
// One program on register tiles; see SSKDialect.td and docs/interfaces.md.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_DIALECT_SSK_SSKDIALECT_H
#define SINKSTATE_DIALECT_SSK_SSKDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/ssk/SSKDialect.h.inc"
#include "dialect/ssk/SSKEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/ssk/SSKTypes.h.inc"

namespace sinkstate::ssk {

/// f32, f64, f16, bf16, f8E4M3FN, i32 or i64: what memory and tiles hold.
bool isElementType(mlir::Type type);
/// f16, bf16 or f8E4M3FN: what is stored, and widened before it is computed with.
bool isNarrowFloat(mlir::Type type);

/// The element type of a global or of scratch; null for other types.
mlir::Type getMemoryElementType(mlir::Type type);

/// One row of runtime/include/sinkstate/routines.def.
struct Routine {
  llvm::StringRef name;
  llvm::StringRef signature; ///< argument letters, explained there
};

/// The routines that `ssk.call` may name, in the order of the routine table.
llvm::ArrayRef<Routine> getRoutines();

} // namespace sinkstate::ssk

#define GET_OP_CLASSES
#include "dialect/ssk/SSKOps.h.inc"

#endif // SINKSTATE_DIALECT_SSK_SSKDIALECT_H
