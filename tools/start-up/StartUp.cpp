//===- StartUp.cpp - How long an engine takes to start --------------------===//

#include "StartUp.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <stdlib.h>

using namespace ss_start_up;
namespace fs = std::filesystem;

PrivateCache::PrivateCache() {
  std::error_code error;
  std::string pattern =
      (fs::temp_directory_path(error) / "ss-start-XXXXXX").string();
  if (error || !::mkdtemp(pattern.data()))
    throw std::runtime_error(
        "'" + pattern + "' cannot be made: " +
        (error ? error.message() : std::strerror(errno)) +
        ", expected a folder for temporary files: set TMPDIR");
  folder = pattern;
  set("SS_CACHE_DIR", folder);
  set("SS_CACHE", "on");
}

PrivateCache::~PrivateCache() {
  for (int i = 0; i < savedCount; ++i)
    if (saved[i].wasSet)
      ::setenv(saved[i].name.c_str(), saved[i].value.c_str(), 1);
    else
      ::unsetenv(saved[i].name.c_str());
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

void PrivateCache::set(const char *name, const std::string &value) {
  const char *old = ::getenv(name);
  saved[savedCount++] = {name, old ? old : "", old != nullptr};
  ::setenv(name, value.c_str(), 1);
}

int PrivateCache::kernels() const {
  int count = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; at != end;
       at.increment(error))
    count += at->path().extension() == ".cubin";
  return count;
}

StartTimes ss_start_up::measureStart(const ss_package *package,
                                     const ss_engine_options &options) {
  StartTimes times;
  using Engine = std::unique_ptr<ss_engine, void (*)(ss_engine *)>;
  auto start = [&](double &seconds) {
    const auto begin = std::chrono::steady_clock::now();
    ss_engine *engine = nullptr;
    times.result = ss_engine_create(package, &options, &engine);
    const std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - begin;
    if (times.result != SS_OK)
      times.error = ss_last_error();
    seconds = passed.count();
    return Engine(engine, ss_engine_destroy);
  };
  try {
    const PrivateCache cache;
    if (!start(times.cold))
      return times;
    times.kernels = cache.kernels();
    if (const Engine other = start(times.cached))
      start(times.beside);
  } catch (const std::exception &error) {
    times.result = SS_INTERNAL;
    times.error = error.what();
  }
  return times;
}
