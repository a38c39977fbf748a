#include "SnapshotChecks.h"

#include "EngineUnderTest.h"

#include "capi/Failure.h"
#include "handover/Snapshot.h"
#include "handover/SnapshotFields.h"
#include "handover/SnapshotFormat.h"
#include "hash/Crc32c.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace sinkstate::test {
namespace {

namespace format = runtime::snapshot;
using Bytes = std::vector<std::byte>;

void mustHold(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "snapshot reader: %s\n", what);
  std::abort();
}

/// The model that the stored snapshots are of.
EngineUnderTest &engineOfSnapshots() {
  static EngineUnderTest test([] {
    std::vector<LayerSpec> layers = {gdnLayer(2, 1, 4, 8),
                                     kdaLayer(1, 1, 8, 4)};
    layers.push_back(gdnLayer(1, 1, 4, 4));
    layers[2].denseForm = true;
    for (size_t i = 0; i < layers.size(); ++i)
      layers[i].name = "layer" + std::to_string(i);
    return layers;
  }());
  return test;
}

void read(const Bytes &bytes) {
  try {
    const runtime::SlotImage image = runtime::readSnapshot(bytes);
    // Only its own version is written as it was read.
    Bytes again(runtime::snapshotBytes(image));
    runtime::writeSnapshot(image, again);
    const runtime::SlotImage second = runtime::readSnapshot(again);
    mustHold(second.layers.size() == image.layers.size() &&
                 second.position == image.position,
             "what was written again reads differently");
    Bytes third(runtime::snapshotBytes(second));
    runtime::writeSnapshot(second, third);
    mustHold(third == again, "writing is not stable");
  } catch (const runtime::Failure &failure) {
    const std::string message = failure.what();
    mustHold(!message.empty() && message.find('\n') == std::string::npos,
             "an error is not one line");
  }
}

void restore(const Bytes &bytes) {
  EngineUnderTest &test = engineOfSnapshots();
  static const int32_t slot = test.engine.allocateSlot();
  if (ss_snapshot_restore(test.engine.get(), slot, bytes.data(), bytes.size(),
                          nullptr) != SS_OK)
    return;
  (void)test.engine.densify(0, slot);
  (void)test.engine.snapshot(slot);
}

} // namespace

void repairChecksums(Bytes &bytes) {
  using namespace format;
  if (bytes.size() < header::size)
    return;
  std::byte *top = bytes.data();
  runtime::putInteger(top + header::totalBytes, uint64_t(bytes.size()));
  runtime::putInteger(top + header::checksum, crc32c(top, header::checksum));
  size_t offset = header::size;
  while (bytes.size() - offset >= section::size) {
    std::byte *at = top + offset;
    const auto size = runtime::getInteger<uint64_t>(at + section::bytes);
    const size_t left = bytes.size() - offset - section::size;
    if (size <= left)
      runtime::putInteger(at + section::checksum,
                          crc32c(at + section::size, size_t(size)));
    runtime::putInteger(at + section::headerChecksum,
                        crc32c(at, section::headerChecksum));
    if (size > left || padded(size_t(size)) > left)
      return;
    offset += section::size + padded(size_t(size));
  }
}

void checkReader(std::span<const std::byte> bytes) {
  Bytes copy(bytes.begin(), bytes.end());
  copy.reserve(1); // data() is never null
  read(copy);
  repairChecksums(copy);
  read(copy);
  restore(copy);
}

} // namespace sinkstate::test
