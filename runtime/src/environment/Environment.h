//===- Environment.h - The variables SinkState reads ------------*- C++ -*-===//
//
// Every environment variable is declared once, here, with its type: nothing
// else calls getenv. `ss-cache env` prints the table, docs/environment.md is
// that output.
//
// To add one: declare it below, define it in Environment.cpp with its default
// and description, add it to allRows() there, and run
//   ss-cache env > docs/environment.md
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_ENVIRONMENT_ENVIRONMENT_H
#define SINKSTATE_ENVIRONMENT_ENVIRONMENT_H

#include "result/Result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkstate::environment {

/// A path, taken as it is. Unset and empty are the same: not given.
struct PathVariable {
  const char *name;
  const char *meaningOfUnset;
  const char *description;
};

/// A number of bytes: digits and at most one of the suffixes K, M, G (1024).
struct ByteSizeVariable {
  const char *name;
  uint64_t defaultBytes;
  const char *description;
};

/// One word of a short list.
template <typename Enum> struct ChoiceVariable {
  struct Choice {
    const char *word;
    Enum value;
  };
  const char *name;
  std::span<const Choice> choices;
  Enum defaultValue;
  const char *description;
};

/// In the order in which a cache falls back.
enum class CacheMode { On, ReadOnly, Off };

extern const ChoiceVariable<CacheMode> cacheMode;
extern const PathVariable cacheFolder;
extern const ByteSizeVariable cacheMaxSize;
extern const PathVariable dumpFolder;
extern const PathVariable overrideFolder;
// Of other projects, read where they say what we need to know.
extern const PathVariable cudaDriver;
extern const PathVariable nvrtcLibrary;
extern const PathVariable nvtxLibrary;
extern const PathVariable nvtxInjection;
extern const PathVariable cudaHome;
extern const PathVariable cudaPath;
extern const PathVariable xdgCacheHome;
extern const PathVariable home;

/// The value, or "" where the variable is not given.
std::string read(const PathVariable &variable);
/// The value, the default where it is unset or empty, or an error that names
/// the variable, what it holds and what was expected.
Result<uint64_t> read(const ByteSizeVariable &variable);
Result<CacheMode> read(const ChoiceVariable<CacheMode> &variable);

/// Where the user's caches live: $XDG_CACHE_HOME, else $HOME/.cache. Relative
/// paths are ignored, as the XDG specification asks; "" where neither is given.
std::string userCacheHome();

/// "512M" -> 536870912; nothing if the text is not a byte size.
std::optional<uint64_t> parseByteSize(std::string_view text);
/// The shortest exact spelling that parseByteSize reads: "1G", "1000".
std::string formatByteSize(uint64_t bytes);

/// A line of the table.
struct Row {
  std::string name, type, defaultText, description;
};
std::vector<Row> allRows();
/// docs/environment.md.
std::string tableAsMarkdown();

} // namespace sinkstate::environment

#endif
