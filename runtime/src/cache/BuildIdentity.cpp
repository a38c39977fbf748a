//===- BuildIdentity.cpp - Which build of our code is running -------------===//

#include "cache/BuildIdentity.h"

#include "hash/Sha256.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace sinkstate::cache {
namespace {

/// What is searched for and found among the loaded files.
struct LoadedFile {
  uintptr_t address = 0;
  bool found = false;
  std::string path;
  std::string buildId;
};

bool contains(const dl_phdr_info &file, uintptr_t address) {
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = file.dlpi_phdr[i];
    uintptr_t begin = file.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin &&
        address - begin < segment.p_memsz)
      return true;
  }
  return false;
}

std::string hexadecimal(const unsigned char *bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

/// The build id in one note segment, or "".
std::string buildIdIn(const unsigned char *notes, size_t size, size_t align) {
  align = align == 8 ? 8 : 4;
  auto padded = [align](size_t n) { return (n + align - 1) / align * align; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t descriptor = padded(sizeof note + note.n_namesz);
    const size_t end = descriptor + note.n_descsz;
    if (end > size)
      return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz > 0 &&
        note.n_namesz == 4 && !std::memcmp(notes + sizeof note, "GNU", 4))
      return hexadecimal(notes + descriptor, note.n_descsz);
    const size_t next = std::min(padded(end), size);
    notes += next, size -= next;
  }
  return "";
}

int examine(dl_phdr_info *file, size_t, void *data) {
  auto *wanted = static_cast<LoadedFile *>(data);
  if (!contains(*file, wanted->address))
    return 0;
  wanted->found = true;
  wanted->path = file->dlpi_name;
  for (int i = 0; i < file->dlpi_phnum && wanted->buildId.empty(); ++i) {
    const ElfW(Phdr) &segment = file->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      wanted->buildId = buildIdIn(reinterpret_cast<const unsigned char *>(
                                      file->dlpi_addr + segment.p_vaddr),
                                  segment.p_memsz, segment.p_align);
  }
  return 1;
}

} // namespace

std::optional<std::string> identityOfFile(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  Sha256 hash;
  char buffer[1 << 14];
  ssize_t count = 0;
  while ((count = ::read(file, buffer, sizeof buffer)) > 0)
    hash.update(buffer, size_t(count));
  ::close(file);
  if (count < 0)
    return std::nullopt;
  return "sha256:" + hash.finish();
}

std::optional<std::string> buildIdentityAt(const void *address) {
  LoadedFile file;
  file.address = reinterpret_cast<uintptr_t>(address);
  ::dl_iterate_phdr(examine, &file);
  if (!file.found)
    return std::nullopt;
  if (!file.buildId.empty())
    return "build-id:" + file.buildId;
  // The main program has no name in the list of loaded files.
  return identityOfFile(file.path.empty() ? "/proc/self/exe" : file.path);
}

std::optional<std::string> ownBuildIdentity() {
  static const std::optional<std::string> identity =
      buildIdentityAt(reinterpret_cast<const void *>(&ownBuildIdentity));
  return identity;
}

} // namespace sinkstate::cache
