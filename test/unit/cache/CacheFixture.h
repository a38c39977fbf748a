//===- CacheFixture.h - A cache in a folder of its own ----------*- C++ -*-===//
#ifndef SINKSTATE_TEST_UNIT_CACHE_CACHEFIXTURE_H
#define SINKSTATE_TEST_UNIT_CACHE_CACHEFIXTURE_H

#include "cache/Files.h"
#include "cache/KernelCache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cache_test {
using namespace sinkstate;
using namespace sinkstate::cache;
using sinkstate::environment::CacheMode;

/// A folder that is removed with all it holds.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "ss-cache-test-XXXXXX";
    path = ::mkdtemp(pattern.data());
    ::chmod(path.c_str(), 0755);
  }
  ~TemporaryFolder() { removeTree(path); }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path;
};

/// Keeps the lines of a log.
class LogLines {
public:
  Log log() {
    return [this](LogLevel, std::string_view line) {
      std::lock_guard guard(mutex);
      lines.emplace_back(line);
    };
  }
  std::string joined() const {
    std::string text;
    for (const std::string &line : lines)
      text += line + "\n";
    return text;
  }

  std::vector<std::string> lines;

private:
  std::mutex mutex;
};

inline KernelKeyInputs exampleInputs(const std::string &kernel = "gdn_decode") {
  KernelKeyInputs inputs;
  inputs.kernelName = kernel;
  inputs.source = "extern \"C\" __global__ void " + kernel + "() {}\n";
  inputs.headers = {{"ss_tile.cuh", "#pragma once\n"}};
  inputs.flags = {"--std=c++17", "--use_fast_math=false"};
  inputs.buildId = "build-id:0123";
  inputs.nvrtcVersion = "12.9";
  inputs.architecture = "sm_90a";
  inputs.abiVersion = 1;
  return inputs;
}

/// Bytes that no text file has, derived from `seed`.
inline std::string exampleBytes(const std::string &seed, size_t size = 5000) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i)
    bytes += char(seed[i % seed.size()] * 31 + i * 7 + i / 256);
  return bytes;
}

inline Blobs exampleBlobs(const KernelKeyInputs &inputs) {
  return {{inputs.kernelName + ".cubin", exampleBytes(inputs.source)},
          {"compile.log", ""}};
}

class CacheTest : public ::testing::Test {
protected:
  TemporaryFolder folder;
  LogLines log;
  int compilations = 0;

  CacheSettings settings() {
    CacheSettings settings;
    settings.folder = folder.path;
    settings.buildId = "build-id:own";
    settings.log = log.log();
    return settings;
  }
  EntryStore store() { return EntryStore(folder.path, kCacheFormatVersion); }

  CompileKernel compile() {
    return [this](const KernelKeyInputs &inputs) -> Result<Blobs> {
      ++compilations;
      return exampleBlobs(inputs);
    };
  }
  CachedKernel get(KernelCache &cache,
                   const KernelKeyInputs &inputs = exampleInputs()) {
    Result<CachedKernel> kernel = cache.getOrCompile(inputs, compile());
    EXPECT_TRUE(bool(kernel)) << kernel.error();
    return kernel ? std::move(*kernel) : CachedKernel();
  }
  /// Puts an entry into the cache and returns its key.
  std::string fill(const KernelKeyInputs &inputs = exampleInputs()) {
    KernelCache cache(settings());
    return get(cache, inputs).key;
  }
};

inline bool exists(const std::string &path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

inline void setTime(const std::string &path, std::time_t time) {
  const timespec times[2] = {{time, 0}, {time, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

/// Runs `body` in a child process. A child does not return to GoogleTest.
inline pid_t inChild(const std::function<int()> &body) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  return child;
}

/// Exit code, or -1 if a signal ended the child.
inline int waitFor(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return -1;
  return WEXITSTATUS(status);
}

} // namespace cache_test

#endif
