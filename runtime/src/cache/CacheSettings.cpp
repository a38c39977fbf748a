//===- CacheSettings.cpp - How the kernel cache behaves -------------------===//

#include "cache/CacheSettings.h"

#include "cache/BuildIdentity.h"

#include <cerrno>
#include <unistd.h>

namespace sinkstate::cache {

void logToStandardError(LogLevel, std::string_view line) {
  const std::string text = "sinkstate: " + std::string(line) + "\n";
  // One call, so that the lines of several processes do not mix.
  while (::write(STDERR_FILENO, text.data(), text.size()) < 0 &&
         errno == EINTR) {
  }
}

Result<CacheSettings> CacheSettings::fromEnvironment() {
  CacheSettings settings;
  Result<environment::CacheMode> mode =
      environment::read(environment::cacheMode);
  if (!mode)
    return mode.takeError();
  settings.mode = *mode;
  Result<uint64_t> maxBytes = environment::read(environment::cacheMaxSize);
  if (!maxBytes)
    return maxBytes.takeError();
  settings.maxBytes = *maxBytes;
  settings.folder = environment::read(environment::cacheFolder);
  if (settings.folder.empty()) {
    const std::string home = environment::userCacheHome();
    if (!home.empty())
      settings.folder = home + "/sinkstate";
  }
  settings.dumpFolder = environment::read(environment::dumpFolder);
  settings.overrideFolder = environment::read(environment::overrideFolder);
  settings.buildId = ownBuildIdentity();
  return settings;
}

} // namespace sinkstate::cache
