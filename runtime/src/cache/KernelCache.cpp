//===- KernelCache.cpp - Compile each kernel once -------------------------===//

#include "cache/KernelCache.h"

#include "cache/KernelDump.h"
#include "cache/Pruning.h"

#include <exception>
#include <new>

namespace sinkstate::cache {
using environment::CacheMode;

KernelCache::KernelCache(CacheSettings given)
    : settings(std::move(given)),
      store(settings.folder, settings.formatVersion, settings.lock),
      currentMode(settings.mode) {
  if (currentMode != CacheMode::Off && settings.folder.empty())
    fallBack(CacheMode::Off, "neither SS_CACHE_DIR nor XDG_CACHE_HOME nor HOME "
                             "names a folder for it");
}

Result<std::unique_ptr<KernelCache>> KernelCache::fromEnvironment(Log log) {
  Result<CacheSettings> settings = CacheSettings::fromEnvironment();
  if (!settings)
    return settings.takeError();
  settings->log = std::move(log);
  return std::make_unique<KernelCache>(std::move(*settings));
}

CacheStatistics KernelCache::statistics() const {
  return {hits, misses, compiled, waited};
}

Result<CachedKernel>
KernelCache::getOrCompile(KernelKeyInputs inputs,
                          const CompileKernel &compile) noexcept {
  try {
    const auto start = std::chrono::steady_clock::now();
    Result<CachedKernel> kernel = find(inputs, compile);
    if (kernel)
      kernel->seconds = std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - start)
                            .count();
    return kernel;
  } catch (const std::bad_alloc &) {
    return Error{"out of memory"}; // short enough to need none itself
  } catch (const std::exception &error) {
    return Error{"kernel '" + inputs.kernelName +
                 "' could not be compiled: " + error.what()};
  } catch (...) {
    return Error{"kernel '" + inputs.kernelName +
                 "' could not be compiled: unknown exception"};
  }
}

Result<CachedKernel> KernelCache::find(KernelKeyInputs &inputs,
                                       const CompileKernel &compile) {
  replaceSource(inputs);
  identifyBuild(inputs);
  CachedKernel kernel;
  kernel.key = kernelKey(inputs);
  const std::string &dumpFolder = settings.dumpFolder;
  // Before anything can fail: a source that does not compile is the one that
  // somebody wants to look at.
  if (!dumpFolder.empty())
    dump(dumpSources(dumpFolder, inputs, kernel.key));
  if (mode() != CacheMode::Off && loadInto(kernel, false)) {
    ++hits;
  } else {
    Result<CachedKernel> fresh = compileOnce(inputs, kernel, compile);
    if (!fresh)
      return fresh;
    kernel = std::move(*fresh);
  }
  if (!dumpFolder.empty())
    dump(dumpBlobs(dumpFolder, inputs, kernel.key, kernel.blobs));
  return kernel;
}

/// Compiles and publishes under the key's lock, unless another process was
/// faster.
Result<CachedKernel> KernelCache::compileOnce(const KernelKeyInputs &inputs,
                                              CachedKernel kernel,
                                              const CompileKernel &compile) {
  FileLock lock;
  if (mode() == CacheMode::On) {
    lock = lockKey(inputs, kernel.key);
    if (mode() == CacheMode::On && loadInto(kernel, true)) {
      ++hits;
      return kernel;
    }
  }
  ++misses;
  Result<Blobs> blobs = compile(inputs);
  if (!blobs)
    return blobs.takeError();
  ++compiled;
  kernel.blobs = std::move(*blobs);
  if (mode() == CacheMode::On)
    publish(inputs, kernel);
  return kernel;
}

bool KernelCache::loadInto(CachedKernel &kernel, bool removeBroken) {
  LoadedEntry entry = store.load(kernel.key);
  if (entry.outcome == LoadOutcome::Broken && removeBroken)
    settings.log(
        LogLevel::Warning,
        "kernel cache: an entry is broken and is made again: " + entry.problem +
        (store.remove(kernel.key) ? "" : " (it cannot be removed)"));
  if (entry.outcome != LoadOutcome::Found)
    return false;
  if (mode() == CacheMode::On)
    store.markUsed(kernel.key);
  kernel.blobs = std::move(entry.blobs);
  kernel.hit = true;
  return true;
}

FileLock KernelCache::lockKey(const KernelKeyInputs &inputs,
                              const std::string &key) {
  if (Status problem = store.prepareForWriting()) {
    fallBack(CacheMode::ReadOnly, problem->message);
    return {};
  }
  LockWait wait;
  wait.timeout = settings.lockTimeout;
  wait.firstNotice = settings.lockNotice;
  wait.onWait = [&](const std::string &owner, std::chrono::seconds seconds) {
    settings.log(LogLevel::Notice, "kernel cache: waiting for " +
                 (owner.empty() ? "another process" : owner) +
                 ", which compiles kernel '" + inputs.kernelName + "' (since " +
                 std::to_string(seconds.count()) + " s)");
  };
  FileLock lock = FileLock::acquire(store.lockFile(key), settings.lock, wait);
  if (lock.waited())
    ++waited;
  if (lock.outcome() == LockOutcome::Busy)
    settings.log(LogLevel::Warning, "kernel cache: kernel '" + inputs.kernelName +
                 "' is still being compiled elsewhere after " +
                 std::to_string(settings.lockTimeout.count() / 1000) +
                 " s: compiling it here as well");
  if (lock.outcome() == LockOutcome::Failed)
    fallBack(CacheMode::ReadOnly, lock.problem());
  return lock;
}

void KernelCache::publish(const KernelKeyInputs &inputs, CachedKernel &kernel) {
  for (const auto &[name, bytes] : kernel.blobs)
    if (!isBlobName(name)) {
      settings.log(LogLevel::Warning, "kernel cache: kernel '" + inputs.kernelName +
                   "' is not kept: '" + name +
                   "' is not a plain name for a blob");
      return;
    }
  const EntryManifest manifest =
      describeEntry(kernel.key, inputs, kernel.blobs, std::time(nullptr));
  Result<bool> published = store.publish(manifest, kernel.blobs);
  if (published && !*published && !loadInto(kernel, true))
    published =
        store.publish(manifest, kernel.blobs); // in a broken one's place
  // What was compiled here is a miss even if another's equal entry is used.
  kernel.hit = false;
  if (!published) {
    fallBack(CacheMode::ReadOnly, published.error());
    return;
  }
  PruneLimits limits;
  if (settings.maxBytes)
    limits.maxBytes = settings.maxBytes;
  (void)pruneIfDue(store, limits, settings.pruneInterval);
}

void KernelCache::replaceSource(KernelKeyInputs &inputs) {
  const std::string &folder = settings.overrideFolder;
  if (folder.empty())
    return;
  if (!isFolder(folder)) {
    if (!overrideFolderReported.exchange(true))
      settings.log(LogLevel::Warning, "SS_OVERRIDE_DIR is '" + folder +
                   "', expected a folder: no kernel is overridden");
    return;
  }
  Result<bool> replaced = applyOverride(folder, inputs);
  if (!replaced)
    settings.log(LogLevel::Warning, "kernel '" + inputs.kernelName +
                 "' is not overridden: " + replaced.error());
  else if (*replaced)
    settings.log(LogLevel::Notice,
                 "kernel '" + inputs.kernelName + "' is overridden by '" +
                 overrideFile(folder, inputs.kernelName) + "'");
}

void KernelCache::identifyBuild(KernelKeyInputs &inputs) {
  if (!inputs.buildId.empty())
    return;
  if (settings.buildId && !settings.buildId->empty())
    inputs.buildId = *settings.buildId;
  else
    fallBack(CacheMode::Off,
             "which build of SinkState is running cannot be "
             "told (no build id, and its file is not readable)");
}

void KernelCache::dump(const Status &problem) {
  if (problem && !dumpFailed.exchange(true))
    settings.log(LogLevel::Warning, "SS_DUMP_DIR: " + problem->message);
}

/// Says so once: later calls find the mode changed.
void KernelCache::fallBack(CacheMode mode, const std::string &why) {
  CacheMode before = currentMode;
  do
    if (before >= mode) // from on over read-only to off, never back
      return;
  while (!currentMode.compare_exchange_weak(before, mode));
  settings.log(LogLevel::Warning,
               mode == CacheMode::Off
                   ? "kernel cache: off, every kernel is compiled: " + why
                   : "kernel cache: no new kernels are kept: " + why);
}

} // namespace sinkstate::cache
