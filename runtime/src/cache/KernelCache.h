//===- KernelCache.h - Compile each kernel once -----------------*- C++ -*-===//
//
//   Result<std::unique_ptr<KernelCache>> cache =
//   KernelCache::fromEnvironment(); if (!cache)
//     return cache.takeError();                     // SS_CACHE=maybe
//   Result<CachedKernel> kernel = (*cache)->getOrCompile(
//       inputs, [&](const KernelKeyInputs &inputs) -> Result<Blobs> {
//         return compileWithNvrtc(inputs);          // {"<kernel>.cubin": ...}
//       });
//
// The cache never makes a compilation fail: whatever is wrong with the folder
// costs one line in the log and the time to compile.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CACHE_KERNELCACHE_H
#define SINKSTATE_CACHE_KERNELCACHE_H

#include "cache/CacheSettings.h"
#include "cache/EntryStore.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace sinkstate::cache {

struct CachedKernel {
  Blobs blobs;
  std::string key;
  /// From the cache, whoever put it there.
  bool hit = false;
  /// Duration of the call.
  double seconds = 0;
};

struct CacheStatistics {
  uint64_t hits = 0;
  uint64_t misses = 0;
  /// Misses that were compiled; the others failed to compile.
  uint64_t compiled = 0;
  /// Calls that waited for another process or thread with the same kernel.
  uint64_t waited = 0;
};

/// Compiles the inputs it is given, which are not the caller's where the source
/// is overridden.
using CompileKernel = std::function<Result<Blobs>(const KernelKeyInputs &)>;

/// Safe to use from several threads.
class KernelCache {
public:
  explicit KernelCache(CacheSettings settings);
  static Result<std::unique_ptr<KernelCache>>
  fromEnvironment(Log log = logToStandardError);

  /// The blobs of the kernel, compiled if the cache does not have them. Fails
  /// only where `compile` does; what `compile` throws becomes an error.
  Result<CachedKernel> getOrCompile(KernelKeyInputs inputs,
                                    const CompileKernel &compile) noexcept;

  CacheStatistics statistics() const;
  /// What the cache does now: it may have had to fall back.
  environment::CacheMode mode() const { return currentMode; }

private:
  CacheSettings settings;
  EntryStore store;
  std::atomic<environment::CacheMode> currentMode;
  std::atomic<bool> overrideFolderReported = false, dumpFailed = false;
  std::atomic<uint64_t> hits = 0, misses = 0, compiled = 0, waited = 0;

  Result<CachedKernel> find(KernelKeyInputs &inputs,
                            const CompileKernel &compile);
  Result<CachedKernel> compileOnce(const KernelKeyInputs &inputs,
                                   CachedKernel kernel,
                                   const CompileKernel &compile);
  bool loadInto(CachedKernel &kernel, bool removeBroken);
  FileLock lockKey(const KernelKeyInputs &inputs, const std::string &key);
  void publish(const KernelKeyInputs &inputs, CachedKernel &kernel);
  void replaceSource(KernelKeyInputs &inputs);
  void identifyBuild(KernelKeyInputs &inputs);
  void dump(const Status &problem);
  void fallBack(environment::CacheMode mode, const std::string &why);
};

} // namespace sinkstate::cache

#endif
