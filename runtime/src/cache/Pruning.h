//===- Pruning.h - Keeping the cache small ----------------------*- C++ -*-===//
#ifndef SINKSTATE_CACHE_PRUNING_H
#define SINKSTATE_CACHE_PRUNING_H

#include "cache/EntryStore.h"

#include <chrono>
#include <optional>

namespace sinkstate::cache {

struct PruneLimits {
  /// Least recently used entries go until the rest fits.
  std::optional<uint64_t> maxBytes;
  /// Entries that were not used for this long go.
  std::optional<std::chrono::seconds> maxAge;
};

struct PruneReport {
  size_t removedEntries = 0, keptEntries = 0;
  uint64_t removedBytes = 0, keptBytes = 0;
  size_t removedStaging = 0;
  /// Entries that had to go and could not be removed.
  size_t stuckEntries = 0;
};

/// Prunes now, and removes lock files and staging folders nobody uses.
PruneReport prune(const EntryStore &store, const PruneLimits &limits);

/// Prunes unless that was done less than `interval` ago or another process is
/// at it; nothing if it was not done.
std::optional<PruneReport> pruneIfDue(const EntryStore &store,
                                      const PruneLimits &limits,
                                      std::chrono::seconds interval);

} // namespace sinkstate::cache

#endif
