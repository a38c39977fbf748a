//===- NoCompiler.cpp - ss-run built without LLVM -------------------------===//

#include "Kernels.h"

using namespace ss_run;

CompilerHalf ss_run::compilerHalf() { return CompilerHalf::Absent; }

Result<std::unique_ptr<Kernels>> ss_run::compileKernels(const RunOptions &,
                                                        StateForm) {
  return Error{"kernels: found no compiler in this ss-run, expected --package "
               "with a folder that ss-compile made"};
}
