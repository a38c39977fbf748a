//===- Files.cpp - The file operations the cache is made of ---------------===//

#include "cache/Files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace sinkstate::cache {
namespace {

int openFile(const std::string &path, int flags) {
  int file;
  do
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (file < 0 && errno == EINTR);
  return file;
}

/// 0, or the errno of the write that failed.
int writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    bytes.remove_prefix(size_t(count));
  }
  return 0;
}

} // namespace

FileDescriptor::~FileDescriptor() {
  if (number >= 0)
    ::close(number);
}

Error systemError(const std::string &path, std::string_view what, int code) {
  return Error{"'" + path + "' " + std::string(what) + ": " +
               std::generic_category().message(code)};
}

Result<std::string> readFile(const std::string &path, uint64_t maxBytes) {
  // O_NONBLOCK: opening a pipe someone put there must not wait for a writer.
  FileDescriptor file(openFile(path, O_RDONLY | O_NONBLOCK));
  if (!file)
    return systemError(path, "cannot be opened", errno);
  struct stat status;
  if (::fstat(file.get(), &status))
    return systemError(path, "cannot be read", errno);
  if (!S_ISREG(status.st_mode))
    return Error{"'" + path + "' is not a regular file"};
  if (uint64_t(status.st_size) > maxBytes)
    return Error{"'" + path + "' has " + std::to_string(status.st_size) +
                 " bytes, expected at most " + std::to_string(maxBytes)};
  std::string bytes(size_t(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count =
        ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(path, "cannot be read", errno);
    if (count == 0)
      break;
    done += size_t(count);
  }
  bytes.resize(done);
  return bytes;
}

Status writeFile(const std::string &path, std::string_view bytes) {
  FileDescriptor file(openFile(path, O_WRONLY | O_CREAT | O_TRUNC));
  if (!file)
    return systemError(path, "cannot be created", errno);
  if (int code = writeAll(file.get(), bytes))
    return systemError(path, "cannot be written", code);
  return std::nullopt;
}

Status createDurably(const std::string &path, std::string_view bytes) {
  FileDescriptor file(openFile(path, O_WRONLY | O_CREAT | O_EXCL));
  if (!file)
    return systemError(path, "cannot be created", errno);
  if (int code = writeAll(file.get(), bytes))
    return systemError(path, "cannot be written", code);
  if (::fsync(file.get()))
    return systemError(path, "cannot be written", errno);
  return std::nullopt;
}

Status syncFolder(const std::string &path) {
  FileDescriptor folder(openFile(path, O_RDONLY | O_DIRECTORY));
  if (!folder)
    return systemError(path, "cannot be opened", errno);
  // EINVAL: a file system that has nothing to bring to a disk.
  if (::fsync(folder.get()) && errno != EINVAL)
    return systemError(path, "cannot be written", errno);
  return std::nullopt;
}

Status makeFolders(const std::string &path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code)
    return systemError(path, "cannot be created", code.value());
  if (!isFolder(path))
    return Error{"'" + path + "' is not a folder"};
  return std::nullopt;
}

bool removeTree(const std::string &path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  return !code;
}

std::vector<std::string> namesIn(const std::string &path) {
  std::vector<std::string> names;
  DIR *folder = ::opendir(path.c_str());
  if (!folder)
    return names;
  while (const dirent *entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t bytesIn(const std::string &path) {
  uint64_t bytes = 0;
  for (const std::string &name : namesIn(path)) {
    struct stat status;
    if (!::lstat((path + "/" + name).c_str(), &status) &&
        S_ISREG(status.st_mode))
      bytes += uint64_t(status.st_size);
  }
  return bytes;
}

bool isFolder(const std::string &path) {
  struct stat status;
  return !::stat(path.c_str(), &status) && S_ISDIR(status.st_mode);
}

std::time_t modificationTime(const std::string &path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) ? 0 : status.st_mtime;
}

bool touch(const std::string &path) {
  return ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

std::string uniqueName() {
  uint64_t parts[2] = {0, 0};
  if (::getrandom(parts, sizeof parts, GRND_NONBLOCK) !=
      ssize_t(sizeof parts)) {
    // Early in the start of a machine: the process and a counter, and the time
    // for process ids that come round again.
    static std::atomic<uint32_t> counter = 0;
    parts[0] = uint64_t(::getpid()) << 32 | counter++;
    timespec now = {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    parts[1] = uint64_t(now.tv_sec) << 30 | uint64_t(now.tv_nsec);
  }
  char name[33];
  std::snprintf(name, sizeof name, "%016llx%016llx",
                static_cast<unsigned long long>(parts[0]),
                static_cast<unsigned long long>(parts[1]));
  return name;
}

} // namespace sinkstate::cache
