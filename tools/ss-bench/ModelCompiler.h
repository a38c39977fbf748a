//===- ModelCompiler.h - Packages compiled in this process ------*- C++ -*-===//
#ifndef SS_BENCH_MODELCOMPILER_H
#define SS_BENCH_MODELCOMPILER_H

#include "BenchOptions.h"

#include <string>

namespace ss_bench {

/// Compiles the preset, config.json or graph of the options for their device
/// into the package `folder`/ours, and its dense forms, unless they are not
/// wanted, into folders that keyOf() names. Matrices are not stored in 8 bits:
/// beside such rows there is the dense form in f32 alone. Returns the seconds that
/// the first took. An error where ss-bench was built without the compiler.
sinkstate::Result<double> compileModels(const BenchOptions &options,
                                        const std::string &folder);

} // namespace ss_bench

#endif
