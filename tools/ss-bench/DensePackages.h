//===- DensePackages.h - What is measured beside a package ------*- C++ -*-===//
#ifndef SS_BENCH_DENSEPACKAGES_H
#define SS_BENCH_DENSEPACKAGES_H

#include "Measured.h"

#include "package/Manifest.h"
#include "result/Result.h"

#include <string>

namespace ss_bench {

/// "--dense-package", as the command line names a package of this form.
const char *optionOf(DenseForm form);

/// Whether a package is a dense form of another one: the same layers, each a
/// matrix of that form and of the storage that is compared with. One line where
/// it is not: what was found, what was expected, and what to do.
sinkstate::Status checkDense(const sinkstate::runtime::Manifest &ours,
                             const sinkstate::runtime::Manifest &dense,
                             DenseForm form, const std::string &folder);

} // namespace ss_bench

#endif
