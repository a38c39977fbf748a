//===- PackageWriter.h - kernel packages on disk ----------------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CODEGEN_PACKAGE_PACKAGEWRITER_H
#define SINKSTATE_CODEGEN_PACKAGE_PACKAGEWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace sinkstate {

struct PackageOptions {
  /// Instruction-set levels to have CPU code for: x86-64-v2, -v3, -v4.
  std::vector<std::string> cpuLevels = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  /// Print the kernels as CUDA C++ too.
  bool cuda = true;
  /// Architectures ("sm_90a") to have machine code of those for, which needs NVRTC
  /// and takes seconds a kernel: engines on these GPUs do not compile them.
  std::vector<std::string> cubins;
  /// With the kernels of ss_state_init, for every layer; without them the runtime
  /// decomposes on the host.
  bool init = false;
  /// With those of the layers whose dense states come back to factors by them on a
  /// GPU, where the package is for GPUs too: relative policies of eps 2^-13 or more,
  /// rows of 16 bits or more, a shorter side of at most 128. Steps of large batches
  /// take longer with them (docs/rationale.md, "Dense states come back on both
  /// devices").
  bool initWhereDense = false;
  /// Warps that start one state together on a GPU; 0: as the table of tunings says.
  int64_t initWarps = 0;
  /// The last quarter of the layers compacts before its tokens
  /// (ss-schedule-compaction); false: all after, but those with draft tokens.
  bool compactBefore = false;
  /// Remarks say what was chosen for every kernel, and why.
  bool explain = false;
};

/// Fails unless a package may be written to `folder`: it does not exist, is
/// empty, or is a package, which is then replaced. Nothing else ever is.
llvm::Error checkPackageFolder(llvm::StringRef folder);

/// Compiles a model's graph (a module with one ss.model, left as it is) into a
/// kernel package, docs/interfaces.md section 4. The folder appears complete
/// or not at all; a package that is there already is replaced
/// (checkPackageFolder). Diagnostics go to the module's context, the error says
/// what failed.
llvm::Error writePackage(mlir::ModuleOp graph, const PackageOptions &options,
                         llvm::StringRef folder);

} // namespace sinkstate

#endif // SINKSTATE_CODEGEN_PACKAGE_PACKAGEWRITER_H
