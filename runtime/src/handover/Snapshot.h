//===- Snapshot.h - The bytes of a slot -------------------------*- C++ -*-===//
//
// A versioned format with fixed byte order, specified in docs/hand-over.md:
//
//   header   96 bytes: magic, version, sizes, position, fingerprint, checksum
//   section  32 bytes: tag, layer, size, flags, two checksums; then its bytes,
//   ...      padded with zeros to a multiple of 8
//
// A reader skips sections that it does not know unless they are marked as
// required, and takes sections that are longer than it expects where the format
// says so. Another major version is refused.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_HANDOVER_SNAPSHOT_H
#define SINKSTATE_HANDOVER_SNAPSHOT_H

#include "handover/SlotImage.h"

#include <cstddef>
#include <span>

namespace sinkstate::runtime {

/// 1.1: rows in their storage, SINK. 1.2: PEND. An image is written as the oldest
/// that says all of it, one of 1.0 as 1.0 again.
constexpr uint16_t kSnapshotMajor = 1, kSnapshotMinor = 2;

/// Bytes of the snapshot of an image, whose float arrays may be empty.
uint64_t snapshotBytes(const SlotImage &image);

/// Writes snapshotBytes(image) bytes.
void writeSnapshot(const SlotImage &image, std::span<std::byte> out);

/// Checks and reads; takes no more memory than the snapshot would have bytes with
/// rows in f32 (four times what it has), apart from a constant. Throws
/// SS_MALFORMED_SNAPSHOT or SS_VERSION_MISMATCH.
SlotImage readSnapshot(std::span<const std::byte> bytes);

/// The header and the layers' shapes alone, whose checksums are checked.
struct SnapshotHeader {
  uint16_t major = 0, minor = 0;
  uint64_t bytes = 0;
  int64_t position = 0;
  std::string fingerprint;
  int32_t layers = 0;
  uint32_t sections = 0;
};
SnapshotHeader readSnapshotHeader(std::span<const std::byte> bytes);

} // namespace sinkstate::runtime

#endif
