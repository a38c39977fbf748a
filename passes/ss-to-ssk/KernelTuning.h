//===- KernelTuning.h - what a device asks of kernels -----------*- C++ -*-===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
//
// The choices that a graph does not make, in one table of measured figures by
// device, and a count of bytes for what is the graph's to choose. Nothing here
// is read from the environment.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PASSES_SSTOSSK_KERNELTUNING_H
#define SINKSTATE_PASSES_SSTOSSK_KERNELTUNING_H

#include "LayerShape.h"

#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>

namespace sinkstate {

/// How one kernel is made for a device.
struct KernelTuning {
  int64_t rowsInFlight;     ///< rows of a state that are loaded together
  int64_t programsPerBlock; ///< of one warp each, on a GPU
  /// Parts of a state in a decode: as many warps, or one, take a state on a GPU.
  /// With more than one a block is one program.
  int64_t parts;
  /// Blocks (of kernels with parts: those of one warp) that a multiprocessor should
  /// hold; nothing: the GPU's compiler decides.
  std::optional<int64_t> residentBlocks;
  llvm::StringRef reason; ///< what was measured, in one line
  /// Whether a kernel asks for the next state's memory while it works on a state.
  bool asksAhead = false;
  /// Whether compaction decides what it keeps before it forms rows, and forms no
  /// others. On a GPU a product's tiles have 16 rows, and blocks of 16 gain nothing.
  bool formsKept = false;
  /// Warps that work on one state together, on a GPU. With more than one a block is
  /// one program.
  int64_t warps = 1;
  /// Whether a compaction on a GPU has these routines at every use, instead of calling
  /// them: more to compile, and more registers for what lives across them.
  bool repeatsOrthogonalize = false;
  bool repeatsMatmul = false;
};

/// The devices of the table: "cpu" and GPU architectures, such as "sm_90".
llvm::ArrayRef<llvm::StringLiteral> getTunedDevices();

/// The row of the table for a kernel of this role. The device is one of the
/// table's.
KernelTuning getKernelTuning(llvm::StringRef device, llvm::StringRef role,
                             const LayerShape &shape);

/// What decode and compaction of one state move in a step, from the sizes alone.
struct StepBytes {
  double decode;  ///< rows of `components`, half a buffer, inputs and outputs
  double compact; ///< a step's share of one compaction in `buffer` steps
};
StepBytes countStepBytes(const LayerShape &shape, int64_t components,
                         int64_t buffer);

/// One line on the buffer's length: what its compactions move, and what those of
/// one twice as long would.
std::string explainBuffer(const LayerShape &shape);

} // namespace sinkstate

#endif // SINKSTATE_PASSES_SSTOSSK_KERNELTUNING_H
