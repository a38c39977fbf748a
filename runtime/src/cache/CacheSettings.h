//===- CacheSettings.h - How the kernel cache behaves -----------*- C++ -*-===//
#ifndef SINKSTATE_CACHE_CACHESETTINGS_H
#define SINKSTATE_CACHE_CACHESETTINGS_H

#include "cache/EntryStore.h"
#include "environment/Environment.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sinkstate::cache {

/// Notice: what the user asked for, or waits for. Warning: something is wrong with
/// a folder, a file or a variable.
enum class LogLevel { Notice, Warning };

/// Takes one line without its end.
using Log = std::function<void(LogLevel, std::string_view)>;

/// Writes "sinkstate: <line>" to standard error in one call.
void logToStandardError(LogLevel level, std::string_view line);

struct CacheSettings {
  environment::CacheMode mode = environment::CacheMode::On;
  /// Empty: there is no place for it, the cache is off.
  std::string folder;
  int formatVersion = kCacheFormatVersion;
  /// 0: no limit.
  uint64_t maxBytes = uint64_t(1) << 30;
  std::chrono::seconds pruneInterval{60};
  /// Empty: no dump, no override.
  std::string dumpFolder, overrideFolder;
  /// What stands for an empty KernelKeyInputs::buildId. Nothing: it cannot be
  /// told, and the cache is off.
  std::optional<std::string> buildId;
  /// How long to wait for another process to compile the same kernel.
  std::chrono::milliseconds lockTimeout{120000};
  std::chrono::milliseconds lockNotice{1000};
  LockFunction lock = EntryStore::defaultLock();
  Log log = logToStandardError;

  /// What the environment asks for, and the identity of this build. An error
  /// where a variable holds something else than it may.
  static Result<CacheSettings> fromEnvironment();
};

} // namespace sinkstate::cache

#endif
