//===- BenchModels.h - The packages of a run --------------------*- C++ -*-===//
#ifndef SS_BENCH_BENCHMODELS_H
#define SS_BENCH_BENCHMODELS_H

#include "BenchOptions.h"
#include "Measured.h"

#include "package/Package.h"

#include <memory>
#include <string>

namespace ss_bench {

/// A model's kernels, and those of the same model with dense states.
class BenchModels {
public:
  using Kernels = std::shared_ptr<const sinkstate::runtime::Package>;

  /// Opens the packages that the options name, or compiles them.
  static sinkstate::Result<std::unique_ptr<BenchModels>>
  make(const BenchOptions &options);
  BenchModels() = default;
  ~BenchModels();
  BenchModels(const BenchModels &) = delete;
  BenchModels &operator=(const BenchModels &) = delete;

  std::string name;          ///< for the report
  std::string folder;        ///< of `ours`
  Kernels ours;
  OfForms<Kernels> dense;    ///< null: not to be measured
  double compileSeconds = 0; ///< of `ours`, where it was compiled here

private:
  std::string temporaryFolder; ///< removed with this object; or empty
};

} // namespace ss_bench

#endif
