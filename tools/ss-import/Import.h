//===- Import.h - From a model's config.json to ss.model --------*- C++ -*-===//
//
// What ss-import does, as a library. Errors are diagnostics of the context: one
// line that names the file and the key, what was found and what is expected.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_TOOLS_SS_IMPORT_IMPORT_H
#define SINKSTATE_TOOLS_SS_IMPORT_IMPORT_H

#include "dialect/ss/SSEnums.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <utility>

namespace sinkstate {

/// The element types of stored rows, by layer type.
struct Storages {
  ss::Storage others = ss::Storage::f32; ///< of types that are not named
  llvm::SmallVector<std::pair<ss::LayerType, ss::Storage>> named;

  ss::Storage of(ss::LayerType type) const;
};

/// "fp8", "fp8+kda=f16", "f32+gdn=fp8+mamba2=fp8"; each type once.
llvm::Expected<Storages> parseStorages(llvm::StringRef text);

/// How the states of all recurrent layers are kept.
struct ImportOptions {
  ss::PolicyKind policyKind = ss::PolicyKind::relative;
  double policyValue = 3e-2;
  /// A fixed rank R overrides these two: both are R.
  int64_t active = 8;
  int64_t buffer = 8;
  int64_t draft = 0;
  std::optional<ss::CoreKind> core; ///< not set: LayerOp::getCoreKind
  Storages storage;
  /// Of storages narrower than f32. Where types have storages of their own, f32
  /// ones round nothing; one for all of them must be narrow.
  ss::Rounding rounding = ss::Rounding::nearest;
  ss::Form form = ss::Form::factored;
};

/// Sets the policy from "KIND:VALUE", such as "relative:0.03" or "fixed:16", and
/// form sink with fixed:R where it is "sink:R".
llvm::Error setPolicy(ImportOptions &options, llvm::StringRef text);

/// Reads a config.json, or the one in a folder, and makes the module with its
/// ss.model, verified.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importConfig(llvm::StringRef path, const ImportOptions &options,
             mlir::MLIRContext *context);

/// The same for the sizes of a published model.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importPreset(llvm::StringRef name, const ImportOptions &options,
             mlir::MLIRContext *context);

struct Preset {
  llvm::StringLiteral name;
  /// What the recurrent layers are, in a few words.
  llvm::StringLiteral summary;
  /// The keys of the model's config.json that matter here.
  llvm::StringLiteral config;
};

llvm::ArrayRef<Preset> getPresets();

} // namespace sinkstate

#endif // SINKSTATE_TOOLS_SS_IMPORT_IMPORT_H
