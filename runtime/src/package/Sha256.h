//===- Sha256.h - FIPS 180-4 hash of package files --------------*- C++ -*-===//
//
// Written out here because it is the only cryptography the runtime needs: a
// library for it would be a run-time dependency of every engine that ships
// SinkState, for sixty lines of code that the standard's vectors test fully.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_PACKAGE_SHA256_H
#define SINKSTATE_PACKAGE_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sinkstate {

class Sha256 {
public:
  void update(const void *data, size_t size);
  /// The digest in lower-case hexadecimal. The object is used up.
  std::string finish();

private:
  void block(const uint8_t *bytes);

  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                   0xa54ff53a, 0x510e527f, 0x9b05688c,
                                   0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending = {};
  size_t pendingSize = 0;
  uint64_t totalSize = 0;
};

/// Hash of a whole file; throws a Failure if it cannot be read.
std::string sha256OfFile(const std::string &path);

} // namespace sinkstate

#endif
