//===- Environment.cpp - The variables SinkState reads --------------------===//

#include "environment/Environment.h"

#include <cstdlib>
#include <iterator>

namespace sinkstate::environment {
namespace {
constexpr ChoiceVariable<CacheMode>::Choice kCacheModes[] = {
    {"on", CacheMode::On},
    {"ro", CacheMode::ReadOnly},
    {"off", CacheMode::Off}};
} // namespace

const ChoiceVariable<CacheMode> cacheMode = {
    "SS_CACHE", kCacheModes, CacheMode::On,
    "Whether compiled kernels are kept on disk. `ro`: entries are used, none "
    "is "
    "written or removed. `off`: every kernel is compiled at every start."};

const PathVariable cacheFolder = {
    "SS_CACHE_DIR",
    "`$XDG_CACHE_HOME/sinkstate`, else `$HOME/.cache/sinkstate`",
    "Folder of the kernel cache. Who can write to it decides what runs on the "
    "device."};

const ByteSizeVariable cacheMaxSize = {
    "SS_CACHE_MAX_SIZE", uint64_t(1) << 30,
    "Size the cache is pruned to, least recently used entries first. 0: no "
    "limit."};

const PathVariable dumpFolder = {
    "SS_DUMP_DIR", "nothing is dumped",
    "Every kernel source that is compiled or loaded, and what it was compiled "
    "to, is written here, a folder per kernel."};

const PathVariable overrideFolder = {
    "SS_OVERRIDE_DIR", "nothing is replaced",
    "A file `<kernel name>.cu` here replaces that kernel's source. Start from "
    "the file `SS_DUMP_DIR` wrote."};

const PathVariable cudaDriver = {
    "SS_CUDA_DRIVER", "`libcuda.so.1`, where the loader or the driver has it",
    "The library of the NVIDIA driver."};

const PathVariable nvrtcLibrary = {
    "SS_NVRTC", "`libnvrtc.so`, where the loader or a toolkit has it",
    "The library of CUDA's run-time compiler."};

const PathVariable nvtxLibrary = {
    "SS_NVTX", "`NVTX_INJECTION64_PATH`",
    "A library with `nvtxRangePushA` and `nvtxRangePop`, such as "
    "`libnvToolsExt.so.1`: steps, layers and stages of consolidation are marked "
    "with it."};

const PathVariable nvtxInjection = {
    "NVTX_INJECTION64_PATH", "no ranges",
    "The library of a profiler, which sets this for the processes that it "
    "starts: it is shown steps, layers and stages of consolidation."};

const PathVariable cudaHome = {
    "CUDA_HOME", "not searched",
    "A CUDA toolkit: its `lib64` is searched for libraries that the loader "
    "does not find."};

const PathVariable cudaPath = {"CUDA_PATH", "not searched",
                               "The same, searched after `CUDA_HOME`."};

const PathVariable xdgCacheHome = {
    "XDG_CACHE_HOME", "`$HOME/.cache`",
    "Where the user's caches live, if it is an absolute path."};

const PathVariable home = {"HOME", "no kernel cache",
                           "The user's folder, if it is an absolute path."};

namespace {

std::string valueOf(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

template <typename Enum>
std::string words(const ChoiceVariable<Enum> &variable, const char *quote,
                  const char *separator) {
  std::string text;
  for (const auto &choice : variable.choices)
    text += (text.empty() ? "" : separator) + std::string(quote) + choice.word +
            quote;
  return text;
}

template <typename Enum>
Result<Enum> readChoice(const ChoiceVariable<Enum> &variable) {
  const std::string text = valueOf(variable.name);
  if (text.empty())
    return variable.defaultValue;
  for (const auto &choice : variable.choices)
    if (text == choice.word)
      return choice.value;
  return Error{std::string(variable.name) + " is '" + text + "', expected " +
               words(variable, "'", ", ") + ": correct or unset it"};
}

Row row(const PathVariable &variable) {
  return {variable.name, "path", variable.meaningOfUnset, variable.description};
}

Row row(const ByteSizeVariable &variable) {
  return {variable.name, "bytes, with suffix `K`, `M` or `G`",
          "`" + formatByteSize(variable.defaultBytes) + "`",
          variable.description};
}

template <typename Enum> Row row(const ChoiceVariable<Enum> &variable) {
  std::string defaultText;
  for (const auto &choice : variable.choices)
    if (choice.value == variable.defaultValue)
      defaultText = "`" + std::string(choice.word) + "`";
  return {variable.name, words(variable, "`", ", "), defaultText,
          variable.description};
}

struct Suffix {
  char upper, lower;
  int shift;
};
constexpr Suffix kSuffixes[] = {{'G', 'g', 30}, {'M', 'm', 20}, {'K', 'k', 10}};

} // namespace

std::string read(const PathVariable &variable) {
  return valueOf(variable.name);
}

Result<uint64_t> read(const ByteSizeVariable &variable) {
  const std::string text = valueOf(variable.name);
  if (text.empty())
    return variable.defaultBytes;
  if (std::optional<uint64_t> bytes = parseByteSize(text))
    return *bytes;
  return Error{std::string(variable.name) + " is '" + text +
               "', expected a number of bytes such as '1G', '512M' or "
               "'1048576': correct or unset it"};
}

Result<CacheMode> read(const ChoiceVariable<CacheMode> &variable) {
  return readChoice(variable);
}

std::string userCacheHome() {
  const std::string cacheHome = read(xdgCacheHome);
  if (cacheHome.starts_with('/'))
    return cacheHome;
  const std::string userFolder = read(home);
  return userFolder.starts_with('/') ? userFolder + "/.cache" : "";
}

std::optional<uint64_t> parseByteSize(std::string_view text) {
  int shift = 0;
  for (const Suffix &suffix : kSuffixes)
    if (text.ends_with(suffix.upper) || text.ends_with(suffix.lower))
      shift = suffix.shift;
  if (shift)
    text.remove_suffix(1);
  if (text.empty())
    return std::nullopt;
  uint64_t value = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9')
      return std::nullopt;
    if (__builtin_mul_overflow(value, uint64_t(10), &value) ||
        __builtin_add_overflow(value, uint64_t(digit - '0'), &value))
      return std::nullopt;
  }
  if (shift && value >> (64 - shift))
    return std::nullopt;
  return value << shift;
}

std::string formatByteSize(uint64_t bytes) {
  for (const Suffix &suffix : kSuffixes)
    if (bytes && bytes % (uint64_t(1) << suffix.shift) == 0)
      return std::to_string(bytes >> suffix.shift) + suffix.upper;
  return std::to_string(bytes);
}

std::vector<Row> allRows() {
  return {row(cacheMode),  row(cacheFolder),    row(cacheMaxSize),
          row(dumpFolder), row(overrideFolder),
          row(cudaDriver), row(nvrtcLibrary), row(nvtxLibrary),
          row(nvtxInjection), row(cudaHome),
          row(cudaPath),   row(xdgCacheHome),   row(home)};
}

std::string tableAsMarkdown() {
  std::string text =
      "# Environment variables\n\n"
      "This page is the output of `ss-cache env`; a test compares them. A "
      "variable that is set to nothing counts as unset. A value of the wrong "
      "type is an error that names the variable.\n\n"
      "| variable | type | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const Row &row : allRows())
    text += "| `" + row.name + "` | " + row.type + " | " + row.defaultText +
            " | " + row.description + " |\n";
  return text;
}

} // namespace sinkstate::environment
