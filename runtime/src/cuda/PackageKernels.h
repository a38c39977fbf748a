//===- PackageKernels.h - A package's kernels on a GPU ----------*- C++ -*-===//
#ifndef SINKSTATE_CUDA_PACKAGEKERNELS_H
#define SINKSTATE_CUDA_PACKAGEKERNELS_H

#include "cuda/KernelCompiler.h"
#include "cuda/Module.h"
#include "package/Package.h"

#include <vector>

namespace sinkstate::runtime::cuda {

class PackageKernels {
public:
  /// Loads machine code that the package has for this GPU, and compiles the
  /// sources of all other kernels.
  PackageKernels(std::shared_ptr<const Context> context,
                 const Package &package, const KernelCompiler &compiler);

  /// Queues programs [0, programs) of a kernel. Allocates nothing and waits
  /// for nothing. Few programs take a warp for each of their parts, if the kernel
  /// has any: the same bits. `mostBlocks`: of a kernel that loops over programs,
  /// where hardly any of them will have work; others take no notice of it.
  void launch(KernelIndex kernel, ArgumentValues &values, int64_t programs,
              CUstream stream, int64_t mostBlocks = INT64_MAX) const;

private:
  struct Kernel {
    CUfunction function = nullptr;
    /// The same by a warp for each part of a program, for up to `fewPrograms`.
    CUfunction byParts = nullptr;
    int64_t parts = 1, fewPrograms = 0;
    /// So many programs by parts begin beside the end of the kernel before them.
    int64_t overlappedPrograms = 0;
    int64_t programsPerBlock = 1;
    int64_t warps = 1; ///< of a block
    unsigned dynamicShared = 0;
    bool loops = false; ///< a grid of any size runs all programs
    /// Blocks that are enough for any number of programs: all that the GPU
    /// holds at the same time, for kernels that go on to further programs and
    /// have short ones.
    int64_t enoughBlocks = INT64_MAX;
    std::vector<Argument> arguments;
  };

  void loadParts(Kernel &kernel, const std::string &name) const;
  void start(const Kernel &kernel, void **parameters, int64_t programs,
             unsigned blocks, CUstream stream) const;
  int64_t residentBlocks(CUfunction function, int64_t warps,
                         int64_t shared) const;

  std::shared_ptr<const Context> context;
  std::vector<Module> modules;
  std::vector<Kernel> kernels; ///< by KernelIndex
};

} // namespace sinkstate::runtime::cuda

#endif
