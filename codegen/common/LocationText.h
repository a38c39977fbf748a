//===- LocationText.h - Names and notes in locations ------------*- C++ -*-===//
//
// Lowerings say in NameLocs what they make: an identifier names the value, any
// other text is a note on the operations that have it.
//   loc("head"("stored components: every row is read once"("model.mlir":3:1)))
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_COMMON_LOCATIONTEXT_H
#define SINKSTATE_CODEGEN_COMMON_LOCATIONTEXT_H

#include "mlir/IR/Location.h"

namespace sinkstate::codegen {

/// The name that a location gives a value, or an empty string.
llvm::StringRef getNameHint(mlir::Location loc);

/// The note that a location carries, or an empty string.
llvm::StringRef getNote(mlir::Location loc);

/// The place in a file that a location comes from, or null.
mlir::FileLineColLoc getFilePlace(mlir::Location loc);

} // namespace sinkstate::codegen

#endif // SINKSTATE_CODEGEN_COMMON_LOCATIONTEXT_H
