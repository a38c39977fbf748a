//===- Kernels.h - Where the kernels of a run come from ---------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_KERNELS_H
#define SINKSTATE_TOOLS_SS_RUN_KERNELS_H

#include "Options.h"
#include "PackageLayers.h"

#include "sinkstate/sinkstate.h"

#include <memory>
#include <string>

namespace ss_run {

/// A package and whatever keeps its code alive; engines made of it must not
/// outlive it.
class Kernels {
public:
  virtual ~Kernels();
  const ss_package *package() const { return handle; }
  /// How the states of every layer are kept, as the manifest says.
  const std::vector<ss_tools::PackageLayer> &layers() const { return kept; }
  /// The same in words, behind the name of a package: "relative:0.03, core qr,
  /// active 8, buffer 8, storage f32".
  std::string policy() const { return origin + ss_tools::describe(kept); }

protected:
  void close();

  ss_package *handle = nullptr;
  std::string origin; ///< "package FOLDER: "; empty: compiled here
  std::vector<ss_tools::PackageLayer> kept;
};

enum class StateForm { Factored, Dense };

/// Whether compileKernels() can be used: ss-run is built without LLVM for
/// machines that have none, and then takes packages alone.
CompilerHalf compilerHalf();

/// Imports the model's config.json and compiles its state kernels in process:
/// machine code of this processor, or CUDA sources, as options.device says.
Result<std::unique_ptr<Kernels>> compileKernels(const RunOptions &options,
                                                StateForm form);

/// Turns the dense fallback off where no layer's rows have a dense form; an error
/// where it was asked for.
Status settleDenseFallback(const Kernels &kernels, RunOptions &options);

/// Opens a package folder that ss-compile made. One for the dense run has dense
/// states in f32 in every layer, as compressed ones are measured against.
Result<std::unique_ptr<Kernels>> openKernels(const std::string &folder,
                                             StateForm form);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_KERNELS_H
