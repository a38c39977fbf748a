//===- Kernels.h - Where the kernels of a run come from ---------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_RUN_KERNELS_H
#define SINKSTATE_TOOLS_SS_RUN_KERNELS_H

#include "Options.h"

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
  /// What a compaction keeps, in words: "relative:0.03, active 8, buffer 8".
  const std::string &policy() const { return description; }

protected:
  void close();

  ss_package *handle = nullptr;
  std::string description;
};

enum class StateForm { Factored, Dense };

/// Whether compileKernels() can be used: ss-run is built without LLVM for
/// machines that have none, and then takes packages alone.
CompilerHalf compilerHalf();

/// Imports the model's config.json and compiles its state kernels in process:
/// machine code of this processor, or CUDA sources, as options.device says.
Result<std::unique_ptr<Kernels>> compileKernels(const RunOptions &options,
                                                StateForm form);

/// Opens a package folder that ss-compile made. One for the dense run has dense
/// states in f32 in every layer, as compressed ones are measured against.
Result<std::unique_ptr<Kernels>> openKernels(const std::string &folder,
                                             StateForm form);

} // namespace ss_run

#endif // SINKSTATE_TOOLS_SS_RUN_KERNELS_H
