//===- CommandOptions.h - Options of ss-bench's commands --------*- C++ -*-===//
#ifndef SS_BENCH_COMMANDOPTIONS_H
#define SS_BENCH_COMMANDOPTIONS_H

#include "result/Result.h"

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ss_bench {

/// An option with a value.
struct Option {
  std::string name;     ///< "--steps"
  std::string value;    ///< as the usage calls it: "N"
  std::string expected; ///< what an error says: "a whole number of at least 1"
  std::string help;
  /// Keeps a value; false where it is not what was expected.
  std::function<bool(const std::string &)> take;
};

/// A command and what it takes.
struct Command {
  std::string name;     ///< "ss-bench init"
  std::string overview; ///< what --help says above the options
  std::vector<Option> options;
};

/// The whole of `text` as a number.
template <typename T> bool parseWhole(const std::string &text, T &to) {
  const char *end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, to);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

/// Any text but an empty one. `expected`: "a folder".
Option textOption(std::string name, std::string value, std::string expected,
                  std::string help, std::string &to);
Option numberOption(std::string name, std::string help, int32_t &to,
                    int32_t least, int32_t most = INT32_MAX);
/// --threads, and the --copy-mib of the copy that measures the bandwidth.
Option threadsOption(int32_t &to);
Option copyOption(int32_t &to);
/// "cpu", "cuda", "cuda:1"; `set` gets whether it is a GPU, and which.
Option deviceOption(std::string help, std::function<void(bool, int32_t)> set);
/// The values of --profile; what is wrong with one is said where it is read.
Option profileOption(std::string help, std::string &to);

/// Reads `--name value` and `--name=value` from `arguments[first]` on, each
/// name once. True: --help is among them, and what follows it was not read.
sinkstate::Result<bool> takeOptions(const Command &command,
                                    const std::vector<std::string> &arguments,
                                    size_t first = 0);

/// What --help prints: no line is longer than 80 columns where words allow it.
std::string helpText(const Command &command);

} // namespace ss_bench

#endif
