//===- Files.h - The file operations the cache is made of -------*- C++ -*-===//
//
// POSIX calls rather than iostreams: publication needs fsync, exclusive
// creation and the errno of what went wrong. Nothing here throws.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_FILES_H
#define SINKSTATE_CACHE_FILES_H

#include "result/Result.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinkstate::cache {

/// Owns a file descriptor; -1: none.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number(number) {}
  FileDescriptor(FileDescriptor &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  FileDescriptor &operator=(FileDescriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~FileDescriptor();

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }

private:
  int number = -1;
};

/// "'<path>' <what>: <text of errno>".
Error systemError(const std::string &path, std::string_view what, int code);

/// The whole file, which has to be a regular one of at most `maxBytes` bytes.
Result<std::string> readFile(const std::string &path, uint64_t maxBytes);

/// Creates or replaces a file.
Status writeFile(const std::string &path, std::string_view bytes);

/// Creates a file that must not exist; its bytes are on the disk on return.
Status createDurably(const std::string &path, std::string_view bytes);

/// Brings the names in a folder to the disk.
Status syncFolder(const std::string &path);

/// Creates a folder and those above it; no error if it is there.
Status makeFolders(const std::string &path);

/// Removes a file or a folder with all it holds, without following links.
bool removeTree(const std::string &path);

/// Names in a folder, sorted, without "." and ".."; none if it cannot be read.
std::vector<std::string> namesIn(const std::string &path);

/// Sum of the sizes of the regular files directly in a folder.
uint64_t bytesIn(const std::string &path);

bool isFolder(const std::string &path);

/// Time of last modification in seconds, or 0 if there is no such file.
std::time_t modificationTime(const std::string &path);
/// Sets it to now; the file has to exist.
bool touch(const std::string &path);

/// A name no other process or thread has: 32 hexadecimal digits.
std::string uniqueName();

} // namespace sinkstate::cache

#endif
