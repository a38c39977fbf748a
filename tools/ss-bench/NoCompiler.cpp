//===- NoCompiler.cpp - ss-bench built without LLVM -----------------------===//

#include "ModelCompiler.h"

sinkstate::Result<double> ss_bench::compileModels(const BenchOptions &,
                                                  const std::string &) {
  return sinkstate::Error{
      "found no compiler in this ss-bench, expected --package with a folder "
      "that ss-compile made"};
}
