//===- EntryStore.h - The entries of the cache on disk ----------*- C++ -*-===//
//
//   <folder>/v<format>/<2 hex>/<62 hex>/   an entry: manifest.json, used, blobs
//   <folder>/v<format>/staging/<unique>/   an entry being written or removed
//   <folder>/v<format>/locks/<64 hex>      the lock of a key
//   <folder>/v<format>/prune               the lock of pruning; its time is
//                                          that of the last pruning
//
// An entry appears by one rename of a finished staging folder and disappears by
// one rename back, so nobody ever sees part of one that is whole on the disk.
// Whatever is read is checked against the manifest all the same.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_ENTRYSTORE_H
#define SINKSTATE_CACHE_ENTRYSTORE_H

#include "cache/EntryManifest.h"
#include "cache/FileLock.h"

#include <string>
#include <vector>

namespace sinkstate::cache {

/// Raised whenever older code could misread an entry.
inline constexpr int kCacheFormatVersion = 1;

enum class LoadOutcome { Found, Missing, Broken };

struct LoadedEntry {
  LoadOutcome outcome = LoadOutcome::Missing;
  EntryManifest manifest;
  Blobs blobs;
  /// Why, if the entry is broken.
  std::string problem;
};

/// What is known of an entry without reading its blobs.
struct EntryInfo {
  std::string key;
  uint64_t bytes = 0;
  /// When it was last used, as exact as the use marker is.
  std::time_t used = 0;
};

class EntryStore {
public:
  EntryStore(const std::string &folder, int formatVersion,
             LockFunction lock = defaultLock());

  static LockFunction defaultLock();

  const std::string &root() const { return rootFolder; }
  std::string entryFolder(const std::string &key) const;
  std::string lockFile(const std::string &key) const;
  std::string locksFolder() const { return rootFolder + "/locks"; }
  std::string pruneFile() const { return rootFolder + "/prune"; }
  LockFunction lockFunction() const { return lock; }

  /// Creates the folders and checks that they can be written to.
  Status prepareForWriting() const;

  /// Reads and verifies an entry.
  LoadedEntry load(const std::string &key) const;
  /// Reads the manifest alone.
  Result<EntryManifest> manifest(const std::string &key) const;

  /// Writes an entry and makes it appear. True: it is ours; false: another
  /// one was there first.
  Result<bool> publish(const EntryManifest &manifest, const Blobs &blobs) const;
  /// Makes an entry disappear; false if that is not possible.
  bool remove(const std::string &key) const;
  /// Notes that the entry was used, at most once a minute.
  void markUsed(const std::string &key) const;

  /// Every entry, whole or not, by key.
  std::vector<EntryInfo> list() const;
  /// Removes what dead processes left in staging; says how many folders.
  size_t sweepStaging() const;

private:
  std::string rootFolder;
  LockFunction lock;

  std::string stagingFolder() const { return rootFolder + "/staging"; }
  Status fill(const std::string &staging, const EntryManifest &manifest,
              const Blobs &blobs) const;
  Result<bool> moveIntoPlace(const std::string &staging,
                             const std::string &key) const;
};

} // namespace sinkstate::cache

#endif
