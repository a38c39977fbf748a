//===- KernelKey.h - What a compiled kernel depends on ----------*- C++ -*-===//
#ifndef SINKSTATE_CACHE_KERNELKEY_H
#define SINKSTATE_CACHE_KERNELKEY_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkstate::cache {

struct SourceText {
  std::string name;
  std::string text;
};

/// Every input of a compilation. Whatever changes the machine code has to be
/// here: two compilations with equal inputs share one cache entry.
struct KernelKeyInputs {
  /// Name of the kernel; also of its file when it is dumped or overridden.
  std::string kernelName;
  std::string source;
  /// The device headers, in the order in which the compiler is given them.
  std::vector<SourceText> headers;
  std::vector<std::string> flags;
  /// Identity of the code that calls the compiler. Empty: the library or
  /// executable that contains the cache itself.
  std::string buildId;
  std::string nvrtcVersion;
  /// In full: "sm_90a" is not "sm_90".
  std::string architecture;
  int32_t abiVersion = 0;
};

/// SHA-256 over the inputs, each with its length before it, in lower-case
/// hexadecimal.
std::string kernelKey(const KernelKeyInputs &inputs);

/// Whether `text` has the form of a key: 64 lower-case hexadecimal digits.
bool isKey(std::string_view text);

} // namespace sinkstate::cache

#endif
