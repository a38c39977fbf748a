//===- Options.h - The command line of ss-cache -----------------*- C++ -*-===//
#ifndef SINKSTATE_TOOLS_SS_CACHE_OPTIONS_H
#define SINKSTATE_TOOLS_SS_CACHE_OPTIONS_H

#include "result/Result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ss_cache {

enum class Command { List, Verify, Prune, Show, Environment, Help, Version };

struct Options {
  Command command = Command::Help;
  /// Empty: the folder the environment names.
  std::string cacheFolder;
  /// prune
  std::optional<uint64_t> maxBytes;
  std::optional<std::chrono::seconds> olderThan;
  /// verify
  bool removeBroken = false;
  /// show
  std::string keyPrefix;
};

sinkstate::Result<Options> parseOptions(int argc, char *const *argv);

extern const char *const kHelp;

} // namespace ss_cache

#endif
