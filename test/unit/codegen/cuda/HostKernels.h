//===- HostKernels.h - printed kernels, run without a GPU -------*- C++ -*-===//
#ifndef SINKSTATE_TEST_UNIT_CODEGEN_CUDA_HOSTKERNELS_H
#define SINKSTATE_TEST_UNIT_CODEGEN_CUDA_HOSTKERNELS_H

#include "codegen/cpu/CpuCodegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

namespace sinkstate::test {

/// A module of kernels, prepared, with the back ends' code for it.
class PreparedModule {
public:
  /// Parses `text`, runs `pipeline` ("builtin.module(...)") and fails the test on an
  /// error.
  explicit PreparedModule(const std::string &text,
                          const std::string &pipeline = "builtin.module(ssk.kernel(ssk-prepare))");
  explicit operator bool() const { return bool(module); }
  mlir::ModuleOp get() const { return *module; }

  /// Runs ssk-prepare on kernels that were built by hand.
  void prepare();

  /// The printed CUDA C++ of all kernels.
  std::string printCuda() const;

private:
  bool runPasses(const std::string &pipeline);
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The kernels of a module as printed CUDA C++, compiled by the host's C++ compiler and
/// run by an emulated warp.
class EmulatedKernels {
public:
  explicit EmulatedKernels(const PreparedModule &module);
  ~EmulatedKernels();
  /// False if there is no C++ compiler to try it with; the test is skipped then.
  static bool isAvailable();

  /// Runs programs [0, programs) of a kernel (NAME_parts: by blocks of a warp for each
  /// part); `args` as for ss_cpu_kernel. Fails the
  /// test if the lanes of a warp did not stay together. `order`: 0 ascending lanes, 1
  /// descending, 2 shuffled.
  void run(const std::string &kernel, const void *const *args, int64_t programs,
           int order = 0) const;

private:
  std::string folder;
  void *library = nullptr;
};

/// Runs one kernel on copies of the same memory by both back ends.
class BothBackEnds {
public:
  explicit BothBackEnds(const PreparedModule &module);

  void run(const std::string &kernel, const std::vector<const void *> &cpuArgs,
           const std::vector<const void *> &cudaArgs, int64_t programs, int order = 0) const;
  const EmulatedKernels &getEmulated() const { return emulated; }

private:
  std::unique_ptr<cpu::CpuJit> jit;
  EmulatedKernels emulated;
};

} // namespace sinkstate::test

#endif // SINKSTATE_TEST_UNIT_CODEGEN_CUDA_HOSTKERNELS_H
