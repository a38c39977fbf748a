//===- TimePlot.h - Time against batch size as a picture --------*- C++ -*-===//
#ifndef SS_BENCH_TIMEPLOT_H
#define SS_BENCH_TIMEPLOT_H

#include "Baselines.h"
#include "Measured.h"

namespace ss_bench {

/// An SVG with logarithmic axes: microseconds per layer and step, of ours and of
/// the dense kernels.
std::string drawTimes(const BenchResult &result, const Baselines &baselines);

} // namespace ss_bench

#endif
