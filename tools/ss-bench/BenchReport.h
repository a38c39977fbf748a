//===- BenchReport.h - Tables and JSON of a measurement ---------*- C++ -*-===//
#ifndef SS_BENCH_BENCHREPORT_H
#define SS_BENCH_BENCHREPORT_H

#include "Baselines.h"
#include "Measured.h"

namespace ss_bench {

/// Markdown: what was measured where, then times, sizes and checks, one row per
/// measurement. The rows of one batch size can be printed as soon as they are
/// there.
std::string formatHead(const BenchResult &result, const Baselines &baselines);
std::string formatTimeHeader();
std::string formatTimes(const BenchResult &result, const BatchResult &batch,
                        const Baselines &baselines);
std::string formatSizes(const BenchResult &result);
/// What the allocated bytes are for, the floor beside.
std::string formatMemory(const BenchResult &result);
std::string formatServed(const BenchResult &result);
std::string formatStart(const BenchResult &result);

std::string formatJson(const BenchResult &result, const Baselines &baselines);

} // namespace ss_bench

#endif
