//===- Manifest.h - manifest.json of a kernel package -----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_PACKAGE_MANIFEST_H
#define SINKSTATE_CODEGEN_PACKAGE_MANIFEST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace sinkstate {

/// The hash of a model's graph, the same for every spelling of it.
std::string fingerprintGraph(mlir::ModuleOp module);

/// Lower-case hexadecimal SHA-256.
std::string sha256(llvm::StringRef bytes);

/// The manifest of docs/interfaces.md section 4 for a module after
/// `ss-pipeline`, without the files of code: model, schedule, layers and
/// kernels. Reports a module that has no single model or whose layers name no
/// kernels.
mlir::FailureOr<llvm::json::Object> describeModule(mlir::ModuleOp module,
                                                   llvm::StringRef fingerprint);

/// The text of a manifest, the same bytes for the same contents.
std::string printManifest(llvm::json::Object manifest);

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_PACKAGE_MANIFEST_H
