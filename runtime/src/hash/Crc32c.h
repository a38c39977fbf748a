//===- Crc32c.h - Checksum of snapshots -------------------------*- C++ -*-===//
//
// CRC-32C (Castagnoli, RFC 3720 appendix B.4): finds every burst of errors up to
// 32 bits, and costs next to nothing where the processor has the instruction.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HASH_CRC32C_H
#define SINKSTATE_HASH_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace sinkstate {

/// The checksum of `size` bytes; crc32c("123456789", 9) is 0xe3069283.
uint32_t crc32c(const void *data, size_t size);

/// The same without the processor's instruction, for tests.
uint32_t crc32cPortable(const void *data, size_t size);

} // namespace sinkstate

#endif
