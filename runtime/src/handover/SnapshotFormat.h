//===- SnapshotFormat.h - Places of the snapshot's fields -------*- C++ -*-===//
#ifndef SINKSTATE_HANDOVER_SNAPSHOTFORMAT_H
#define SINKSTATE_HANDOVER_SNAPSHOTFORMAT_H

#include <cstddef>
#include <cstdint>

namespace sinkstate::runtime::snapshot {

constexpr char kMagic[8] = {'S', 'S', 'K', 'S', 'N', 'A', 'P', '\x1a'};

/// Offsets in the header. What is not named is zero.
namespace header {
constexpr size_t magic = 0, major = 8, minor = 10, headerBytes = 12;
constexpr size_t totalBytes = 16, position = 24, fingerprint = 32;
constexpr size_t layers = 64, sections = 68, roundingKey = 72;
constexpr size_t checksum = 92, size = 96;
constexpr size_t fingerprintBytes = 32;
} // namespace header

/// Offsets in a section's header.
namespace section {
constexpr size_t tag = 0, layer = 4, bytes = 8, flags = 16, checksum = 20;
constexpr size_t reserved = 24, headerChecksum = 28, size = 32;
constexpr uint32_t required = 1; ///< a flag: who does not know it must refuse
} // namespace section

constexpr uint32_t tagOf(const char (&name)[5]) {
  return uint32_t(uint8_t(name[0])) | uint32_t(uint8_t(name[1])) << 8 |
         uint32_t(uint8_t(name[2])) << 16 | uint32_t(uint8_t(name[3])) << 24;
}

/// Sections of a layer, in this order; LAYR comes first.
constexpr uint32_t kLayer = tagOf("LAYR"), kHeads = tagOf("HEAD");
constexpr uint32_t kRows = tagOf("ROWS"), kWeights = tagOf("WGHT");
constexpr uint32_t kBufferK = tagOf("BUFK"), kBufferU = tagOf("BUFU");
constexpr uint32_t kBufferG = tagOf("BUFG"), kDense = tagOf("DENS");
/// Behind HEAD where a head of the layer has a sink: its hash, 8 bytes a head.
constexpr uint32_t kSinks = tagOf("SINK");
constexpr size_t kSinkBytes = 8;
/// Before ROWS where an SVD of a head is due and has not landed: 4 bytes a head, 1
/// or 0. Not required: without it the state is as exact.
constexpr uint32_t kPending = tagOf("PEND");
constexpr size_t kPendingBytes = 4;

/// Offsets in LAYR, which may be longer in a later minor version.
namespace layer {
constexpr size_t type = 0, index = 16, heads = 20, keyHeads = 24;
constexpr size_t dv = 28, dk = 32, form = 36, channelDecay = 40;
constexpr size_t count = 44, storage = 48, size = 52;
constexpr size_t typeBytes = 16;
constexpr int32_t factored = 0, denseForm = 1;
/// Later than f32: a library of version 1.0 refuses them by number.
constexpr int32_t storageF32 = 0, storageF16 = 1, storageBF16 = 2;
constexpr int32_t storageFP8 = 3;
} // namespace layer

/// Offsets in one record of HEAD.
namespace head {
constexpr size_t rank = 0, status = 4, compactions = 8, folds = 12, size = 16;
} // namespace head

constexpr size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace sinkstate::runtime::snapshot

#endif
