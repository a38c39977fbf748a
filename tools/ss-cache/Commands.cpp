//===- Commands.cpp - What ss-cache does ----------------------------------===//

#include "Commands.h"

#include "Table.h"

#include "cache/CacheSettings.h"
#include "cache/Pruning.h"
#include "environment/Environment.h"

#include <algorithm>
#include <filesystem>

namespace ss_cache {
using namespace sinkstate::cache;
using sinkstate::Result;
namespace environment = sinkstate::environment;

namespace {
/// Enough of a key to tell entries apart in a table.
constexpr size_t kShortKey = 12;

std::string entries(size_t count) {
  return std::to_string(count) + (count == 1 ? " entry" : " entries");
}

int list(const EntryStore &store, std::ostream &out) {
  std::vector<EntryInfo> infos = store.list();
  std::sort(infos.begin(), infos.end(),
            [](const EntryInfo &a, const EntryInfo &b) {
              return a.used != b.used ? a.used > b.used : a.key < b.key;
            });
  const std::time_t now = std::time(nullptr);
  Table table("lllrrl");
  table.add({"KEY", "KERNEL", "ARCH", "SIZE", "USED", "CREATED"});
  uint64_t bytes = 0;
  for (const EntryInfo &info : infos) {
    bytes += info.bytes;
    const std::string key = info.key.substr(0, kShortKey);
    const std::string size = readableSize(info.bytes);
    const std::string used = readableAge(info.used, now);
    if (Result<EntryManifest> manifest = store.manifest(info.key))
      table.add({key, printable(manifest->inputs.kernelName),
                 printable(manifest->inputs.architecture), size, used,
                 readableTime(manifest->created)});
    else
      table.add({key, "(broken)", "", size, used, ""});
  }
  if (!infos.empty())
    table.print(out);
  out << entries(infos.size()) << ", " << readableSize(bytes) << " in "
      << store.root() << "\n";
  return kDone;
}

int verify(const EntryStore &store, bool removeBroken, std::ostream &out) {
  size_t whole = 0, broken = 0;
  for (const EntryInfo &info : store.list()) {
    const LoadedEntry entry = store.load(info.key);
    if (entry.outcome == LoadOutcome::Found)
      ++whole;
    if (entry.outcome != LoadOutcome::Broken)
      continue; // or removed by another process in the meantime
    ++broken;
    out << info.key.substr(0, kShortKey)
        << ": broken: " << printable(entry.problem);
    if (removeBroken)
      out << (store.remove(info.key) ? " (removed)" : " (cannot be removed)");
    out << "\n";
  }
  out << entries(whole) << " whole, " << broken << " broken\n";
  return broken ? kFound : kDone;
}

int prune(const EntryStore &store, const Options &options,
          uint64_t defaultMaxBytes, std::ostream &out) {
  PruneLimits limits;
  limits.maxBytes = options.maxBytes;
  limits.maxAge = options.olderThan;
  if (!options.maxBytes && !options.olderThan && defaultMaxBytes)
    limits.maxBytes = defaultMaxBytes;
  const PruneReport report = sinkstate::cache::prune(store, limits);
  out << "removed " << entries(report.removedEntries) << " ("
      << readableSize(report.removedBytes) << "), kept "
      << entries(report.keptEntries) << " (" << readableSize(report.keptBytes)
      << ")\n";
  if (report.stuckEntries)
    out << entries(report.stuckEntries) << " cannot be removed: check who owns "
        << store.root() << "\n";
  return report.stuckEntries ? kFound : kDone;
}

void print(const EntryManifest &manifest, const std::string &folder,
           std::ostream &out) {
  const InputsRecord &inputs = manifest.inputs;
  Table facts("ll");
  facts.add({"key", manifest.key});
  facts.add({"folder", folder});
  facts.add({"created", readableTime(manifest.created)});
  facts.add({"used", readableTime(modificationTime(folder + "/" + kUsedFile))});
  facts.add({"kernel", printable(inputs.kernelName)});
  facts.add({"architecture", printable(inputs.architecture)});
  facts.add({"NVRTC", printable(inputs.nvrtcVersion)});
  facts.add({"ABI", std::to_string(inputs.abiVersion)});
  facts.add({"build", printable(inputs.buildId)});
  std::string flags;
  for (const std::string &flag : inputs.flags)
    flags += (flags.empty() ? "" : " ") + flag;
  facts.add({"flags", printable(flags)});
  facts.print(out);
  out << "\n";
  Table contents("llrl");
  contents.add({"", "NAME", "SIZE", "SHA-256"});
  auto add = [&](const char *kind, const ContentRecord &record,
                 const std::string &name) {
    contents.add({kind, printable(name), readableSize(record.size),
                  record.sha256.substr(0, kShortKey)});
  };
  add("source", inputs.source, inputs.kernelName + ".cu");
  for (const ContentRecord &header : inputs.headers)
    add("header", header, header.name);
  for (const ContentRecord &blob : manifest.blobs)
    add("blob", blob, blob.name);
  contents.print(out);
}

int show(const EntryStore &store, const std::string &prefix, std::ostream &out,
         std::ostream &errors) {
  std::vector<std::string> keys;
  for (const EntryInfo &info : store.list())
    if (info.key.starts_with(prefix))
      keys.push_back(info.key);
  if (keys.size() != 1) {
    errors << "ss-cache: " << entries(keys.size()) << " with a key that begins "
           << "with '" << printable(prefix)
           << "', expected one: see ss-cache ls"
           << "\n";
    return kFound;
  }
  Result<EntryManifest> manifest = store.manifest(keys.front());
  if (!manifest) {
    errors << "ss-cache: " << printable(manifest.error())
           << ": remove it with ss-cache verify --remove\n";
    return kFound;
  }
  print(*manifest, store.entryFolder(keys.front()), out);
  return kDone;
}

/// Whether a folder is empty, or has what a cache of some format has.
bool mayBeCache(const std::string &folder) {
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder, problem), end;
  if (problem || entry == end)
    return true; // the commands say what cannot be read
  for (; entry != end; entry.increment(problem)) {
    const std::string name = entry->path().filename();
    if (name.size() > 1 && name[0] == 'v' &&
        name.find_first_not_of("0123456789", 1) == std::string::npos)
      return true;
  }
  return bool(problem);
}

int runOnCache(const Options &options, std::ostream &out,
               std::ostream &errors) {
  Result<CacheSettings> settings = CacheSettings::fromEnvironment();
  if (!settings) {
    errors << "ss-cache: " << printable(settings.error()) << "\n";
    return kWrongUse;
  }
  const std::string &folder =
      options.cacheFolder.empty() ? settings->folder : options.cacheFolder;
  if (folder.empty()) {
    errors
        << "ss-cache: neither SS_CACHE_DIR nor XDG_CACHE_HOME nor HOME names "
           "the cache, expected one of them or --cache-dir\n";
    return kWrongUse;
  }
  std::error_code ignored;
  const auto found = std::filesystem::status(folder, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_directory(found)) {
    errors << "ss-cache: '" << printable(folder)
           << "' is no folder, expected the kernel cache's\n";
    return kWrongUse;
  }
  // A folder that somebody named is there, or the name is wrong; one of the
  // environment comes into being with the first kernel.
  if (!options.cacheFolder.empty() && !std::filesystem::exists(found)) {
    errors << "ss-cache: --cache-dir '" << printable(folder)
           << "' is not there, expected the folder of a kernel cache\n";
    return kWrongUse;
  }
  if (!options.cacheFolder.empty() && !mayBeCache(folder)) {
    errors << "ss-cache: --cache-dir '" << printable(folder)
           << "' has other files and no 'v" << settings->formatVersion
           << "', expected the folder of a kernel cache\n";
    return kWrongUse;
  }
  const EntryStore store(folder, settings->formatVersion, settings->lock);
  switch (options.command) {
  case Command::List:
    return list(store, out);
  case Command::Verify:
    return verify(store, options.removeBroken, out);
  case Command::Prune:
    return prune(store, options, settings->maxBytes, out);
  default:
    return show(store, options.keyPrefix, out, errors);
  }
}

} // namespace

int run(const Options &options, std::ostream &out, std::ostream &errors) {
  int code = kDone;
  switch (options.command) {
  case Command::Help:
    out << kHelp;
    break;
  case Command::Version:
    out << "ss-cache " SS_PROJECT_VERSION " (cache format "
        << kCacheFormatVersion << ")\n";
    break;
  case Command::Environment:
    out << environment::tableAsMarkdown();
    break;
  default:
    code = runOnCache(options, out, errors);
  }
  out.flush();
  if (!out) {
    errors << "ss-cache: the output cannot be written\n";
    return kWrongUse;
  }
  return code;
}

} // namespace ss_cache
