//===- Pruning.cpp - Keeping the cache small ------------------------------===//

#include "cache/Pruning.h"

#include <algorithm>

namespace sinkstate::cache {
namespace {
/// A lock file is kept this long after its last owner.
constexpr std::time_t kLockFileSeconds = 24 * 60 * 60;

std::time_t ageOf(std::time_t time) {
  return std::max<std::time_t>(0, std::time(nullptr) - time);
}

void removeUnusedLocks(const EntryStore &store) {
  for (const std::string &name : namesIn(store.locksFolder())) {
    const std::string path = store.locksFolder() + "/" + name;
    if (!isKey(name) || ageOf(modificationTime(path)) < kLockFileSeconds)
      continue;
    FileLock lock = FileLock::acquire(path, store.lockFunction());
    lock.removeFile();
  }
}

} // namespace

PruneReport prune(const EntryStore &store, const PruneLimits &limits) {
  PruneReport report;
  std::vector<EntryInfo> entries = store.list();
  std::sort(entries.begin(), entries.end(),
            [](const EntryInfo &a, const EntryInfo &b) {
              return a.used != b.used ? a.used < b.used : a.key < b.key;
            });
  report.keptEntries = entries.size();
  for (const EntryInfo &entry : entries)
    report.keptBytes += entry.bytes;
  for (const EntryInfo &entry : entries) {
    const bool tooLarge =
        limits.maxBytes && report.keptBytes > *limits.maxBytes;
    const bool tooOld =
        limits.maxAge &&
        std::chrono::seconds(ageOf(entry.used)) >= *limits.maxAge;
    if (!tooLarge && !tooOld)
      break; // those that follow were used later
    if (!store.remove(entry.key)) {
      ++report.stuckEntries;
      continue;
    }
    ++report.removedEntries, --report.keptEntries;
    report.removedBytes += entry.bytes, report.keptBytes -= entry.bytes;
  }
  report.removedStaging = store.sweepStaging();
  removeUnusedLocks(store);
  return report;
}

std::optional<PruneReport> pruneIfDue(const EntryStore &store,
                                      const PruneLimits &limits,
                                      std::chrono::seconds interval) {
  const std::time_t last = modificationTime(store.pruneFile());
  if (last && std::chrono::seconds(ageOf(last)) < interval)
    return std::nullopt;
  FileLock lock = FileLock::acquire(store.pruneFile(), store.lockFunction());
  // Without locks two processes may prune at once, which removes no more than
  // one would.
  if (!lock.held() && lock.outcome() != LockOutcome::Unsupported)
    return std::nullopt;
  (void)touch(store.pruneFile());
  return prune(store, limits);
}

} // namespace sinkstate::cache
