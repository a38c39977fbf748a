//===- KernelDump.cpp - Looking at kernels and replacing them -------------===//

#include "cache/KernelDump.h"

#include "cache/Files.h"

#include <cerrno>
#include <sys/stat.h>

namespace sinkstate::cache {
namespace {
constexpr uint64_t kMaxSourceBytes = uint64_t(64) << 20;

/// Everything that is not a letter, a digit or one of "._-" becomes "_", so
/// that no name leaves its folder.
std::string fileNameFor(const std::string &name) {
  std::string result = name.substr(0, 150);
  for (char &c : result) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                       (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
                       c == '-';
    if (!plain)
      c = '_';
  }
  return result.empty() || result.front() == '.' ? "_" + result : result;
}

} // namespace

std::string dumpFolderOf(const std::string &dump, const KernelKeyInputs &inputs,
                         const std::string &key) {
  return dump + "/" + fileNameFor(inputs.kernelName) + "-" +
         fileNameFor(inputs.architecture) + "-" + key.substr(0, 12);
}

Status dumpSources(const std::string &dump, const KernelKeyInputs &inputs,
                   const std::string &key) {
  const std::string folder = dumpFolderOf(dump, inputs, key);
  if (Status problem = makeFolders(folder + "/headers"))
    return problem;
  if (Status problem = writeFile(
          folder + "/" + fileNameFor(inputs.kernelName) + ".cu", inputs.source))
    return problem;
  for (const SourceText &header : inputs.headers)
    if (Status problem = writeFile(
            folder + "/headers/" + fileNameFor(header.name), header.text))
      return problem;
  std::string flags;
  for (const std::string &flag : inputs.flags)
    flags += flag + "\n";
  return writeFile(folder + "/flags.txt", flags);
}

Status dumpBlobs(const std::string &dump, const KernelKeyInputs &inputs,
                 const std::string &key, const Blobs &blobs) {
  const std::string folder = dumpFolderOf(dump, inputs, key);
  if (Status problem = makeFolders(folder))
    return problem;
  for (const auto &[name, bytes] : blobs)
    if (Status problem = writeFile(folder + "/" + fileNameFor(name), bytes))
      return problem;
  return std::nullopt;
}

std::string overrideFile(const std::string &folder,
                         const std::string &kernelName) {
  return folder + "/" + fileNameFor(kernelName) + ".cu";
}

Result<bool> applyOverride(const std::string &folder, KernelKeyInputs &inputs) {
  const std::string path = overrideFile(folder, inputs.kernelName);
  struct stat status;
  if (::stat(path.c_str(), &status) && errno == ENOENT)
    return false;
  Result<std::string> source = readFile(path, kMaxSourceBytes);
  if (!source)
    return source.takeError();
  inputs.source = std::move(*source);
  return true;
}

} // namespace sinkstate::cache
