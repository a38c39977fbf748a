//===- Outputs.h - Files for what was measured ------------------*- C++ -*-===//
#ifndef SS_BENCH_OUTPUTS_H
#define SS_BENCH_OUTPUTS_H

#include "OutputFile.h"

#include <string>
#include <utility>
#include <vector>

namespace ss_bench {

/// The files that were asked for. They are opened before anything is timed, and
/// appear when they are written; an empty path is no file.
class Outputs {
public:
  static sinkstate::Result<Outputs> open(const std::vector<std::string> &paths);
  /// One text for each of the paths.
  sinkstate::Status write(const std::vector<std::string> &texts);

private:
  /// And the number of its path.
  std::vector<std::pair<sinkstate::tools::OutputFile, size_t>> files;
};

} // namespace ss_bench

#endif
