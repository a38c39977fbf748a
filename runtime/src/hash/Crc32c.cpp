//===- Crc32c.cpp - Checksum of snapshots ---------------------------------===//

#include "hash/Crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sinkstate {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u; // bits reversed
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

/// Entry [s][b]: the effect of byte b, s bytes before the end.
constexpr Tables makeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc & 1 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice)
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}
constexpr Tables kTables = makeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t
crc32cByInstruction(const unsigned char *bytes, size_t size) {
  uint64_t crc = ~uint32_t(0);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; size > 0; ++bytes, --size)
    crc = _mm_crc32_u8(uint32_t(crc), *bytes);
  return ~uint32_t(crc);
}
#endif

} // namespace

uint32_t crc32cPortable(const void *data, size_t size) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  uint32_t crc = ~uint32_t(0);
  for (; size >= kSlices; bytes += kSlices, size -= kSlices) {
    uint32_t next = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      const uint32_t mixed = i < 4 ? (crc >> (8 * i)) & 255 : 0;
      next ^= kTables[kSlices - 1 - i][bytes[i] ^ mixed];
    }
    crc = next;
  }
  for (; size > 0; ++bytes, --size)
    crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 255];
  return ~crc;
}

uint32_t crc32c(const void *data, size_t size) {
#if defined(__x86_64__)
  static const bool hasInstruction = __builtin_cpu_supports("sse4.2");
  if (hasInstruction)
    return crc32cByInstruction(static_cast<const unsigned char *>(data), size);
#endif
  return crc32cPortable(data, size);
}

} // namespace sinkstate
