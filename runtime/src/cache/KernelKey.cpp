//===- KernelKey.cpp - What a compiled kernel depends on ------------------===//

#include "cache/KernelKey.h"

#include "hash/Sha256.h"

#include <algorithm>

namespace sinkstate::cache {
namespace {

/// Numbers and strings in a form in which no two lists look alike.
class KeyHash {
public:
  void add(uint64_t number) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<unsigned char>(number >> (8 * i));
    hash.update(bytes, sizeof bytes);
  }
  void add(std::string_view text) {
    add(uint64_t(text.size()));
    hash.update(text);
  }
  std::string finish() { return hash.finish(); }

private:
  Sha256 hash;
};

} // namespace

std::string kernelKey(const KernelKeyInputs &inputs) {
  KeyHash hash;
  hash.add("sinkstate kernel 1");
  hash.add(inputs.kernelName);
  hash.add(inputs.source);
  hash.add(uint64_t(inputs.headers.size()));
  for (const SourceText &header : inputs.headers) {
    hash.add(header.name);
    hash.add(header.text);
  }
  hash.add(uint64_t(inputs.flags.size()));
  for (const std::string &flag : inputs.flags)
    hash.add(flag);
  hash.add(inputs.buildId);
  hash.add(inputs.nvrtcVersion);
  hash.add(inputs.architecture);
  hash.add(uint64_t(int64_t(inputs.abiVersion)));
  return hash.finish();
}

bool isKey(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

} // namespace sinkstate::cache
