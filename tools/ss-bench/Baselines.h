//===- Baselines.h - Times of dense kernels that people use -----*- C++ -*-===//
#ifndef SS_BENCH_BASELINES_H
#define SS_BENCH_BASELINES_H

#include "Measured.h"

#include "result/Result.h"

namespace ss_bench {

/// One time of scripts/dense-baselines.py.
struct Baseline {
  std::string kernel, version, state; ///< "f32", "bf16"
  ShapeName shape;
  int32_t batch = 0;
  double microseconds = 0; ///< per layer and step
};

struct Baselines {
  std::vector<Baseline> times;
  std::string machine;         ///< GPU, driver and versions in one line
  double copyBandwidth = 0;    ///< bytes a second, measured there
  std::vector<std::string> missing; ///< kernels that could not be run, and why

  /// The JSON lines that scripts/dense-baselines.py writes.
  static sinkstate::Result<Baselines> read(const std::string &file);
  static sinkstate::Result<Baselines> parse(const std::string &text,
                                            const std::string &name);

  /// Those of a shape; of a batch, where it is not 0.
  std::vector<const Baseline *> of(const ShapeName &shape, int32_t batch) const;
};

} // namespace ss_bench

#endif
