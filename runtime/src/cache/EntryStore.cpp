//===- EntryStore.cpp - The entries of the cache on disk ------------------===//

#include "cache/EntryStore.h"

#include "hash/Sha256.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sinkstate::cache {
namespace {
/// A use is noted at most this often, so that hits do not write.
constexpr std::time_t kUsedResolutionSeconds = 60;
/// A staging folder younger than this may not be locked by its owner yet.
constexpr std::time_t kStagingGraceSeconds = 60;
/// Where there are no locks, a staging folder this old has no owner.
constexpr std::time_t kStagingAbandonedSeconds = 24 * 60 * 60;

LoadedEntry broken(std::string problem) {
  LoadedEntry entry;
  entry.outcome = LoadOutcome::Broken;
  entry.problem = std::move(problem);
  return entry;
}

bool isHexFolder(const std::string &name, size_t size) {
  return name.size() == size &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

LockFunction EntryStore::defaultLock() { return ::flock; }

EntryStore::EntryStore(const std::string &folder, int formatVersion,
                       LockFunction lock)
    : rootFolder(folder + "/v" + std::to_string(formatVersion)), lock(lock) {}

std::string EntryStore::entryFolder(const std::string &key) const {
  return rootFolder + "/" + key.substr(0, 2) + "/" + key.substr(2);
}

std::string EntryStore::lockFile(const std::string &key) const {
  return locksFolder() + "/" + key;
}

Status EntryStore::prepareForWriting() const {
  for (const std::string &folder :
       {rootFolder, stagingFolder(), locksFolder()}) {
    if (Status problem = makeFolders(folder))
      return problem;
    if (::access(folder.c_str(), R_OK | W_OK | X_OK))
      return systemError(folder, "cannot be written to", errno);
  }
  return std::nullopt;
}

Result<EntryManifest> EntryStore::manifest(const std::string &key) const {
  const std::string path = entryFolder(key) + "/" + kManifestFile;
  Result<std::string> json = readFile(path, kMaxManifestBytes);
  if (!json)
    return json.takeError();
  Result<EntryManifest> manifest = parseEntryManifest(*json);
  if (!manifest)
    return Error{"'" + path + "': " + manifest.error()};
  if (manifest->key != key)
    return Error{"'" + path +
                 "' is the manifest of another key: " + manifest->key};
  return manifest;
}

LoadedEntry EntryStore::load(const std::string &key) const {
  const std::string folder = entryFolder(key);
  struct stat status;
  if (::lstat(folder.c_str(), &status))
    return errno == ENOENT || errno == ENOTDIR
               ? LoadedEntry()
               : broken(systemError(folder, "cannot be read", errno).message);
  Result<EntryManifest> manifest = this->manifest(key);
  if (!manifest)
    return broken(manifest.takeError().message);
  LoadedEntry entry;
  for (const ContentRecord &record : manifest->blobs) {
    const std::string path = folder + "/" + record.name;
    Result<std::string> bytes = readFile(path, record.size);
    if (!bytes)
      return broken(bytes.takeError().message);
    if (bytes->size() != record.size)
      return broken("'" + path + "' has " + std::to_string(bytes->size()) +
                    " bytes, expected " + std::to_string(record.size));
    if (sha256Hex(*bytes) != record.sha256)
      return broken("'" + path + "' does not have the hash in the manifest");
    entry.blobs.emplace(record.name, std::move(*bytes));
  }
  entry.outcome = LoadOutcome::Found;
  entry.manifest = std::move(*manifest);
  return entry;
}

Status EntryStore::fill(const std::string &staging,
                        const EntryManifest &manifest,
                        const Blobs &blobs) const {
  for (const auto &[name, bytes] : blobs)
    if (Status problem = createDurably(staging + "/" + name, bytes))
      return problem;
  if (Status problem = writeFile(staging + "/" + kUsedFile, ""))
    return problem;
  if (Status problem =
          createDurably(staging + "/" + kManifestFile, toJson(manifest)))
    return problem;
  return syncFolder(staging);
}

Result<bool> EntryStore::publish(const EntryManifest &manifest,
                                 const Blobs &blobs) const {
  const std::string staging = stagingFolder() + "/" + uniqueName();
  if (::mkdir(staging.c_str(), 0777))
    return systemError(staging, "cannot be created", errno);
  // The lock tells the sweeper that the owner lives. It stays with the folder
  // through the rename and ends with this function.
  FileDescriptor owner(
      ::open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (owner)
    (void)FileLock::tryLock(owner.get(), lock);
  if (Status problem = fill(staging, manifest, blobs)) {
    removeTree(staging);
    return std::move(*problem);
  }
  Result<bool> published = moveIntoPlace(staging, manifest.key);
  if (!published || !*published)
    removeTree(staging);
  return published;
}

Result<bool> EntryStore::moveIntoPlace(const std::string &staging,
                                       const std::string &key) const {
  const std::string target = entryFolder(key);
  const std::string shard = target.substr(0, target.rfind('/'));
  if (Status problem = makeFolders(shard))
    return std::move(*problem);
  if (std::rename(staging.c_str(), target.c_str()) == 0) {
    // The entry is whole if the machine stops here, only perhaps not there.
    (void)syncFolder(shard);
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST)
    return false;
  return systemError(target, "cannot be created", errno);
}

bool EntryStore::remove(const std::string &key) const {
  const std::string doomed = stagingFolder() + "/" + uniqueName();
  if (std::rename(entryFolder(key).c_str(), doomed.c_str()))
    return errno == ENOENT;
  removeTree(doomed);
  return true;
}

void EntryStore::markUsed(const std::string &key) const {
  const std::string marker = entryFolder(key) + "/" + kUsedFile;
  const std::time_t age = std::time(nullptr) - modificationTime(marker);
  // A time in the future is a clock that was set back.
  if (age >= kUsedResolutionSeconds || age < 0)
    (void)touch(marker);
}

std::vector<EntryInfo> EntryStore::list() const {
  std::vector<EntryInfo> entries;
  for (const std::string &shard : namesIn(rootFolder)) {
    if (!isHexFolder(shard, 2))
      continue;
    for (const std::string &rest : namesIn(rootFolder + "/" + shard)) {
      if (!isHexFolder(rest, 62))
        continue;
      const std::string folder = entryFolder(shard + rest);
      EntryInfo info = {shard + rest, bytesIn(folder),
                        modificationTime(folder + "/" + kUsedFile)};
      if (!info.used)
        info.used = modificationTime(folder);
      entries.push_back(std::move(info));
    }
  }
  return entries;
}

size_t EntryStore::sweepStaging() const {
  size_t removed = 0;
  for (const std::string &name : namesIn(stagingFolder())) {
    const std::string folder = stagingFolder() + "/" + name;
    const std::time_t age = std::time(nullptr) - modificationTime(folder);
    if (age < kStagingGraceSeconds)
      continue;
    FileDescriptor file(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
    const LockOutcome outcome =
        file ? FileLock::tryLock(file.get(), lock) : LockOutcome::Unsupported;
    if (outcome == LockOutcome::Acquired ||
        (outcome == LockOutcome::Unsupported &&
         age >= kStagingAbandonedSeconds))
      removed += removeTree(folder);
  }
  return removed;
}

} // namespace sinkstate::cache
