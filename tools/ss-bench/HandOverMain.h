//===- HandOverMain.h - ss-bench init and ss-bench hand-over ----*- C++ -*-===//
#ifndef SS_BENCH_HANDOVERMAIN_H
#define SS_BENCH_HANDOVERMAIN_H

#include <optional>
#include <string>
#include <vector>

namespace ss_bench {

/// Runs one of them where the first argument names it: prints its tables and
/// writes its JSON. Returns nothing where it does not, else "" or what failed;
/// throws Failure.
std::optional<std::string>
runHandOver(const std::vector<std::string> &arguments);

} // namespace ss_bench

#endif
