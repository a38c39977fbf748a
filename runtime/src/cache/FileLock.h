//===- FileLock.h - An advisory lock that dies with its owner ---*- C++ -*-===//
#ifndef SINKSTATE_CACHE_FILELOCK_H
#define SINKSTATE_CACHE_FILELOCK_H

#include "cache/Files.h"

#include <chrono>
#include <functional>
#include <string>

namespace sinkstate::cache {

/// flock(2), or what a test puts in its place.
using LockFunction = int (*)(int file, int operation);

enum class LockOutcome {
  Acquired,
  Busy,        ///< another process or thread has it (or: still has it)
  Unsupported, ///< the file system has no locks, as some network disks
  Failed       ///< the lock file cannot be opened
};

struct LockWait {
  /// 0: do not wait.
  std::chrono::milliseconds timeout{0};
  /// When `onWait` is called first, and how often after that.
  std::chrono::milliseconds firstNotice{1000}, nextNotice{10000};
  /// `owner` is what the owner wrote: "process 4711 on host"; "" if unknown.
  std::function<void(const std::string &owner, std::chrono::seconds waited)>
      onWait;
};

/// Held until it is destroyed, or until its process dies by whatever means. A
/// thread of the same process is kept out as any other process is.
class FileLock {
public:
  /// Locks the file at `path`, which is created if need be and then holds who
  /// owns it.
  static FileLock acquire(const std::string &path, LockFunction lock,
                          const LockWait &wait = {});
  /// Locks an open file or folder without waiting.
  static LockOutcome tryLock(int file, LockFunction lock);

  LockOutcome outcome() const { return result; }
  bool held() const { return result == LockOutcome::Acquired; }
  /// Whether another owner made us wait before we got it.
  bool waited() const { return hadToWait; }
  /// Why, if the outcome is Failed.
  const std::string &problem() const { return message; }
  /// Removes the file of a lock that is held. Those who wait for it notice and
  /// lock the file that takes its place.
  void removeFile();

private:
  FileDescriptor file;
  std::string path;
  LockOutcome result = LockOutcome::Failed;
  bool hadToWait = false;
  std::string message;

  bool stillThere() const;
  bool open();
  void writeOwner();
};

} // namespace sinkstate::cache

#endif
