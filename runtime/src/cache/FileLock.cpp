//===- FileLock.cpp - An advisory lock that dies with its owner -----------===//

#include "cache/FileLock.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace sinkstate::cache {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string ownerIn(int file) {
  char text[256];
  ssize_t size = ::pread(file, text, sizeof text, 0);
  std::string owner(text, size > 0 ? size_t(size) : 0);
  // One printable line, whatever the file holds.
  owner.resize(std::min(owner.find('\n'), owner.size()));
  std::replace_if(
      owner.begin(), owner.end(), [](char c) { return c < 0x20 || c == 0x7f; },
      '?');
  return owner;
}

/// Calls `onWait` at the times `wait` asks for.
class WaitNotices {
public:
  explicit WaitNotices(const LockWait &wait)
      : wait(wait), start(Clock::now()), next(start + wait.firstNotice) {}

  bool timedOut() const { return Clock::now() - start >= wait.timeout; }
  void notify(int file) {
    const auto now = Clock::now();
    if (!wait.onWait || now < next)
      return;
    next = now + wait.nextNotice;
    wait.onWait(ownerIn(file),
                std::chrono::duration_cast<std::chrono::seconds>(now - start));
  }

private:
  const LockWait &wait;
  Clock::time_point start, next;
};

} // namespace

LockOutcome FileLock::tryLock(int file, LockFunction lock) {
  int code;
  do
    code = lock(file, LOCK_EX | LOCK_NB) ? errno : 0;
  while (code == EINTR);
  if (code == 0)
    return LockOutcome::Acquired;
  return code == EWOULDBLOCK ? LockOutcome::Busy : LockOutcome::Unsupported;
}

FileLock FileLock::acquire(const std::string &path, LockFunction lock,
                           const LockWait &wait) {
  FileLock result;
  result.path = path;
  WaitNotices notices(wait);
  milliseconds pause(2);
  // flock could block by itself, but not with a timeout and without signals.
  while (result.file || result.open()) {
    result.result = tryLock(result.file.get(), lock);
    if (result.result == LockOutcome::Unsupported)
      break;
    if (result.held()) {
      if (result.stillThere()) {
        result.writeOwner();
        break;
      }
      result.file = FileDescriptor();
      continue;
    }
    if (notices.timedOut())
      break;
    result.hadToWait = true;
    notices.notify(result.file.get());
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(100));
  }
  if (!result.held())
    result.file = FileDescriptor();
  return result;
}

bool FileLock::open() {
  file = FileDescriptor(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file)
    return true;
  result = LockOutcome::Failed;
  message = systemError(path, "cannot be opened", errno).message;
  return false;
}

/// Whether the locked file is the one at `path`, not one removed since.
bool FileLock::stillThere() const {
  struct stat mine, named;
  return !::fstat(file.get(), &mine) && !::lstat(path.c_str(), &named) &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/// For the notices of those who wait; a disk that is full only spoils those.
void FileLock::writeOwner() {
  char host[128] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string owner =
      "process " + std::to_string(::getpid()) + " on " + host + "\n";
  if (::ftruncate(file.get(), 0) == 0 &&
      ::pwrite(file.get(), owner.data(), owner.size(), 0) < 0)
    (void)::ftruncate(file.get(), 0);
}

void FileLock::removeFile() {
  if (held())
    ::unlink(path.c_str());
}

} // namespace sinkstate::cache
